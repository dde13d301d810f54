"""A key without a use of its own does what other programs do with it, or says so once."""

from __future__ import annotations

import pytest

from tests.support.script import Ask
from tests.support.world import World
from tests.ui.screens.driving import answer, running, say, turn, until
from tests.ui.screens.test_approval import ASKED, WRITE
from tui.app.dialog_data import AnswerOption, ChoiceQuestion
from tui.core.config import Config
from tui.ui.screens.help import HelpScreen
from tui.ui.screens.picker import PickScreen
from tui.ui.widgets.questions import Choice, ChoiceDialog


def picker() -> PickScreen:
    return PickScreen("list", [[(str(number), "text")] for number in range(5)])


async def test_the_keys_of_other_programs_move_choose_and_leave() -> None:
    async with running(World()) as (app, pilot):
        left: list[int | None] = []
        app.push_screen(screen := picker(), left.append)
        await pilot.pause()
        for keys, row in (("j j", 2), ("k", 1), ("G", 4), ("g", 0), ("ctrl+n", 1)):
            await pilot.press(*keys.split())
            assert screen.rows.cursor == row, keys
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)
        await pilot.press("space")
        await until(pilot, lambda: left == [1])


async def test_a_key_of_ones_own_goes_first() -> None:
    world = World()
    world.config = Config(keys={"find": "ctrl+n"})
    async with running(world) as (app, pilot):
        await pilot.press("ctrl+n")
        await until(pilot, lambda: app.chat.left.finding)


async def test_a_key_that_does_nothing_says_so_once() -> None:
    world = World()
    async with running(world) as (app, pilot):
        await pilot.press("alt+w")
        assert "Ctrl+T" in app.chat.notice.text
        app.chat.notice.clear()
        await pilot.press("alt+w")
        assert app.chat.notice.text == ""
        await pilot.press("f11")
        assert app.chat.notice.text == "· F11 does nothing here. F1 shows the keys."
        await pilot.press("x")
        assert app.chat.notice.text == ""
        assert app.chat.prompt.text == "x"


@pytest.mark.parametrize("key", ["q", "question_mark", "j", "G"])
async def test_an_approval_that_opens_by_itself_takes_none_of_them(key: str) -> None:
    world = World()
    world.scripts.append(turn(Ask(WRITE, ASKED), *answer("done")))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.screen is not app.chat)
        modal, focused = app.screen, app.screen.focused
        world.clock.elapsed += 10
        await pilot.press(key)
        assert app.screen is modal
        assert app.screen.focused is focused
        assert world.agent.answers == []


async def test_no_letter_moves_through_a_question_or_leaves_it() -> None:
    """Not one that was asked for either: where letters answer, a letter is an answer or text."""
    async with running(World()) as (app, pilot):
        options = (AnswerOption("a", "One", "one"), AnswerOption("b", "Two", "two"))
        app.push_screen(dialog := ChoiceDialog(ChoiceQuestion("t", "text", options)))
        await pilot.pause()
        first, second = list(dialog.query(Choice))[:2]
        for key in ("h", "j", "k", "l", "g", "G", "q"):
            await pilot.press(key)
            assert dialog.focused is first
        assert app.screen is dialog
        await pilot.press("down")
        assert dialog.focused is second


async def test_ctrl_x_alone_cuts_no_line() -> None:
    async with running(World()) as (app, pilot):
        await pilot.press("a", "b", "ctrl+x")
        assert app.chat.prompt.text == "ab"
        await pilot.press("shift+left", "ctrl+x")
        assert app.chat.prompt.text == "a"


async def test_think_is_switched_by_its_key() -> None:
    world = World()
    async with running(world) as (_, pilot):
        await pilot.press("alt+t")
        await until(pilot, lambda: world.agent.directives.think)
        await pilot.press("alt+t")
        await until(pilot, lambda: not world.agent.directives.think)
