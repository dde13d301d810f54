"""From one session to another."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.world import OldSession, World, record
from tests.ui.screens.driving import WIDE, answer, app_of, items, running, say, turn, until
from tui.agent.agent import Agent
from tui.app.services import Opening, SessionChoice
from tui.core.errors import SessionError
from tui.core.paths import folders
from tui.permissions.types import Approver
from tui.session.records import Record
from tui.session.session import Session
from tui.ui.app import HoldfastApp
from tui.ui.screens.context import ContextScreen
from tui.ui.widgets.conversation.items import (
    AssistantItem,
    UserItem,
)
from tui.ui.widgets.record_items import items_of


async def test_a_session_is_resumed_with_all_that_was_said() -> None:
    world = World()
    world.add_row("the old one", hours=2)
    path = world.rows[0].path
    old = [
        record("user", 1, content=[{"type": "text", "text": "hello"}], text="hello"),
        record("assistant", 2, content=[{"type": "text", "text": "Hi."}]),
    ]
    world.old[path] = OldSession(records=old, title="the old one")
    async with running(world) as (app, pilot):
        await pilot.press("f3")
        await until(pilot, lambda: app.screen is not app.chat)
        await pilot.press("o", "l", "d", "enter")
        await until(pilot, lambda: len(world.agents) == 2)
        await until(pilot, lambda: app.chat.header.state.title == "the old one")
        assert world.chosen[-1] == SessionChoice(path)
        assert world.agents[0].closed
        shown = [*items(app, UserItem), *items(app, AssistantItem)]
        assert [item.text for item in shown] == ["hello", "Hi."]
        assert app.chat.status.state.turns == 1


async def test_new_begins_anew_and_closes_the_old_session() -> None:
    world = World()
    world.scripts.append(turn(*answer("x")))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        await say(pilot, "/new")
        await until(pilot, lambda: len(world.agents) == 2)
        await until(pilot, lambda: not app.chat.conversation.items)
        assert world.agents[0].closed
        assert app.chat.status.state.turns == 0


async def test_a_session_that_cannot_be_opened_leaves_the_one_that_is() -> None:
    world = World()
    async with running(world) as (app, pilot):
        world.refusals.append(SessionError("It is open elsewhere.", hint="Close it there."))
        await say(pilot, "/new")
        await until(pilot, lambda: "open elsewhere" in app.chat.notice.text)
        assert not world.agent.closed
        await say(pilot, "still here")
        await until(pilot, lambda: world.agent.sent == ["still here"])


async def test_a_resumed_session_that_cannot_be_opened_falls_back_to_a_new_one() -> None:
    world = World()
    world.add_row("gone", hours=1)
    world.refusals.append(SessionError("It cannot be read."))
    async with running(world, choice=SessionChoice(world.rows[0].path)) as (app, pilot):
        await until(pilot, lambda: len(world.agents) == 1)
        assert "cannot be read" in app.chat.notice.text
        assert [choice.path for choice in world.chosen] == [world.rows[0].path, None]


async def test_what_was_sent_to_a_session_that_cannot_be_opened_comes_back() -> None:
    world = World()
    world.refusals.append(RuntimeError("a bug"))
    app = app_of(world, prompt="precious words")
    async with app.run_test() as pilot:
        await until(pilot, lambda: "Couldn't open" in app.chat.notice.text)
        assert app.chat.prompt.text == "precious words"
        assert app.chat.queued.texts == ()


async def test_the_end_of_a_session_is_shown_while_the_rest_is_read(tmp_path: Path) -> None:
    world = World()
    session = Session.create(tmp_path, folders=folders(), clock=world.clock)
    session.append("user", content=[{"type": "text", "text": "hello"}], text="hello")
    await session.close()
    assert session.path
    held = asyncio.Event()
    services = world.services()

    async def make_agent(choice: SessionChoice, approver: Approver) -> Agent:
        await held.wait()
        return await services.make_agent(choice, approver)

    opening = Opening(
        services=replace(services, make_agent=make_agent), choice=SessionChoice(session.path)
    )
    app = HoldfastApp(lambda: opening, clock=world.clock)
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.ready and bool(items(app, UserItem)))
        assert app.conversation.agent is None
        await say(pilot, "continue")
        assert app.chat.queued.texts == ("continue",)
        held.set()
        await until(pilot, lambda: bool(world.agents) and world.agent.sent == ["continue"])


def _asked(count: int) -> list[Record]:
    content = [{"type": "text", "text": "x"}]
    return [record("user", n + 1, content=content, text=f"question {n}") for n in range(count)]


class _Slow:
    """An app that shows the last 30 prompts of a hundred, and is not complete before `go_on`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world, self.go_on = World(), asyncio.Event()
        self.world.add_row("old", hours=2)
        path, records = self.world.rows[0].path, _asked(100)
        self.world.old[path] = OldSession(records=records)
        opening = Opening(services=self.world.services(), choice=SessionChoice(path))
        end = items_of(records[-30:])
        self.app = HoldfastApp(lambda: opening, clock=self.world.clock, end=end)
        self._complete = self.app._complete  # pyright: ignore[reportPrivateUsage]
        monkeypatch.setattr(self.app, "_complete", self._later)

    async def _later(self, opening: Opening) -> None:
        await self.go_on.wait()
        await self._complete(opening)


def _first_row(app: HoldfastApp) -> str:
    return "".join(segment.text for segment in app.chat.conversation.render_line(0)).strip()


async def test_the_end_of_a_session_is_there_before_the_program_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = _Slow(monkeypatch)
    app = slow.app
    async with app.run_test(size=WIDE) as pilot:
        assert [item.text for item in items(app, UserItem)][-1] == "question 99"
        assert app.chat.busy
        await say(pilot, "continue")
        await until(pilot, lambda: app.chat.queued.texts == ("continue",))
        await pilot.click("#conversation", offset=(4, 2))
        await pilot.press("pageup", "escape")
        assert not app.ready
        slow.go_on.set()
        agents = slow.world.agents
        await until(pilot, lambda: bool(agents) and agents[0].sent == ["continue"])
        assert [item.text for item in items(app, UserItem)][:100] == [
            f"question {n}" for n in range(100)
        ]


async def test_a_command_that_is_typed_early_waits_for_the_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = _Slow(monkeypatch)
    app = slow.app
    async with app.run_test(size=WIDE) as pilot:
        await say(pilot, "/context")
        await until(pilot, lambda: len(app.early) == 1)
        assert app.chat.prompt.text == "/context"
        slow.go_on.set()
        await until(pilot, lambda: isinstance(app.screen, ContextScreen))
        assert "No session" not in app.chat.notice.text
        assert app.chat.prompt.text == ""


async def test_who_has_scrolled_up_in_the_end_stays_there_when_the_rest_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = _Slow(monkeypatch)
    app = slow.app
    async with app.run_test(size=(120, 18)) as pilot:
        await pilot.press("pageup")
        await pilot.pause()
        assert not app.chat.conversation.following
        before = _first_row(app)
        assert "question 8" in before
        slow.go_on.set()
        await until(pilot, lambda: app.ready and len(app.chat.conversation.items) == 100)
        await until(pilot, lambda: not app.chat.busy)
        assert _first_row(app) == before
        assert not app.chat.conversation.following


async def test_who_follows_the_end_follows_it_when_the_rest_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = _Slow(monkeypatch)
    app = slow.app
    async with app.run_test(size=WIDE) as pilot:
        slow.go_on.set()
        await until(pilot, lambda: len(app.chat.conversation.items) == 100)
        assert app.chat.conversation.following
