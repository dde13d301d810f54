"""The way of a prompt through the agent: each thing done once, no error and no event lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import events_of, make_agent
from tests.support.provider import Hang, ScriptedProvider, call, say
from tui.agent import prompts
from tui.agent.calls import finish as finish_station
from tui.agent.calls.state import PendingCall
from tui.context.level_view import LevelViewer
from tui.context.view import View
from tui.core import facts
from tui.core.clock import SystemClock
from tui.core.facts import Overlay
from tui.provider.base import Request
from tui.session.records import Record
from tui.session.session import Session


class LosingDisk(Session):
    """A session in memory that says what a test says of its disk."""

    full = False

    @classmethod
    def of_memory(cls, root: Path) -> LosingDisk:
        session = cls.in_memory(root, clock=SystemClock())
        assert isinstance(session, cls)
        return session

    @property
    def saved(self) -> bool:
        return not self.full

    @property
    def problem(self) -> str:
        return "No space left on device." if self.full else ""


@pytest.mark.parametrize("prompt", ["read both", "/verbose read both"])
async def test_the_view_is_built_once_per_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prompt: str
) -> None:
    built: list[View] = []
    build = LevelViewer.build

    def counted(viewer: LevelViewer, records: Sequence[Record], **options: Any) -> View:
        built.append(build(viewer, records, **options))
        return built[-1]

    monkeypatch.setattr(LevelViewer, "build", counted)
    (tmp_path / "a").write_text("alpha")
    provider = ScriptedProvider([call("read_file", path="a")], say("done"))
    agent = make_agent(tmp_path, provider)
    await events_of(agent, prompt)
    assert len(provider.requests) == 2
    assert len(built) == 2


async def test_directives_are_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = ScriptedProvider(say("a"), say("b"))
    agent = make_agent(tmp_path, provider)
    prompt = prompts.parse("/think off /think a riddle")
    monkeypatch.setattr(prompts, "parse", None)
    seen = [event async for event in agent.send(prompt)]
    assert agent.directives.think
    (message,) = [event for event in seen if isinstance(event, facts.UserMessage)]
    assert message.text == "a riddle"


async def test_no_error_of_calls_side_by_side_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object, tool: str, **__: object) -> None:
        await asyncio.sleep(0)
        raise ZeroDivisionError(f"cannot cut {tool}")

    monkeypatch.setattr("tui.agent.calls.finish.guard", broken)
    names = ["one", "two", "three"]  # there are no such tools: they fail at once
    provider = ScriptedProvider([call(name) for name in names])
    agent = make_agent(tmp_path, provider)
    with caplog.at_level(logging.ERROR, "tui.agent"):
        seen = await events_of(agent, "look")
    (error,) = [event for event in seen if isinstance(event, facts.ErrorRaised)]
    assert "ZeroDivisionError: cannot cut one; and 2 more" in error.message
    logged = " ".join(str(record.exc_info[1]) for record in caplog.records if record.exc_info)
    assert all(f"cannot cut {name}" in logged for name in names)


async def test_a_mistake_in_the_adapter_is_no_error_of_the_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def mistaken(request: Request) -> Any:
        return len(request)  # pyright: ignore[reportArgumentType] - the mistake

    agent = make_agent(tmp_path, ScriptedProvider(mistaken))
    with caplog.at_level(logging.ERROR, "tui.agent"):
        seen = await events_of(agent, "hi")
    error = seen[-2]
    assert isinstance(error, facts.ErrorRaised)
    assert error.error_class == "unknown"
    assert error.message.startswith("Something went wrong inside Holdfast (TypeError: ")
    assert "Traceback" in caplog.text


async def test_all_errors_of_calls_that_ran_side_by_side_are_said_or_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    both = asyncio.Barrier(2)

    async def finish(_: object, state: PendingCall, *__: object) -> None:
        await both.wait()
        raise RuntimeError(f"no room for {state.id}")

    monkeypatch.setattr(finish_station, "finish", finish)
    reads = [call("list_dir", f"t{n}", path=".") for n in range(2)]
    agent = make_agent(tmp_path, ScriptedProvider(reads))
    with caplog.at_level(logging.ERROR, "tui.agent"):
        seen = await events_of(agent, "hi")
    error = next(event for event in seen if isinstance(event, facts.ErrorRaised))
    assert "RuntimeError: no room for t" in error.message
    assert "; and 1 more, see the log file" in error.message
    for number in range(2):
        assert f"no room for t{number}" in caplog.text


async def test_what_is_published_between_turns_is_returned_by_its_method(tmp_path: Path) -> None:
    session = LosingDisk.of_memory(tmp_path)
    agent = make_agent(tmp_path, ScriptedProvider(say("a"), say("b")), session=session)
    await events_of(agent, "hi")
    session.full = True
    lost, changed, *_ = await agent.context.overlay([Overlay(session.records[0].id, "masked")])
    assert lost == facts.StorageChanged(False, "No space left on device.")
    assert isinstance(changed, facts.ContextChanged)
    session.full = False
    saved, *_ = await agent.context.pin({session.records[0].id: True})
    assert saved == facts.StorageChanged(True)
    again = (await events_of(agent, "again"))[0]
    assert again.to_json() == facts.UserMessage("again").to_json()


async def test_what_is_published_in_a_turn_comes_in_the_turn(
    tmp_path: Path,
) -> None:
    provider = ScriptedProvider(Hang("so far"))
    agent = make_agent(tmp_path, provider)
    running = asyncio.create_task(events_of(agent, "hi"))
    await provider.waiting.wait()
    assert await agent.context.overlay([Overlay(agent.session.records[0].id, "masked")]) == []
    agent.cancel()
    kinds = [type(event) for event in await running]
    assert await agent.context.pin({agent.session.records[0].id: True})
    assert kinds.count(facts.ContextChanged) == 1
    assert kinds[-1] is facts.TurnFinished


async def test_open_calls_are_closed_with_what_became_of_the_disk(tmp_path: Path) -> None:
    session = LosingDisk.of_memory(tmp_path)
    session.append("user", content=[], text="go")
    session.append("assistant", content=[call("list_dir", "c1", path=".")], model="m")
    agent = make_agent(tmp_path, ScriptedProvider(), session=session)
    session.full = True
    assert [event.type for event in await agent.close_calls(["c1"])] == ["storage_changed"]
