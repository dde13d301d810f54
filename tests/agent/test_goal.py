"""A goal: rounds until a command is green or a model says so, within limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import Yes, make_agent
from tests.support.clock import FakeClock
from tests.support.processes import gone
from tests.support.provider import Hang, ScriptedProvider, call, say
from tui.agent.agent import Agent
from tui.agent.prompts import GoalWish, ParsedPrompt, parse
from tui.core import facts
from tui.core.config import Config, GoalSettings, Price
from tui.core.fact_words import words
from tui.core.facts import Fact, GoalChanged
from tui.core.messages import text_of
from tui.permissions.gate import Gate
from tui.permissions.policy import Policy
from tui.session.records import is_prompt, last_of_turn
from tui.session.session import Session

CHECK = "test -e done"
PRICED = Config(prices={"test-model": Price(input=10.0, output=50.0)})


def goal(text: str = "Make it.", command: str = CHECK, **limits: Any) -> ParsedPrompt:
    return ParsedPrompt(f"/goal {text}", text, goal=GoalWish(text, command, **limits))


def write(name: str) -> list[dict[str, Any]]:
    return [call("write_file", f"w-{name}", path=name, content="x\n")]


async def turn(agent: Agent, sent: ParsedPrompt) -> list[Fact]:
    return [event async for event in agent.send(sent)]


async def again(agent: Agent, **wish: Any) -> list[Fact]:
    return [event async for event in agent.go_on(goal=GoalWish(**wish))]


def states(agent: Agent) -> list[tuple[str, int]]:
    found = (GoalChanged.of_record(r.data) for r in agent.session.records if r.type == "goal")
    return [(one.state, one.round) for one in found]


def sentences(events: Sequence[Fact]) -> list[str]:
    said = (words(event) for event in events if isinstance(event, GoalChanged))
    return [one.text for one in said if one]


def outcome(events: Sequence[Fact]) -> str:
    last = events[-1]
    assert isinstance(last, facts.TurnFinished)
    return last.outcome


async def test_it_takes_three_rounds_in_one_turn_and_ends_when_the_command_is_green(
    tmp_path: Path,
) -> None:
    provider = ScriptedProvider(
        say("I tried."), write("other"), say("Now?"), write("done"), say("There.")
    )
    agent = make_agent(tmp_path, provider, approver=Yes())
    events = await turn(agent, goal())
    assert outcome(events) == "done"
    assert states(agent) == [("set", 1), ("checked", 1), ("checked", 2), ("met", 3)]
    assert sentences(events) == [
        "Goal: Make it.",
        "Round 1 of 20: the goal isn't met. `test -e done` ended with exit code 1.",
        "Round 2 of 20: the goal isn't met. `test -e done` ended with exit code 1.",
        "Round 3 of 20: the goal is met. `test -e done` passed.",
    ]
    prompts = [r for r in agent.session.records if r.type == "user"]
    assert [is_prompt(r) for r in prompts] == [True, False, False, False]
    assert [r.data.get("by") for r in prompts] == [None, "goal", "goal", "goal"]
    assert all("text" not in r.data for r in prompts[1:])  # nobody typed it
    checked = provider.requests[1].messages[-1]
    assert "exit code 1" in text_of(checked["content"][0]["content"])
    # it is over: nothing is left to continue
    last = last_of_turn(agent.session.records)
    assert last is not None
    assert last.type == "goal"
    assert (await turn(agent, parse("thanks")))[-1]
    assert agent.goal.now is not None
    assert agent.goal.now.state == "met"


async def test_what_was_sent_only_grows(tmp_path: Path) -> None:
    provider = ScriptedProvider(say("a"), write("done"), say("b"), say("c"))
    agent = make_agent(tmp_path, provider, approver=Yes())
    await turn(agent, goal())
    await turn(agent, parse("next"))
    for before, after in zip(provider.requests, provider.requests[1:], strict=False):
        sent, then = (
            [
                {key: value for key, value in block.items() if key != "cache_control"}
                for one in request.messages
                for block in one["content"]
            ]
            for request in (before, after)
        )
        assert then[: len(sent)] == sent
    assert not [r for r in agent.session.records if r.type == "break"]


@pytest.mark.parametrize(
    ("answer", "ended", "why"),
    [
        ("MET: the file is there", "met", "The file is there"),
        ("IMPOSSIBLE: no such file can be", "blocked", "it can't be met: no such file"),
    ],
)
async def test_without_a_command_a_model_judges(
    tmp_path: Path, answer: str, ended: str, why: str
) -> None:
    provider = ScriptedProvider(say("One."), say("NOT MET: no file"), say("Two."), say(answer))
    agent = make_agent(tmp_path, provider, config=PRICED)
    events = await turn(agent, goal(command=""))
    assert states(agent) == [("set", 1), ("checked", 1), (ended, 2)]
    assert why in sentences(events)[-1]
    assert outcome(events) == ("done" if ended == "met" else "failed")
    judged = provider.requests[1]
    assert judged.tools == []
    assert "Make it." in text_of(judged.messages[0]["content"])
    told = text_of(provider.requests[2].messages[-1]["content"])
    assert "nobody typed it" in told
    assert "isn't met: No file" in told
    record = [r for r in agent.session.records if r.type == "goal"][-1]
    assert record.data["model"] == "test-model"
    assert record.data["usage"]["output_tokens"] > 0
    measured = [one for one in events if isinstance(one, facts.ContextMeasured)]
    assert measured[-1].cost_usd == agent.spending().session.usd  # with the last judgment
    finished = events[-1]
    assert isinstance(finished, facts.TurnFinished)
    assert finished.usage.total == sum(
        sum(r.data["usage"].values()) for r in agent.session.records if "usage" in r.data
    )


@pytest.mark.parametrize("odd", ["Yes, it is met.", "MET", "met: ok", "Well.\nMET: ok", ""])
async def test_an_answer_that_is_no_judgment_is_not_met(tmp_path: Path, odd: str) -> None:
    provider = ScriptedProvider(say("One."), say(odd), say("Two."), say("MET: ok"))
    agent = make_agent(tmp_path, provider)
    events = await turn(agent, goal(command=""))
    assert "no judgment" in sentences(events)[1]
    assert states(agent)[-1] == ("met", 2)


async def test_the_same_failure_again_and_again_ends_it(tmp_path: Path) -> None:
    provider = ScriptedProvider(*(say(f"I can't, {n}.") for n in range(9)))
    agent = make_agent(tmp_path, provider, approver=Yes())
    events = await turn(agent, goal())
    assert outcome(events) == "failed"
    assert len(provider.requests) == 3
    assert states(agent)[-1] == ("stuck", 3)
    assert "the same failure 3 rounds in a row, and nothing changed" in sentences(events)[-1]
    # and goes on when a person says so
    provider.answers += [write("done"), say("Yes.")]
    del provider.answers[:-2]
    await again(agent)
    assert states(agent)[-2:] == [("continued", 4), ("met", 4)]


async def test_rounds_that_change_files_are_not_the_same_failure(tmp_path: Path) -> None:
    steps = [part for n in range(4) for part in (write(f"f{n}"), say("So."))]
    agent = make_agent(tmp_path, ScriptedProvider(*steps), approver=Yes())
    events = await turn(agent, goal(rounds=4))
    assert outcome(events) == "limit"
    assert states(agent)[-1] == ("limit", 4)
    assert "it has had its 4 rounds" in sentences(events)[-1]


async def test_more_rounds_let_it_continue(tmp_path: Path) -> None:
    provider = ScriptedProvider(say("a"), write("done"), say("b"))
    agent = make_agent(tmp_path, provider, approver=Yes())
    await turn(agent, goal(rounds=1))
    assert states(agent)[-1] == ("limit", 1)
    await again(agent, rounds=5)
    assert states(agent)[-2:] == [("continued", 2), ("met", 2)]


async def test_money_is_counted_and_ends_it_between_two_requests(tmp_path: Path) -> None:
    steps = [part for n in range(9) for part in (write(f"f{n}"), say("So."))]
    provider = ScriptedProvider(*steps)
    agent = make_agent(tmp_path, provider, approver=Yes(), config=PRICED)
    events = await turn(agent, goal(usd=0.0006))
    assert outcome(events) == "limit"
    now = agent.goal.now
    assert now is not None
    assert now.state == "limit"
    assert now.spent_usd is not None
    assert now.spent_usd >= 0.0006
    assert "it has cost" in now.why
    assert len(provider.requests) < 18


async def test_a_limit_of_money_that_cant_be_kept_is_said(tmp_path: Path) -> None:
    agent = make_agent(tmp_path, ScriptedProvider())
    events = await turn(agent, goal(usd=1.0))
    assert outcome(events) == "limit"
    assert "no known price" in sentences(events)[-1]


async def test_time_ends_it(tmp_path: Path) -> None:
    clock = FakeClock()

    def late(_: object) -> list[dict[str, Any]]:
        clock.elapsed += 1000
        return write("a")

    agent = make_agent(tmp_path, ScriptedProvider(late), approver=Yes(), clock=clock)
    events = await turn(agent, goal(seconds=900.0))
    assert outcome(events) == "limit"
    assert "it has taken its 15 min" in sentences(events)[-1]


async def test_a_check_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    config = Config(goal=GoalSettings(check_s=1, rounds=1))
    agent = make_agent(tmp_path, ScriptedProvider(say("a")), approver=Yes(), config=config)
    events = await turn(agent, goal(command="sleep 600 & echo $! > pid; wait"))
    assert "took longer than 1 s and was stopped" in sentences(events)[1]
    assert gone(int((tmp_path / "pid").read_text()))


async def test_a_check_that_may_not_run_ends_it(tmp_path: Path) -> None:
    """It is asked about as any command of the model is; here nobody can be asked."""
    gate = Gate(Policy.of(deny=["run_command(touch*)"]))
    agent = make_agent(tmp_path, ScriptedProvider(say("a")), gate=gate)
    events = await turn(agent, goal(command="touch x"))
    assert outcome(events) == "failed"
    assert "`touch x` wasn't allowed. " in sentences(events)[-1]
    assert len(agent.session.records) < 20  # at once: more rounds would change nothing
    assert not (tmp_path / "x").exists()


async def test_a_stop_pauses_it_and_only_a_person_continues(tmp_path: Path) -> None:
    provider = ScriptedProvider(Hang("well"))
    agent = make_agent(tmp_path, provider, approver=Yes())
    events: list[Fact] = []

    async def run() -> None:
        async with aclosing(agent.send(goal())) as turns:
            events.extend([event async for event in turns])

    task = asyncio.create_task(run())
    await provider.waiting.wait()
    agent.cancel()
    await task
    assert outcome(events) == "interrupted"
    assert states(agent)[-1] == ("paused", 1)
    provider.answers += [say("An answer."), write("done"), say("Yes.")]
    await turn(agent, parse("What is it?"))  # a prompt of the person's is answered, and no more
    assert states(agent)[-1] == ("paused", 1)
    await again(agent)
    assert states(agent)[-3:] == [("continued", 1), ("checked", 1), ("met", 2)]


async def test_what_is_typed_meanwhile_joins_the_round(tmp_path: Path) -> None:
    provider = ScriptedProvider(say("a"), say("b"), write("done"), say("c"))
    agent = make_agent(tmp_path, provider, approver=Yes())
    async with aclosing(agent.send(goal())) as events:
        async for event in events:
            if isinstance(event, facts.RequestSent) and len(provider.requests) == 1:
                agent.steer(parse("and this"))
    assert text_of(provider.requests[1].messages[-1]["content"]).startswith("and this")
    assert states(agent) == [("set", 1), ("checked", 1), ("met", 2)]


async def test_it_can_be_ended_while_it_runs(tmp_path: Path) -> None:
    provider = ScriptedProvider(say("a"))
    agent = make_agent(tmp_path, provider, approver=Yes())
    async with aclosing(agent.send(goal())) as events:
        told: list[Fact] = []
        async for event in events:
            told.append(event)
            if isinstance(event, facts.RequestSent):
                agent.goal.stop()
    assert outcome(told) == "done"
    assert states(agent)[-1] == ("stopped", 1)


async def test_a_new_run_of_the_program_continues_it_only_when_told(tmp_path: Path) -> None:
    session = Session.in_memory(tmp_path, clock=FakeClock())
    first = make_agent(
        tmp_path, ScriptedProvider(say("a"), write("x"), Hang()), session=session, approver=Yes()
    )
    task = asyncio.create_task(turn(first, goal()))
    provider = first._ctx.link.provider  # pyright: ignore[reportPrivateUsage] - that of the test
    assert isinstance(provider, ScriptedProvider)
    await provider.waiting.wait()
    task.cancel()  # as if it was killed: nothing more of it counts
    kept = list(session.records)
    later = Session.in_memory(tmp_path, clock=FakeClock())
    later.records[:] = kept  # pyright: ignore[reportIndexIssue] - a list
    provider = ScriptedProvider(say("An answer."), say("No."), write("done"), say("Yes."))
    agent = make_agent(tmp_path, provider, session=later, approver=Yes())
    assert agent.goal.now is not None
    assert (agent.goal.now.state, agent.goal.now.round) == ("paused", 2)
    await turn(agent, parse("Hello?"))
    assert states(agent)[-1] == ("checked", 1)
    await again(agent)
    # the model had said its last word, so it begins with a check
    assert states(agent)[-4:] == [("continued", 2), ("checked", 2), ("checked", 3), ("met", 4)]


@pytest.mark.parametrize("rounds", [0, 1])
async def test_the_time_of_a_round_that_was_cut_off_counts(tmp_path: Path, rounds: int) -> None:
    clock = FakeClock()

    def late(calls: list[dict[str, Any]]) -> Callable[[object], list[dict[str, Any]]]:
        def answer(_: object) -> list[dict[str, Any]]:
            clock.elapsed += 600
            return calls

        return answer

    session = Session.in_memory(tmp_path, clock=clock)
    provider = ScriptedProvider(*[late(say("a"))] * rounds, late(write("x")), Hang())
    first = make_agent(tmp_path, provider, session=session, approver=Yes(), clock=clock)
    task = asyncio.create_task(turn(first, goal(seconds=3600.0)))
    await provider.waiting.wait()
    task.cancel()  # as if it was killed: nothing more of it counts
    kept = list(session.records)
    clock.elapsed += 100_000  # the night goes by
    later = Session.in_memory(tmp_path, clock=clock)
    later.records[:] = kept  # pyright: ignore[reportIndexIssue] - a list
    provider = ScriptedProvider(late(say("An answer.")))
    agent = make_agent(tmp_path, provider, session=later, approver=Yes(), clock=clock)
    assert agent.goal.now is not None
    worked = 600 * (rounds + 1)
    assert worked <= agent.goal.now.spent_s < worked + 2
    await turn(agent, parse("Hello?"))  # no work on the goal
    assert worked <= agent.goal.now.spent_s < worked + 2
    events = await again(agent, seconds=600.0)
    assert outcome(events) == "limit"
    assert "it has taken its 10 min" in sentences(events)[-1]


@pytest.mark.parametrize("then", ["continue", "stop"])
async def test_a_judgment_is_paid_for_once(tmp_path: Path, then: str) -> None:
    session = Session.in_memory(tmp_path, clock=FakeClock())
    provider = ScriptedProvider(say("One."), say("NOT MET: no file"), Hang())
    first = make_agent(tmp_path, provider, session=session, config=PRICED)
    task = asyncio.create_task(turn(first, goal(command="")))
    await provider.waiting.wait()
    kept = list(session.records)
    task.cancel()  # as if it was killed: nothing more of it counts
    later = Session.in_memory(tmp_path, clock=FakeClock())
    later.records[:] = kept  # pyright: ignore[reportIndexIssue] - a list
    provider = ScriptedProvider(say("Two."), say("MET: it is there"))
    agent = make_agent(tmp_path, provider, session=later, config=PRICED)
    if then == "stop":
        agent.goal.stop()
    else:
        await again(agent)
    judged = [one for one in agent.session.records if one.type == "goal" and "usage" in one.data]
    assert [one.data["state"] for one in judged] == ["checked", *(["met"] * (then != "stop"))]
