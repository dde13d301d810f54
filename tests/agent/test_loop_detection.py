"""The loop breaker: the same call with the same result, five times in a row (decision 29)."""

from __future__ import annotations

from pathlib import Path

from tests.support.agents import Yes, events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.limits import LoopDetector
from tui.context.validate import check
from tui.core import facts
from tui.core.messages import Block, text_block
from tui.session.records import Record


async def test_the_fifth_same_result_stops_the_turn(tmp_path: Path) -> None:
    again = [[call("run_command", f"c{n}", command="echo same")] for n in range(9)]
    provider = ScriptedProvider(*again)
    agent = make_agent(tmp_path, provider, approver=Yes())
    seen = await events_of(agent, "go")
    assert len(provider.requests) == 5
    (stopped,) = [event for event in seen if isinstance(event, facts.LoopStopped)]
    assert (stopped.name, stopped.input, stopped.times) == (
        "run_command",
        {"command": "echo same"},
        5,
    )
    (error,) = [event for event in seen if isinstance(event, facts.ErrorRaised)]
    assert error.message.startswith("Stopped: run_command was called 5 times with the same result")
    assert isinstance(seen[-1], facts.TurnFinished)
    assert seen[-1].outcome == "failed"
    assert [r.type for r in agent.session.records][-1] == "error"
    request = agent.context.next_request()
    assert check(request.messages) == []


async def test_another_result_begins_the_count_anew(tmp_path: Path) -> None:
    grown = [[call("run_command", f"c{n}", command="echo x >> f; cat f")] for n in range(7)]
    provider = ScriptedProvider(*grown, say("done"))
    agent = make_agent(tmp_path, provider, approver=Yes())
    seen = await events_of(agent, "go")
    assert isinstance(seen[-1], facts.TurnFinished)
    assert seen[-1].outcome == "done"


def pair(name: str, id_: str, text: str, **given: str) -> tuple[Block, Record]:
    data = {"call_id": id_, "content": [text_block(text)], "is_error": False}
    return call(name, id_, **given), Record("tool_result", id_, None, "", data)


def times(repeats: LoopDetector, *pairs: tuple[Block, Record]) -> bool:
    calls, records = zip(*pairs, strict=True)
    return repeats.repeated(calls, records) is not None


def test_ids_and_seconds_make_no_difference() -> None:
    repeats = LoopDetector()
    for n in range(4):
        assert not times(repeats, pair("run", f"c{n}", f"see c{n}.txt\n[exit code 0 · {n}.2 s]"))
    assert times(repeats, pair("run", "c9", "see c9.txt\n[exit code 0 · 11.7 s]"))


def test_a_pair_counts_once_an_answer_and_others_beside_it_do_not_matter() -> None:
    repeats = LoopDetector()
    same = [pair("read", f"s{n}", "same") for n in range(6)]
    assert not times(repeats, *same)
    for n in range(3):
        assert not times(repeats, same[0], pair("read", f"o{n}", f"other {n}"))
    assert times(repeats, pair("read", "o9", "other 9"), same[0])


def test_looking_after_a_command_does_not_count() -> None:
    repeats = LoopDetector()
    for n in range(20):
        assert not times(repeats, pair("command_status", f"w{n}", "running"))


def test_looking_after_a_command_does_not_end_a_row_either() -> None:
    repeats = LoopDetector()
    for n in range(4):
        assert not times(repeats, pair("read", f"s{n}", "same"))
        assert not times(repeats, pair("command_status", f"w{n}", "running"))
    assert times(repeats, pair("read", "s9", "same"))
