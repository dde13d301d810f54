"""Every place where a single key answers shares one guard: what nobody meant answers nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from textual import events
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget

from tests.support.script import MODEL
from tests.support.world import World
from tests.ui.screens.driving import running, until
from tests.ui.toolkit.test_key_parser import Keyboard
from tui.app.damage_report import Damage
from tui.app.dialog_data import (
    AnswerOption,
    ChoiceQuestion,
    FailedRequest,
    RecoveryOption,
    YesNoQuestion,
)
from tui.core.facts import RetryScheduled
from tui.core.questions import AnswerChoice, UserQuestion
from tui.permissions.types import Answer, Call, Decision
from tui.ui.app import HoldfastApp
from tui.ui.screens.plan import PlanModal
from tui.ui.screens.recovery import RecoveryScreen
from tui.ui.screens.repair import RepairScreen
from tui.ui.toolkit import answer_guard
from tui.ui.toolkit.answer_guard import (
    DRAFTED,
    HELD_S,
    INTO_DRAFT,
    PASTED,
    QUIET_S,
    REPORTS,
    SETTLED_S,
    TYPING_S,
    AnswerPlace,
)
from tui.ui.toolkit.base_screen import BaseScreen
from tui.ui.toolkit.key_parser import DoubtfulKey, Unclassified
from tui.ui.widgets.answer_field import AnswerField
from tui.ui.widgets.approval import ApprovalModal
from tui.ui.widgets.questionnaire import QuestionnaireModal
from tui.ui.widgets.questions import ChoiceDialog, Confirmation
from tui.ui.widgets.resume_card import OpenItem, ResumeCard

Answers = list[object]
SURE: Final = max(QUIET_S, SETTLED_S, TYPING_S) + 0.1
"""After this long without a key, one counts."""
DRAFT: Final = "first look at"

OPTIONS = (AnswerOption("a", "Do it", "do"), AnswerOption("b", "Leave it", "leave"))
DIALOGS: Final[dict[str, tuple[Callable[[], Screen[Any]], str]]] = {
    "approval": (
        lambda: ApprovalModal(
            Call("t1", "run_command", "run", "make", "make", always=("run_command(make)",)),
            Decision("ask", "it may change something", "default", "standard"),
        ),
        "1",
    ),
    "the model's question": (
        lambda: QuestionnaireModal(
            (UserQuestion("Which one?", "choice", (AnswerChoice("this"), AnswerChoice("that"))),),
            "",
        ),
        "2",
    ),
    "plan": (lambda: PlanModal("a plan", "- one\n- two"), "1"),
    "recovery": (
        lambda: RecoveryScreen(
            FailedRequest("refused", "no", (RecoveryOption("retry", "Retry", "again"),))
        ),
        "1",
    ),
    "choice": (lambda: ChoiceDialog(ChoiceQuestion("Which?", "", OPTIONS, unasked=True)), "a"),
    "confirmation": (
        lambda: Confirmation(YesNoQuestion("Sure?", "", "Yes", "No", unasked=True)),
        "y",
    ),
    "what was asked for": (lambda: Confirmation(YesNoQuestion("Delete?", "", "Yes", "No")), "y"),
}
"""What opens each, and a key that answers it."""


IN_SHORT = ("approval", "the model's question", "plan")
"""The dialogs that every change is tried on; the others, which have the same guard, are slow."""


@pytest.fixture(
    params=[
        pytest.param(kind, marks=() if kind in IN_SHORT else pytest.mark.slow) for kind in DIALOGS
    ]
)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Asked:
    """A dialog over the chat; `answers` holds what it was dismissed with."""

    def __init__(self, world: World, app: HoldfastApp, pilot: Pilot[None], kind: str) -> None:
        make, self.key = DIALOGS[kind]
        self.world, self.app, self.pilot = world, app, pilot
        self.screen, self.answers = make(), Answers()

    async def press(self, *keys: str, after: float = SURE) -> None:
        """Press each key, with so much time before it."""
        for key in keys:
            self.world.clock.elapsed += after
            await self.pilot.press(key)

    @property
    def foot(self) -> str:
        return str(self.screen.query_one("#box").border_subtitle)

    @property
    def draft(self) -> str:
        return self.app.chat.prompt.text


@asynccontextmanager
async def asked(kind: str, draft: str = "") -> AsyncGenerator[Asked]:
    world = World()
    async with running(world) as (app, pilot):
        app.chat.prompt.insert(draft)
        await pilot.pause()
        there = Asked(world, app, pilot, kind)
        app.push_screen(there.screen, there.answers.append)
        await until(pilot, lambda: app.screen is there.screen and there.screen.is_mounted)
        await pilot.pause()
        yield there


@pytest.mark.parametrize("erased", ["backspace", "delete", "ctrl+w"])
async def test_enter_right_after_a_key_that_erases_only_selects(kind: str, erased: str) -> None:
    async with asked(kind) as there:
        await there.press(erased)
        await there.press("enter", after=0.01)
        assert there.answers == []


@pytest.mark.parametrize("key", ["enter", "an answer"])
async def test_a_key_before_a_question_is_on_the_screen_answers_nothing(
    kind: str, key: str
) -> None:
    world = World()
    async with running(world) as (app, pilot):
        there = Asked(world, app, pilot, kind)
        world.clock.elapsed += SURE
        app.push_screen(there.screen, there.answers.append)
        pressed = key if key == "enter" else there.key
        typed = None if key == "enter" else there.key
        await app.pass_on(events.Key(pressed, typed))  # in the time until it is mounted
        await until(pilot, lambda: there.screen.is_mounted)
        await pilot.pause()
        assert there.answers == []
        unasked = isinstance(there.screen, AnswerPlace) and there.screen.unasked
        # Only what comes by itself can meet a text: a key after one's own command was its answer.
        assert there.draft == (typed or "" if unasked else "")


async def test_without_a_draft_one_press_answers(kind: str) -> None:
    async with asked(kind) as there:
        await there.press(there.key)
        await until(there.pilot, lambda: len(there.answers) == 1)


async def test_with_a_draft_the_first_press_only_selects(kind: str) -> None:
    async with asked(kind, DRAFT) as there:
        cursor = there.app.chat.prompt.cursor_location
        await there.press(there.key)
        assert f"Press {there.key} again" in there.foot
        assert there.answers == []
        await there.press(there.key)
        await until(there.pilot, lambda: len(there.answers) == 1)
        await there.pilot.pause()
        assert (there.draft, there.app.chat.prompt.cursor_location) == (DRAFT, cursor)


@pytest.mark.parametrize("width", [120, 40])
async def test_a_dialog_says_from_the_start_that_a_draft_asks_for_two_presses(
    kind: str, width: int
) -> None:
    async with asked(kind, DRAFT) as there:
        await there.pilot.resize_terminal(width, 12)
        await until(there.pilot, lambda: DRAFTED in there.foot)
        await there.press(there.key, there.key)
        await until(there.pilot, lambda: len(there.answers) == 1)


async def test_without_a_draft_it_says_nothing(kind: str) -> None:
    async with asked(kind) as there:
        assert DRAFTED not in there.foot


async def test_a_sentence_that_begins_with_an_answer_goes_on_into_the_draft(kind: str) -> None:
    async with asked(kind, DRAFT) as there:
        await there.press("space", there.key, "space", after=SURE)
        await there.press("m", "e", there.key, there.key, after=QUIET_S)
        assert there.answers == []
        assert there.draft == f"{DRAFT} {there.key} me{there.key}{there.key}"
        assert INTO_DRAFT in there.foot


async def test_the_same_key_twice_in_a_word_is_no_answer(kind: str) -> None:
    async with asked(kind, DRAFT) as there:
        await there.press(there.key)
        await there.press(there.key, "o", after=0.1)
        assert there.answers == []
        assert there.draft == f"{DRAFT}{there.key * 2}o"


@pytest.mark.parametrize("key", ["enter", "escape"])
async def test_enter_and_esc_answer_a_draft_no_sooner(kind: str, key: str) -> None:
    async with asked(kind, DRAFT) as there:
        await there.press(key)
        assert there.answers == []
        assert f"Press {'Enter' if key == 'enter' else 'Esc'} again" in there.foot
        await there.press(key, after=QUIET_S / 2)
        assert there.answers == []
        await there.press(key)
        await until(there.pilot, lambda: len(there.answers) == 1)
        assert there.draft == DRAFT


async def test_a_correction_while_typing_on_reaches_the_draft() -> None:
    async with asked("approval", DRAFT) as there:
        await there.press("1", "backspace", "x", "backspace", "backspace")
        assert there.draft == DRAFT[:-1]
        assert there.answers == []


@pytest.mark.parametrize(
    ("kind", "key", "note"),
    [
        ("approval", "4", "Press 4 again for “No, because…”."),
        ("approval", "y", "Press y again for “Yes”."),
        ("approval", "n", "Press n again for “No”."),
        ("approval", "escape", "Press Esc again for “No”."),
        ("approval", "enter", "Press Enter again for “Yes”."),
        ("the model's question", "2", "Press 2 again for “that”."),
        ("plan", "escape", "Press Esc again."),
        ("confirmation", "y", "Press y again for “Yes”."),
        ("confirmation", "escape", "Press Esc again."),
        ("recovery", "escape", "Press Esc again."),
    ],
)
async def test_the_note_names_the_answer_that_the_key_gives(kind: str, key: str, note: str) -> None:
    async with asked(kind, DRAFT) as there:
        await there.press(key)
        assert note in there.foot


@pytest.mark.parametrize("rest", ["e1e/2e2e\x1b\\", " then the tests", "\r", "\r\r"])
async def test_what_comes_all_at_once_is_no_answer(kind: str, rest: str) -> None:
    """The end of a reply whose beginning another program read, or a paste without marks."""
    async with asked(kind) as there:
        there.world.clock.elapsed += SURE
        keyboard = Keyboard()
        keyboard.read(f"{there.key}{rest}".encode())
        for message in keyboard.heard:
            there.app.post_message(message)
        await there.pilot.pause()
        assert there.answers == []


async def test_a_key_that_the_terminal_says_is_held_down_is_no_answer(kind: str) -> None:
    async with asked(kind) as there:
        there.world.clock.elapsed += SURE
        keyboard = Keyboard()
        code = {"enter": 13, "escape": 27}.get(there.key) or ord(there.key)
        keyboard.read(f"\x1b[{code};1:2u".encode())
        for message in keyboard.heard:
            there.app.post_message(message)
        await there.pilot.pause()
        assert there.answers == []


async def test_a_key_that_the_app_gets_to_late_is_as_doubtful_as_when_it_was_read() -> None:
    async with asked("approval") as there:
        keyboard = Keyboard()
        keyboard.read(b"\x1b[5k")
        keyboard.pause(SETTLED_S / 2)
        keyboard.read(b"1")
        unclassified, key = keyboard.heard
        there.app.post_message(unclassified)
        await there.pilot.pause()
        there.world.clock.elapsed += SURE  # the app is busy
        there.app.post_message(key)
        await there.pilot.pause()
        assert there.answers == []
        assert "Press 1 again" in there.foot


@pytest.mark.parametrize("key", ["", "enter", "escape"])
async def test_nothing_answers_within_a_second_of_what_is_unclassified(kind: str, key: str) -> None:
    async with asked(kind) as there:
        key = key or there.key
        there.world.clock.elapsed += SURE
        there.app.post_message(Unclassified("csi"))
        await there.pilot.press(key)
        assert there.answers == []
        assert "again" in there.foot
        await there.press(key, after=SETTLED_S + 0.1)
        await until(there.pilot, lambda: len(there.answers) == 1)
        assert there.draft == ""


async def test_reports_that_hold_the_keys_back_are_told(kind: str) -> None:
    async with asked(kind) as there:
        for _ in range(5):
            there.world.clock.elapsed += SETTLED_S - 0.2
            there.app.post_message(Unclassified("mouse"))
            await there.pilot.pause()
        assert REPORTS in there.foot
        await there.pilot.press(there.key)
        assert (there.answers, REPORTS in there.foot) == ([], True)
        await there.press(there.key)
        await until(there.pilot, lambda: len(there.answers) == 1)


@pytest.mark.parametrize("pressed", [False, True])
async def test_it_is_told_only_as_long_as_they_do(
    monkeypatch: pytest.MonkeyPatch, *, pressed: bool
) -> None:
    monkeypatch.setattr(answer_guard, "SETTLED_S", 0.01)
    async with asked("approval") as there:
        there.app.post_message(Unclassified("dcs", HELD_S + 1))
        await there.pilot.pause()
        if pressed:
            await there.pilot.press(there.key)
        assert REPORTS in there.foot
        there.world.clock.elapsed += SURE
        await until(there.pilot, lambda: REPORTS not in there.foot)
        assert ("Press 1 again" in there.foot) == pressed
        assert there.answers == []


async def test_what_is_told_of_the_keys_fits_a_narrow_terminal(kind: str) -> None:
    async with asked(kind) as there:
        await there.pilot.resize_terminal(40, 12)
        there.app.post_message(Unclassified("dcs", HELD_S + 1))
        await until(there.pilot, lambda: "Terminal reports hold keys back" in there.foot)
        assert "…" not in there.foot


async def test_one_that_held_the_keys_back_long_is_told() -> None:
    async with asked("approval") as there:
        there.world.clock.elapsed += SURE
        there.app.post_message(Unclassified("dcs", HELD_S + 1))
        await there.pilot.pause()
        assert REPORTS in there.foot


async def test_a_click_does_not_answer_in_the_wake_of_what_is_unclassified() -> None:
    async with asked("approval") as there:
        there.world.clock.elapsed += SURE
        there.app.post_message(Unclassified("mouse"))
        await there.pilot.click("#always")
        assert there.answers == []
        there.world.clock.elapsed += SURE
        await there.pilot.click("#always")
        await until(there.pilot, lambda: len(there.answers) == 1)


@pytest.mark.parametrize("draft", ["", DRAFT])
async def test_a_paste_answers_nothing_and_is_not_lost(kind: str, draft: str) -> None:
    async with asked(kind, draft) as there:
        there.world.clock.elapsed += SURE
        there.app.post_message(events.Paste(f"{there.key}\nmore"))
        await there.pilot.pause()
        assert there.answers == []
        assert there.draft == f"{draft}{there.key}\nmore"
        assert PASTED in there.foot


async def test_all_lines_of_a_paste_arrive_in_the_field_of_a_question() -> None:
    async with asked("approval", DRAFT) as there:
        await there.press("4", "4")
        there.app.post_message(events.Paste("one\ntwo\nthree"))
        await there.pilot.pause()
        field = there.screen.query_one(AnswerField)
        assert field.text == "one\ntwo\nthree"
        assert field.size.height == 3
        await there.press("enter")
        await until(there.pilot, lambda: there.answers == [Answer("no", "one\ntwo\nthree")])
        assert there.draft == DRAFT


async def test_alt_and_a_digit_are_no_way_out() -> None:
    async with asked("approval", DRAFT) as there:
        for _ in range(3):
            there.world.clock.elapsed += SURE
            there.app.post_message(events.Key("alt+1", None))
        await there.pilot.pause()
        assert there.answers == []


async def test_ctrl_c_is_never_held_back(kind: str) -> None:
    async with asked(kind, DRAFT) as there:
        if "ctrl+c" in there.screen.active_bindings and kind not in {
            "approval",
            "the model's question",
            "plan",  # there it stops the agent, who takes the question away
        }:
            there.app.post_message(Unclassified("csi"))
            await there.pilot.press("ctrl+c")
            await until(there.pilot, lambda: len(there.answers) == 1)


async def test_a_page_that_turns_waits_for_quiet_again() -> None:
    pages = tuple(
        UserQuestion(f"{n}?", "choice", (AnswerChoice("a"), AnswerChoice("b"))) for n in range(2)
    )
    world = World()
    async with running(world) as (app, pilot):
        modal, answers = QuestionnaireModal(pages, ""), Answers()
        app.push_screen(modal, answers.append)
        await pilot.pause()
        world.clock.elapsed += SURE
        await pilot.press("1", "1")
        await pilot.pause()
        assert answers == []
        world.clock.elapsed += SURE
        await pilot.press("1")
        await until(pilot, lambda: len(answers) == 1)


async def test_a_key_for_a_dialog_that_closes_by_itself_answers_nothing_below_it(kind: str) -> None:
    async with asked(kind) as there:
        above = Confirmation(YesNoQuestion("Sure?", "", "Yes", "No", unasked=True))
        there.app.push_screen(above)
        await until(there.pilot, lambda: there.app.screen is above)
        there.world.clock.elapsed += SURE
        above.dismiss(False)
        await until(there.pilot, lambda: there.app.screen is there.screen)
        await there.press(there.key, after=0.1)
        await there.pilot.pause()
        assert there.answers == []
        await there.press(there.key)
        await until(there.pilot, lambda: len(there.answers) == 1)


async def test_typing_goes_on_in_a_field_if_the_terminal_did_not_tell_of_a_return() -> None:
    async with asked("approval", DRAFT) as there:
        there.world.clock.elapsed += SURE
        await there.pilot.click("#no")
        field = there.screen.query_one(AnswerField)
        await until(there.pilot, lambda: field.has_focus)
        there.app.post_message(events.AppBlur())
        await until(there.pilot, lambda: not field.has_focus)
        await there.press("1")
        there.app.post_message(events.AppBlur())
        await until(there.pilot, lambda: not field.has_focus)
        await there.press("1")
        await there.pilot.pause()
        assert (there.answers, field.text) == ([], "11")


@pytest.mark.parametrize(
    "sent",
    [
        b"\x1b[0;1;49:32:102u",  # the words of an input method
        b"\x1b[49;;49u\x1b[32;;32u\x1b[102;;102u",  # several keys after a pause of the line
        b"\x1b/",
    ],
)
async def test_keys_that_come_in_one_read_answer_nothing(sent: bytes) -> None:
    async with asked("approval") as there:
        there.world.clock.elapsed += SURE
        for message in Keyboard().parser.feed(sent):
            there.app.post_message(message)
        await there.pilot.pause()
        await there.pilot.pause()
        assert there.answers == []


# In the chat


@asynccontextmanager
async def with_card() -> AsyncGenerator[tuple[World, HoldfastApp, Pilot[None], Answers]]:
    world, chosen = World(), Answers()

    async def act(name: str) -> None:
        chosen.append(name)

    async with running(world) as (app, pilot):
        card = ResumeCard([OpenItem("write_file", "a.py", "never started")], [], act)
        await app.chat.query_one("#left").mount(card, before="#notice")
        await pilot.pause()
        yield world, app, pilot, chosen


async def test_the_resume_card_waits_for_a_second_press_over_a_draft() -> None:
    async with with_card() as (world, app, pilot, chosen):
        app.chat.prompt.insert(DRAFT)
        await pilot.press("tab", "t")
        assert chosen == []
        assert "Press t again" in app.chat.notice.text
        world.clock.elapsed += SURE
        await pilot.press("h")
        await until(pilot, lambda: app.chat.prompt.text == f"{DRAFT}th")
        assert chosen == []
        app.chat.prompt.put("")
        await pilot.press("tab")
        world.clock.elapsed += SURE
        await pilot.press("t")
        await until(pilot, lambda: chosen == ["tell"])


async def test_the_banner_waits_for_a_second_press_over_a_draft() -> None:
    world = World()
    async with running(world) as (app, pilot):
        app.chat.retry.wait(RetryScheduled(2, 3, 40.0, "busy", 429, "rate_limit", "req_1", 11))
        app.chat.retry.other = MODEL
        app.chat.prompt.insert(DRAFT)
        app.chat.retry.focus()
        await pilot.pause()
        await pilot.press("r")
        assert "Press r again" in app.chat.notice.text
        world.clock.elapsed += SURE
        await pilot.press("e")
        await until(pilot, lambda: app.chat.prompt.text == f"{DRAFT}re")


@pytest.mark.parametrize(
    "sent",
    [
        (Unclassified("csi"), events.Key("1", "1")),
        (DoubtfulKey(events.Key("1", "1"), follows=False),),  # the beginning of a text
    ],
)
async def test_a_row_of_a_new_session_is_not_chosen_by_accident(
    sent: tuple[events.Event, ...],
) -> None:
    world = World()
    world.add_row("the old one", hours=2)
    async with running(world) as (app, pilot):
        await until(pilot, lambda: bool(app.chat.start and app.chat.start.rows))
        for event in sent:
            app.post_message(event)
        await until(pilot, lambda: bool(app.chat.prompt.text))
        assert app.chat.prompt.text == "1"
        assert len(world.agents) == 1


async def test_a_key_that_acts_at_once_is_held_back_as_well() -> None:
    world = World()
    async with running(world) as (app, pilot):
        await pilot.press("f2")
        await until(pilot, lambda: len(app.screen_stack) > 1)
        app.post_message(Unclassified("csi"))
        app.screen.set_focus(None)
        before = app.screen
        await pilot.press("b")
        assert app.screen is before
        world.clock.elapsed += SURE
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)


async def test_the_damage_of_a_session_is_decided_by_the_same_guard(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.add_row("fix the flaky test", hours=2)
    async with running(world) as (app, pilot):
        answers = Answers()
        app.chat.prompt.insert(DRAFT)
        app.push_screen(RepairScreen(Damage(world.rows[0].path, (), ()), None), answers.append)
        await pilot.pause()
        await pilot.press("c")
        assert answers == []
        world.clock.elapsed += SURE
        await pilot.press("c")
        await until(pilot, lambda: answers == ["continue"])


def test_whoever_is_waited_for_is_guarded() -> None:
    def below(kind: type[Widget]) -> list[type[Widget]]:
        return [kind, *(deep for one in kind.__subclasses__() for deep in below(one))]

    waiting = [kind for kind in below(BaseScreen) if getattr(kind, "awaited", False)]
    assert len(waiting) > 8
    asked_there = {"SideQuestionScreen"}  # the person asks, and answers nothing
    unguarded = {kind.__name__ for kind in waiting if not issubclass(kind, AnswerPlace)}
    assert unguarded <= asked_there


@pytest.mark.parametrize("typed", ["１", "१", "۱", "๑"])
async def test_a_digit_of_another_script_answers_and_stays_itself_in_a_text(typed: str) -> None:
    async with asked("approval") as there:
        await there.press(typed)
        await until(there.pilot, lambda: len(there.answers) == 1)
    async with asked("approval", DRAFT) as there:
        await there.press(typed)
        await there.press("x", after=0.01)
        assert there.answers == []
        assert typed in there.draft
