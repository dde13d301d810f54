"""A turn that is paused stops where another process can continue it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.support.agents import Yes, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.agent import Agent
from tui.agent.events import Event, TurnFinished
from tui.agent.interrupted_work import turn_is_open
from tui.agent.prompts import parse
from tui.context.interrupted_calls import open_calls
from tui.core.messages import Block
from tui.permissions.gate import RulesOnly
from tui.permissions.types import Answer, Call, Decision
from tui.provider.base import Request


class Nobody(RulesOnly):
    """Is asked, and never answers."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def ask(self, call: Call, decision: Decision) -> Answer:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError


async def turn(agent: Agent, text: str = "") -> list[Event]:
    stream = agent.send(parse(text)) if text else agent.go_on(left(agent))
    return [event async for event in stream]


def left(agent: Agent) -> list[str]:
    return [str(call["id"]) for call in open_calls(agent.session.records)]


def outcome(events: list[Event]) -> str:
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


async def test_a_call_that_runs_is_waited_for(tmp_path: Path) -> None:
    provider = ScriptedProvider(
        [call("run_command", command="while [ ! -e go ]; do :; done; echo over")], say("Over.")
    )
    agent = make_agent(tmp_path, provider, approver=Yes())
    stream = agent.send(parse("run it"))
    async for event in stream:
        if type(event).__name__ == "PermissionAnswered":
            agent.pause()
            (tmp_path / "go").touch()
    assert not left(agent)
    assert [r.data["is_error"] for r in agent.session.records if r.type == "tool_result"] == [False]
    assert turn_is_open(agent.session.records)
    assert len(provider.requests) == 1
    assert outcome(await turn(agent)) == "done"
