"""A turn that is paused stops where another process can continue it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.support.agents import Yes, make_agent
from tests.support.processes import gone
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.agent import Agent
from tui.agent.interrupted_work import turn_is_open
from tui.agent.prompts import parse
from tui.context.interrupted_calls import open_calls
from tui.core.clock import SystemClock
from tui.core.facts import Fact, ToolOutputChunk, ToolStarted, TurnFinished
from tui.core.messages import Block, text_of
from tui.core.paths import folders
from tui.keeper.command import lives
from tui.keeper.folder import KILL, send
from tui.permissions.gate import RulesOnly
from tui.permissions.types import Answer, Call, Decision
from tui.provider.base import Request
from tui.session.session import Session
from tui.tools.jobs import Job


class Nobody(RulesOnly):
    """Is asked, and never answers."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def ask(self, call: Call, decision: Decision) -> Answer:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError


def saved(folder: Path) -> Session:
    """A session whose commands may outlive the program."""
    return Session.create(folder, folders=folders(), clock=SystemClock())


async def turn(agent: Agent, text: str = "") -> list[Fact]:
    stream = agent.send(parse(text)) if text else agent.go_on(left(agent))
    return [event async for event in stream]


def left(agent: Agent) -> list[str]:
    return [str(call["id"]) for call in open_calls(agent.session.records)]


def outcome(events: list[Fact]) -> str:
    assert isinstance(events[-1], TurnFinished)
    return events[-1].outcome


def results(request: Request) -> list[Block]:
    return [
        block
        for message in request.messages
        for block in message["content"]
        if block["type"] == "tool_result"
    ]


async def test_a_question_is_taken_back_and_put_again(tmp_path: Path) -> None:
    write = call("write_file", path="a.txt", content="hello\n")
    provider, nobody = ScriptedProvider([write], say("Done.")), Nobody()
    agent = make_agent(tmp_path, provider, approver=nobody)
    first = asyncio.create_task(turn(agent, "write it"))
    await nobody.asked.wait()
    agent.pause()
    assert outcome(await first) == "interrupted"
    assert left(agent) == ["toolu_write_file"]
    assert turn_is_open(agent.session.records)
    assert not [r for r in agent.session.records if r.type in {"interrupt", "tool_result"}]

    other = make_agent(tmp_path, provider, approver=Yes(), session=agent.session)
    assert outcome(await turn(other)) == "done"
    assert (tmp_path / "a.txt").read_text() == "hello\n"
    (result,) = results(provider.requests[-1])
    assert not result.get("is_error")
    assert not turn_is_open(agent.session.records)


async def test_what_has_begun_is_finished_first(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    agent: Agent | None = None

    def reads(_: Request) -> list[Block]:
        assert agent is not None
        agent.pause()
        return [call("read_file", path="a.txt")]

    provider = ScriptedProvider(reads, say("It says one."))
    agent = make_agent(tmp_path, provider)
    assert outcome(await turn(agent, "read it")) == "interrupted"
    assert agent.session.records[-1].type != "interrupt"
    assert left(agent) == ["toolu_read_file"], "the answer is recorded, its call not begun"
    assert outcome(await turn(agent)) == "done"
    assert len(provider.requests) == 2


async def test_an_answer_that_ends_the_turn_ends_it(tmp_path: Path) -> None:
    agent: Agent | None = None

    def answer(_: Request) -> list[Block]:
        assert agent is not None
        agent.pause()
        return say("Done.")

    agent = make_agent(tmp_path, ScriptedProvider(answer))
    assert outcome(await turn(agent, "go")) == "done"
    assert not turn_is_open(agent.session.records)


async def test_a_command_runs_on_and_whoever_continues_has_its_result(tmp_path: Path) -> None:
    command = "echo begun; until [ -e go ]; do sleep 0.02; done; echo over"
    provider = ScriptedProvider([call("run_command", command=command)], say("Over."))
    kept = tmp_path / "kept"
    agent = make_agent(tmp_path, provider, approver=Yes(), session=saved(tmp_path), kept=kept)
    stream = agent.send(parse("run it"))
    async for event in stream:
        if isinstance(event, ToolOutputChunk):
            agent.pause()
    assert left(agent) == ["toolu_run_command"]
    assert turn_is_open(agent.session.records)
    assert len(provider.requests) == 1
    path = agent.session.path
    assert path
    await agent.close()
    again = Session.open(path, clock=SystemClock())
    other = make_agent(tmp_path, provider, approver=Yes(), session=again, kept=kept)
    (tmp_path / "go").touch()
    seen = await turn(other)
    assert outcome(seen) == "done"
    (started,) = (event for event in seen if isinstance(event, ToolStarted))
    assert started.seconds > 0, "the card goes on counting"
    (result,) = (r.data for r in other.session.records if r.type == "tool_result")
    assert text_of(result["content"]).startswith("begun\nover\n")
    await other.close()


async def test_a_job_ends_with_the_agent_unless_somebody_takes_it_over(tmp_path: Path) -> None:
    jobs: list[Job] = []
    for number, stays in enumerate((True, False)):
        root = tmp_path / str(number)
        root.mkdir()
        start = call("run_command", command="sleep 300", background=True)
        provider = ScriptedProvider([start], say("Up."))
        agent = make_agent(root, provider, approver=Yes(), session=saved(root))
        await turn(agent, "start it")
        agent.pause()
        if stays:
            agent.jobs.stay()
        jobs += [owned.job for owned in agent.jobs.all]
        await agent.close()
    ended, runs = jobs
    assert ended.stopped_by == "program"
    assert not runs.ended
    assert lives(runs.kept.folder)
    send(runs.kept.folder, KILL)
    assert gone(runs.pid)


async def test_a_command_that_was_left_ends_where_its_call_is_stopped(tmp_path: Path) -> None:
    provider = ScriptedProvider([call("run_command", command="echo $$; exec sleep 300")])
    agent = make_agent(tmp_path, provider, approver=Yes(), session=saved(tmp_path))
    pid = 0
    async for event in agent.send(parse("run it")):
        if isinstance(event, ToolOutputChunk):
            pid = int(event.text)
            agent.pause()
    await agent.close_calls(left(agent))
    assert gone(pid)
