"""A key held too long, and what is typed while a question opens by itself, answer nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input, Static

from tests.support.script import Ask
from tests.support.world import OldSession, World
from tests.ui.screens.driving import answer, app_of, running, say, until
from tests.ui.screens.test_answers_by_a_key import DRAFT, SURE, asked
from tests.ui.screens.test_approval import ASKED, WRITE
from tests.ui.screens.test_approval import asked as approval
from tests.ui.toolkit.test_key_parser import Keyboard
from tui.app.dialog_data import Account, AnswerOption, ChoiceQuestion
from tui.app.services import SessionChoice
from tui.core.errors import CredentialsError, SessionInUseError
from tui.permissions.types import Answer
from tui.session.records import Finding
from tui.settings.trust import TrustItem
from tui.ui.screens.repair import RepairScreen
from tui.ui.screens.welcome import WelcomeScreen
from tui.ui.toolkit.answer_guard import INTO_DRAFT, QUIET_S
from tui.ui.widgets.answer_field import AnswerField
from tui.ui.widgets.questions import ChoiceDialog

REPEAT_S = 0.03
"""The time between two presses of a key that is held down."""


def damaged(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.add_row("fix the flaky test", hours=1)
    world.old[world.rows[0].path] = OldSession(findings=(Finding("B52", "line 4", "skipped"),))
    return world


@pytest.mark.parametrize(
    ("opens", "held"),
    [
        (("f1",), "escape"),
        (("f2",), "escape"),
        (("f3",), "escape"),
        (("f6",), "escape"),
        (("f12",), "escape"),
        (("ctrl+p", "h", "e", "l", "p"), "enter"),
    ],
    ids=str,
)
async def test_a_key_held_on_what_covered_an_approval_does_not_answer_it(
    opens: tuple[str, ...], held: str
) -> None:
    async with approval(Ask(WRITE, ASKED), *answer("done")) as (world, app, pilot):
        modal = app.screen
        world.clock.elapsed += SURE
        await pilot.press(*opens)
        await until(pilot, lambda: app.screen is not modal)
        world.clock.elapsed += SURE
        for _ in range(20):
            await pilot.press(held)
            await pilot.pause()
            world.clock.elapsed += REPEAT_S
        assert world.agent.answers == []
        if app.screen is not modal:  # it was held since another screen, so it left nothing open
            world.clock.elapsed += SURE
            await pilot.press("escape")
        await until(pilot, lambda: app.screen is modal)
        for _ in range(2):
            world.clock.elapsed += SURE
            await pilot.press("1")
        await until(pilot, lambda: world.agent.answers == [Answer("once")])


async def test_another_key_answers_as_soon_as_the_approval_is_seen_again() -> None:
    async with approval(Ask(WRITE, ASKED), *answer("done")) as (world, app, pilot):
        modal = app.screen
        world.clock.elapsed += SURE
        await pilot.press("f1")
        await until(pilot, lambda: app.screen is not modal)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is modal)
        world.clock.elapsed += REPEAT_S
        await pilot.press("1")
        await until(pilot, lambda: world.agent.answers == [Answer("once")])


async def test_the_enter_that_answers_sends_no_draft_with_it() -> None:
    async with approval(Ask(WRITE, ASKED), *answer("done")) as (world, app, pilot):
        app.chat.prompt.insert(DRAFT)
        for _ in range(2):
            world.clock.elapsed += SURE
            await pilot.press("enter")
        await until(pilot, lambda: app.screen is app.chat)
        app.chat.prompt.focus()
        for _ in range(20):
            world.clock.elapsed += REPEAT_S
            await pilot.press("enter")
        assert app.chat.prompt.text == DRAFT
        assert "Press Enter again" in app.chat.notice.text
        world.clock.elapsed += SURE
        await pilot.press("enter")
        await until(pilot, lambda: app.chat.prompt.text == "")


async def test_a_key_held_on_one_thing_does_not_trust_the_next() -> None:
    world = World()
    world.undecided = tuple(TrustItem(f"hook {n}", f"Runs {n}", str(n)) for n in range(3))
    async with running(world) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        world.clock.elapsed += SURE
        first = app.screen
        await pilot.press("c")
        await until(pilot, lambda: app.screen is not first)
        world.clock.elapsed += SURE
        for _ in range(20):
            await pilot.press("y")
            await pilot.pause()
            world.clock.elapsed += REPEAT_S
        assert isinstance(app.screen, ChoiceDialog)
        assert "2 of 3" in app.screen.title_text
        assert world.granted == []


async def test_a_command_sent_by_a_key_that_is_held_answers_nothing_it_asks() -> None:
    world = World()
    async with running(world) as (app, pilot):
        options = (AnswerOption("a", "Do it", "do"), AnswerOption("b", "Leave it", "leave"))
        answers: list[object] = []
        await say(pilot, "/nothing")
        app.push_screen(ChoiceDialog(ChoiceQuestion("Which?", "", options)), answers.append)
        await pilot.pause()
        for _ in range(20):
            world.clock.elapsed += REPEAT_S
            await pilot.press("enter")
        assert answers == []
        world.clock.elapsed += QUIET_S
        await pilot.press("enter")
        await until(pilot, lambda: answers == ["do"])


@pytest.mark.parametrize("command", ["/theme", "/resume"])
async def test_a_key_held_since_before_a_list_opened_chooses_nothing_in_it(
    tmp_path: Path, command: str
) -> None:
    world = World(tmp_path)
    world.add_row("another", hours=1)
    async with running(world) as (app, pilot):
        await say(pilot, command)
        await until(pilot, lambda: app.screen is not app.chat)
        listed, opened = app.screen, len(world.chosen)
        for _ in range(20):
            world.clock.elapsed += REPEAT_S
            await pilot.press("enter")
        await pilot.pause()
        assert app.screen is listed
        assert len(world.chosen) == opened
        world.clock.elapsed += QUIET_S
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is not listed)


async def test_a_prompt_typed_while_a_damaged_session_opens_decides_nothing(tmp_path: Path) -> None:
    world = damaged(tmp_path)
    async with running(world, choice=SessionChoice(world.rows[0].path)) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, RepairScreen))
        for key in ("w", "r", "i", "t", "e"):
            await pilot.press(key)
            world.clock.elapsed += 0.1
        await pilot.pause()
        assert isinstance(app.screen, RepairScreen)
        assert app.chat.prompt.text == "write"
        assert INTO_DRAFT in str(app.screen.query_one("#effect", Static).render())
        assert len(world.chosen) == 1


async def test_a_prompt_typed_while_a_session_in_use_opens_takes_nothing_over() -> None:
    world = World()
    world.add_row("busy", hours=1)
    world.refusals.append(SessionInUseError("It is open in process 1."))
    app = app_of(world, choice=SessionChoice(world.rows[0].path))
    async with app.run_test() as pilot:
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await pilot.press("t", "r", "y")
        await pilot.pause()
        assert isinstance(app.screen, ChoiceDialog)
        assert app.chat.prompt.text == "try"
        assert len(world.chosen) == 1


async def test_enter_pressed_while_the_first_screen_opens_chooses_no_connection() -> None:
    world = World()
    world.account = Account(sign_in="work")
    world.refusals.append(CredentialsError("No API key found."))
    async with running(world) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, WelcomeScreen)
        assert world.set_up_with == []


@pytest.mark.parametrize(
    ("pasted", "text"), [("no\r", "no"), ("1\ry\r", "1\ny\n"), ("1\ry\r1\ry\r", "1\ny\n1\ny\n")]
)
async def test_lines_pasted_without_marks_into_the_field_of_a_question_do_not_end_it(
    pasted: str, text: str
) -> None:
    async with asked("approval") as there:
        await there.press("4")
        field = there.screen.query_one(AnswerField)
        await until(there.pilot, lambda: field.has_focus)
        there.world.clock.elapsed += SURE
        keyboard = Keyboard()
        keyboard.read(pasted.encode())
        for message in keyboard.heard:
            there.app.post_message(message)
        await until(there.pilot, lambda: field.text == text)
        assert there.answers == []
        assert "\n" in text or "Press Enter again" in there.foot
        await there.press("enter")
        await until(there.pilot, lambda: there.answers == [Answer("no", text.strip())])


async def test_a_key_pasted_without_marks_is_not_kept_before_enter_is_pressed() -> None:
    world = World()
    world.refusals.append(CredentialsError("No API key found."))
    async with running(world) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        world.clock.elapsed += SURE
        keyboard = Keyboard()
        keyboard.read(b"explain this project\r")
        for message in keyboard.heard:
            app.post_message(message)
        field = app.screen.query_one("#key", Input)
        await until(pilot, lambda: field.value == "explain this project")
        await pilot.pause()
        assert world.set_up_with == []
