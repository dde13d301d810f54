"""What is pressed before a session is open does what it does afterwards, in its order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.events import Key
from textual.keys import _character_to_key  # pyright: ignore[reportPrivateUsage]
from textual.pilot import Pilot
from textual.widgets import Input

from tests.support.desk import FakeHost
from tests.support.idle import threads_held
from tests.support.world import World
from tests.ui.screens.driving import WIDE, until
from tests.ui.screens.test_first_run import MODEL_SET
from tui.agent.agent import Agent
from tui.app.commands.table import COMMANDS
from tui.app.services import Opening, SessionChoice
from tui.core.config import McpServer
from tui.permissions.types import Approver
from tui.tools.mcp import McpPrompt, Server
from tui.ui.app import HoldfastApp
from tui.ui.desk import over_chat
from tui.ui.screens.chat import ChatScreen
from tui.ui.screens.context import ContextScreen
from tui.ui.screens.help import HelpScreen
from tui.ui.widgets.conversation.items import NoticeItem
from tui.ui.widgets.keys import APP_KEYS, CHAT_KEYS, PROMPT_KEYS
from tui.ui.widgets.questions import ChoiceDialog

_ASIDE = {"ctrl+c", "ctrl+q", "ctrl+z", "ctrl+l"}
"""They stop, leave or redraw, and never wait."""
KEYS = sorted(
    {
        key
        for row in (*PROMPT_KEYS, *CHAT_KEYS, *APP_KEYS)
        for key in row.keys.split(",")
        if key and key not in _ASIDE
    }
    | {"home", "end", "question_mark", "left", "backspace"}
)
_LEAVING = {"quit", "tour", "drill"}
"""Commands that end the program, or hand the terminal over."""
LINES = [f"/{c.name}" for c in COMMANDS if c.name not in _LEAVING] + ["/unknown"]


class Slow:
    """A program that loads and opens a session only when it is let."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._load, self._open = threading.Event(), asyncio.Event()
        self._held = ExitStack()
        self._held.enter_context(threads_held())
        services = world.services()

        async def make(choice: SessionChoice, approver: Approver) -> Agent:
            await self._open.wait()
            return await services.make_agent(choice, approver)

        def load() -> Opening:
            self._load.wait()
            return Opening(services=replace(services, make_agent=make), choice=SessionChoice())

        self.app = HoldfastApp(load, clock=world.clock, version="1.2.3")

    def go_on(self) -> None:
        self.load()
        self._open.set()

    def load(self) -> None:
        self._held.close()
        self._load.set()

    async def reach(self, pilot: Pilot[None], stage: str) -> None:
        """Come to a stage: nothing is loaded, no session is open, or all is there."""
        if stage != "loading":
            self.load()
            await until(pilot, lambda: self.app.ready and self.app.conversation.opening)
        if stage == "open":
            self._open.set()
            await until(pilot, lambda: self.app.conversation.settled)


@asynccontextmanager
async def slowly(world: World) -> AsyncGenerator[tuple[Slow, Pilot[None]]]:
    slow = Slow(world)
    async with slow.app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        try:
            yield slow, pilot
        finally:
            slow.go_on()


async def press(app: HoldfastApp, *keys: str) -> None:
    """Send keys as a terminal does: all at once, without waiting for what they do."""
    driver: Any = app._driver  # pyright: ignore[reportPrivateUsage]
    for key in keys:
        names = {"question_mark": "?", "space": " "}
        character = names.get(key, key if len(key) == 1 else None)
        name = key if len(key) > 1 or key.isalnum() else _character_to_key(key)
        driver.send_message(Key(name, character))


def seen(app: HoldfastApp, world: World) -> dict[str, object]:
    """What a person sees, and what was sent."""
    chat = app.chat
    return {
        "screen": type(app.screen).__name__,
        "prompt": chat.prompt.text,
        "notice": chat.notice.text,
        "focus": app.screen.focused.id if app.screen.focused else None,
        "classes": sorted(chat.classes),
        "mode": world.agent.permissions.mode,
        "effort": chat.header.state.effort,
        "finding": chat.left.finding,
        "sent": list(world.agent.sent),
        "reports": [i.text for i in chat.conversation.items if isinstance(i, NoticeItem)],
        "sessions": len(world.agents),
        "asleep": chat.prompt.stashed,
    }


async def outcome(folder: Path, stage: str, *keys: str) -> dict[str, object]:
    (folder / "work").mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HOLDFAST_HOME", str(folder / "home"))
        return await _outcome(World(folder / "work"), stage, *keys)


async def _outcome(world: World, stage: str, *keys: str) -> dict[str, object]:
    async with slowly(world) as (slow, pilot):
        await slow.reach(pilot, stage)
        await press(slow.app, *keys)
        await pilot.pause()
        slow.go_on()
        await until(pilot, lambda: slow.app.ready and slow.app.conversation.settled)
        await until(pilot, lambda: not slow.app.early)
        busy = ("command", "effort")
        await until(
            pilot,
            lambda: (
                not any(w.group in busy and w.is_running for w in slow.app.workers)
                or slow.app.screen is not slow.app.chat
            ),
        )
        before: dict[str, object] = {}
        while before != (now := seen(slow.app, world)):
            before = now
            for _ in range(3):
                await pilot.pause()
        return now


@pytest.fixture(autouse=True)
def no_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The desk of F7 is of no real machine: a real one takes time, and these clocks take none."""

    def hosts_of(*_: object, **__: object) -> list[FakeHost]:
        return [FakeHost("", [])]

    monkeypatch.setattr(over_chat, "hosts_of", hosts_of)


@pytest.mark.parametrize("key", KEYS)
async def test_a_key_pressed_early_does_what_it_does_later(tmp_path: Path, key: str) -> None:
    # Said before typing, or after.
    unsure = ("notice",) if key in {"alt+v", "ctrl+g", "ctrl+v", "f5"} else ()

    async def done(stage: str) -> dict[str, object]:
        seen = await outcome(tmp_path / stage, stage, "a", "b", key, "x", "y")
        return {name: value for name, value in seen.items() if name not in unsure}

    later = await done("open")
    for stage in ("loading", "opening"):
        assert await done(stage) == later


@pytest.mark.parametrize("line", LINES)
async def test_a_command_entered_early_does_what_it_does_later(tmp_path: Path, line: str) -> None:
    keys = [*line, "enter", "x", "y"]
    later = await outcome(tmp_path / "later", "open", *keys)
    assert later["prompt"] in {"", "xy", f"{line}xy"}
    assert await outcome(tmp_path / "early", "loading", *keys) == later


async def test_what_follows_a_command_goes_to_what_it_opens(tmp_path: Path) -> None:
    async with slowly(World(tmp_path)) as (slow, pilot):
        await slow.reach(pilot, "open")
        await press(slow.app, *"/find", "enter", "x", "y")
        await until(pilot, lambda: slow.app.chat.left.finding)
        await until(pilot, lambda: slow.app.chat.query_one("#find Input", Input).value == "xy")
        assert slow.app.chat.prompt.text == ""


async def test_a_slash_typed_early_shows_the_commands_once_they_are_known(tmp_path: Path) -> None:
    async with slowly(World(tmp_path)) as (slow, pilot):
        await press(slow.app, "/", "m", "o", "d")
        await slow.reach(pilot, "opening")
        popup = slow.app.chat.prompt.suggestions
        assert popup is not None
        assert popup.chosen is not None
        assert popup.chosen.value == "model"


async def test_esc_takes_back_what_was_sent_before_there_was_a_session(tmp_path: Path) -> None:
    async with slowly(World(tmp_path)) as (slow, pilot):
        await press(slow.app, "h", "i", "enter", "escape")
        await slow.reach(pilot, "opening")
        await until(pilot, lambda: slow.app.chat.prompt.text == "hi")
        assert slow.app.chat.queued.texts == ()
        await slow.reach(pilot, "open")
        assert slow.world.agent.sent == []
        assert slow.app.chat.prompt.text == "hi"


async def test_what_waits_is_shown_and_ctrl_c_drops_it(tmp_path: Path) -> None:
    async with slowly(World(tmp_path)) as (slow, pilot):
        await slow.reach(pilot, "opening")
        await press(slow.app, "f2", "h", "i")
        app = slow.app
        await until(pilot, lambda: "F2 hi wait for the session." in app.chat.notice.text)
        await press(app, "ctrl+c")
        await until(pilot, lambda: not app.early and app.chat.notice.text == "")
        slow.go_on()
        await until(pilot, lambda: app.conversation.settled)
        assert isinstance(app.screen, ChatScreen)
        assert app.chat.prompt.text == ""
        assert app.is_running


async def test_what_waits_answers_no_question_that_comes_meanwhile(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.undecided = (MODEL_SET,)
    async with slowly(world) as (slow, pilot):
        app = slow.app
        await press(app, "f2", "y", "enter")
        slow.load()
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await press(app, "f2")  # what it asks for waits too, and the question stays
        await pilot.pause()
        assert isinstance(app.screen, ChoiceDialog)
        assert world.granted == []
        world.clock.elapsed += 3
        await press(app, "n")
        await until(pilot, lambda: app.ready and app.conversation.opening)
        assert world.granted == [set()]
        slow.go_on()
        await until(pilot, lambda: isinstance(app.screen, ContextScreen))


async def test_a_prompt_of_a_server_that_is_being_started_waits_for_it(tmp_path: Path) -> None:
    world, up = World(tmp_path), asyncio.Event()
    server = Server("odd", McpServer(command="x"), tmp_path, tmp_path / "x.log", state="starting")

    async def prompt_text(_prompt: McpPrompt, arguments: str, _session: str) -> str:
        return f"Review {arguments}."

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(server.connection, "settled", up.wait)
        patched.setattr(server.calls, "prompt_text", prompt_text)
        world.mcp = (server,)
        async with slowly(world) as (slow, pilot):
            app = slow.app
            await slow.reach(pilot, "open")
            await press(app, *"/mcp__odd__review a.py", "enter")
            await until(pilot, lambda: "waits for the MCP servers" in app.chat.notice.text)
            await press(app, *"/mcp__o")
            popup = app.chat.prompt.suggestions
            assert popup is not None
            await until(pilot, lambda: app.chat.prompt.text == "/mcp__o")
            assert not popup.opened
            server.prompts = (McpPrompt("review", "Review a file.", (("path", True),)),)
            server.state = "ready"
            up.set()
            await until(pilot, lambda: bool(world.agent.sent))
            assert world.agent.sent == ["/mcp__odd__review a.py"]
            await until(pilot, lambda: popup.opened)


async def test_a_key_that_needs_no_session_holds_nothing_up(tmp_path: Path) -> None:
    async with slowly(World(tmp_path)) as (slow, pilot):
        await press(slow.app, "a", "escape", "up", "b")
        await pilot.pause()
        assert slow.app.chat.prompt.text == "a"
        await slow.reach(pilot, "opening")
        await until(pilot, lambda: slow.app.chat.prompt.text == "ab")
        await press(slow.app, "f1")
        await until(pilot, lambda: isinstance(slow.app.screen, HelpScreen))
