"""An interrupt at any moment: one result for every call, one end for every turn."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from tests.support.agents import make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.agent import Agent
from tui.agent.prompts import parse
from tui.context.validate import check
from tui.core import facts
from tui.core.clock import SystemClock
from tui.core.facts import Fact
from tui.core.messages import ToolOutput, blocks_of, tool_calls
from tui.permissions.gate import RulesOnly
from tui.permissions.types import Answer, Call, Decision
from tui.session.session import Session
from tui.tools.base import Effect, Params, Tool, ToolContext


class SlowDisk(Session):
    """A session in memory whose every sync takes a few turns of the loop."""

    async def sync(self) -> None:
        for _ in range(3):
            await asyncio.sleep(0)


class Slowly(RulesOnly):
    """Says yes, after a few turns of the loop."""

    async def ask(self, call: Call, decision: Decision) -> Answer:
        for _ in range(3):
            await asyncio.sleep(0)
        return Answer("once")


def world(root: Path) -> tuple[Agent, ScriptedProvider]:
    (root / "a").write_text("alpha")
    provider = ScriptedProvider(
        [
            {"type": "text", "text": "I look and write."},
            call("read_file", "1", path="a"),
            call("list_dir", "2", path="."),
            call("write_file", "3", path="b", content="x"),
            call("no_such_tool", "4"),
        ],
        say("Now the other thing."),
        say("Done."),
    )
    session = SlowDisk.in_memory(root, clock=SystemClock())
    return make_agent(root, provider, approver=Slowly(), session=session), provider


async def run(agent: Agent, *, stop_after: int, stop_again: bool) -> list[Fact]:
    """One turn, with a text queued from the start, cancelled after so many turns of the loop."""
    seen: list[Fact] = []

    async def turn() -> None:
        async for event in agent.send(parse("do it")):
            if isinstance(event, facts.RequestSent) and event.messages == 1:
                agent.steer(parse("and this"))
            seen.append(event)

    running = asyncio.create_task(turn())
    for _ in range(stop_after):
        await asyncio.sleep(0)
    agent.cancel()
    if stop_again:
        await asyncio.sleep(0)
        agent.cancel()
    await running
    return seen


def calls_and_results(agent: Agent) -> tuple[list[str], list[str]]:
    calls: list[str] = []
    results: list[str] = []
    for record in agent.session.records:
        if record.type == "assistant":
            found = tool_calls(blocks_of(record.data["content"]))
            calls.extend(str(block["id"]) for block in found)
        if record.type == "tool_result":
            results.append(str(record.data["call_id"]))
    return calls, results


def assert_told_as_recorded(agent: Agent, seen: list[Fact]) -> None:
    """What stands in the record was told, once, and nothing else was."""
    count = Counter(record.type for record in agent.session.records)
    assert count["user"] == sum(isinstance(e, facts.UserMessage) for e in seen)
    assert count["assistant"] == sum(isinstance(e, facts.AssistantMessage) for e in seen)
    started = [e.id for e in seen if isinstance(e, facts.ToolStarted)]
    finished = {e.id: e for e in seen if isinstance(e, facts.ToolFinished)}
    assert sorted(started) == sorted(finished)
    assert len(finished) == sum(isinstance(e, facts.ToolFinished) for e in seen)
    for record in agent.session.records:
        if record.type == "tool_result" and record.data["call_id"] in finished:
            event = finished[record.data["call_id"]]
            assert event.is_error == record.data["is_error"]
            assert event.summary == record.data["summary"]


PARTS = 4
"""A test tries every fourth moment, so that none of them lasts long on a slow machine."""


@pytest.mark.parametrize("first", range(PARTS))
@pytest.mark.parametrize("stop_again", [False, True])
async def test_R2_an_interrupt_at_any_moment_leaves_a_sound_record(
    tmp_path: Path, first: int, *, stop_again: bool
) -> None:
    outcomes: Counter[str] = Counter()
    steps = first
    while outcomes["done"] < 3:
        root = tmp_path / str(steps)
        root.mkdir()
        agent, provider = world(root)
        seen = await run(agent, stop_after=steps, stop_again=stop_again)
        ends = [e for e in seen if isinstance(e, facts.TurnFinished)]
        assert len(ends) == 1, steps
        assert seen[-1] is ends[0]
        outcomes[ends[0].outcome] += 1
        calls, results = calls_and_results(agent)
        assert sorted(calls) == sorted(results), steps
        assert_told_as_recorded(agent, seen)
        took = [record.data["text"] for record in agent.session.records if record.type == "user"]
        assert took in ([], ["do it"], ["do it", "and this"])
        typed = any(isinstance(event, facts.RequestSent) for event in seen)
        assert [*took[1:], *agent.queue] == (["and this"] if typed else [])  # nothing is lost
        agent.unqueue()
        provider.answers[:] = [say("Gone on.")]
        went_on = [event async for event in agent.send(parse("continue"))]
        assert went_on[-1].type == "turn_finished"
        assert isinstance(went_on[0], facts.UserMessage)
        assert check(provider.requests[-1].messages) == [], steps
        await agent.close()
        steps += PARTS
        assert steps < 5000
    assert outcomes["interrupted"] > 30
    assert set(outcomes) == {"interrupted", "done"}


class Final(Tool[Params]):
    """Does what it does, and is interrupted before anybody knows."""

    name: ClassVar[str] = "final"
    effect: ClassVar[Effect] = "none"
    params: ClassVar[type[Params]] = Params
    interrupt: Callable[[], None]

    @property
    def description(self) -> str:
        return "A test."

    async def run(self, params: Params, ctx: ToolContext) -> ToolOutput:
        self.interrupt()
        return ToolOutput.text("It is done. " * 10_000)


async def test_what_a_tool_has_done_is_recorded_as_done(tmp_path: Path) -> None:
    tool = Final()
    provider = ScriptedProvider([call("final", "1"), call("final", "2")])
    agent = make_agent(tmp_path, provider, tools={"final": tool})
    tool.interrupt = agent.cancel
    seen = [event async for event in agent.send(parse("do it"))]
    assert isinstance(seen[-1], facts.TurnFinished)
    assert seen[-1].outcome == "interrupted"
    results = [r.data for r in agent.session.records if r.type == "tool_result"]
    assert [result["is_error"] for result in results] == [False, False]
    assert all(result["receipt"]["stages"] == ["spill"] for result in results)
    assert all(Path(r["receipt"]["path"]).stat().st_size == 120_000 for r in results)
    await agent.close()


async def test_an_interrupt_while_the_books_are_closed_changes_nothing(tmp_path: Path) -> None:
    agent, provider = world(tmp_path)
    provider.answers[:] = [say("Done.")]
    seen: list[Fact] = []
    async for event in agent.send(parse("hi")):
        seen.append(event)
        if sum(isinstance(e, facts.ContextMeasured) for e in seen) == 2:
            agent.cancel()
    assert isinstance(seen[-1], facts.TurnFinished)
    assert seen[-1].outcome == "done"
    assert agent.spent.requests == 1


async def test_an_interrupt_before_the_turn_has_begun_records_no_prompt(tmp_path: Path) -> None:
    agent, provider = world(tmp_path)
    turn = agent.send(parse("hi"))
    first = asyncio.ensure_future(anext(turn))
    await asyncio.sleep(0)
    agent.cancel()
    ended = await first
    assert isinstance(ended, facts.TurnFinished)
    assert ended.outcome == "interrupted"
    assert provider.requests == []
    assert [event async for event in turn] == []
