"""What real terminals say by themselves answers no question and types nothing, however it comes."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.support.script import Ask
from tests.support.world import World
from tests.terminals import recorded
from tests.ui.screens.driving import answer, begun, running
from tests.ui.screens.test_approval import ASKED, RUN, WRITE
from tests.ui.screens.test_approval import asked as approval
from tests.ui.screens.test_plan import presented
from tests.ui.screens.test_questionnaire import DATABASE, EXTRAS
from tests.ui.screens.test_questionnaire import asked as questions
from tests.ui.toolkit.test_key_parser import Keyboard
from tui.ui.app import HoldfastApp

NAMES = ("BURST", "OSC11", "OSC4;1", "DA1", "XTVERSION", "CSI18t", "1003+1006 drag", "1003 far")
REPLIES = [
    one for one in recorded("query", "mouse", "focus") if one.name.startswith(NAMES) and one.data
]
PAUSES = (0.0, 0.4, 10.0)


def pieces() -> Generator[tuple[bytes, float, bytes]]:
    """Replies whole, and cut behind the second byte, in the middle and before the last one."""
    for number, reply in enumerate(REPLIES):
        size = len(reply.data)
        for cut in {2, size // 2, size - 1, size}:
            yield reply.data[:cut], PAUSES[(number + cut) % 3], reply.data[cut:]


async def attack(app: HoldfastApp, pilot: Pilot[None], open_: Callable[[], bool]) -> None:
    """Send all of them, as the driver does; the question must still be open, and nothing typed."""
    for begin, pause, rest in pieces():
        keyboard = Keyboard()
        keyboard.read(begin)
        keyboard.pause(pause)
        keyboard.read(rest)
        keyboard.pause(10.0)
        for message in keyboard.heard:
            message.set_sender(app)
            app.post_message(message)
        await pilot.pause()
        assert open_(), (begin, pause, rest)
    assert app.chat.prompt.text == ""


@pytest.mark.parametrize("call", [WRITE, RUN], ids=["write", "command"])
async def test_an_approval(call: Any) -> None:
    async with approval(Ask(call, ASKED), *answer("done")) as (world, app, pilot):
        world.clock.elapsed += 1
        shown = app.screen
        await attack(app, pilot, lambda: app.screen is shown)


@pytest.mark.parametrize("question", [DATABASE, EXTRAS], ids=["one", "several"])
async def test_the_questions_of_the_model(question: dict[str, Any]) -> None:
    async with questions(question) as (world, app, pilot):
        world.clock.elapsed += 1
        shown = app.screen
        await attack(app, pilot, lambda: app.screen is shown)


async def test_a_plan(tmp_path: Path) -> None:
    async with presented(tmp_path) as (world, app, pilot):
        world.clock.elapsed += 1
        shown = app.screen
        await attack(app, pilot, lambda: app.screen is shown)


async def test_the_prompt() -> None:
    async with running(World()) as (app, pilot):
        await begun(app, pilot)
        app.chat.prompt.focus()
        await attack(app, pilot, lambda: app.chat.prompt.text == "" and app.screen is app.chat)
