"""Keys around dialogs: what was meant for one sends nothing, and nothing that is typed is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import pytest
from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Input

from tests.support.script import Hold
from tests.support.world import OldSession, World, record
from tests.ui.screens.driving import running, say, turn, until
from tests.ui.screens.test_answers_by_a_key import DIALOGS, DRAFT, SURE, asked
from tests.ui.screens.test_pressed_early import press
from tests.ui.toolkit.test_key_parser import Keyboard
from tui.app.dialog_data import AnswerOption, ChoiceQuestion, YesNoQuestion
from tui.app.services import SessionChoice
from tui.core import clipboard
from tui.ui import frontend
from tui.ui.app import HoldfastApp
from tui.ui.screens.key_viewer import KeysScreen
from tui.ui.screens.picker import PickScreen
from tui.ui.toolkit.answer_guard import QUIET_S, REPEAT_S, SEND_AGAIN
from tui.ui.widgets.questions import AskText, ChoiceDialog, Confirmation

OPTIONS = (AnswerOption("a", "Do it", "do"), AnswerOption("b", "Leave it", "leave"))

UNASKED = ("approval", "the model's question", "plan", "choice", "confirmation")
"""The dialogs that open by themselves."""


def question(title: str = "Which?", *, unasked: bool = False) -> ChoiceQuestion:
    return ChoiceQuestion(title, "", OPTIONS, unasked=unasked)


async def sends(world: World, app: HoldfastApp, pilot: Pilot[None], key: str = "enter") -> bool:
    """Press Enter. True if it has sent the text in the prompt."""
    before = len(world.agent.sent)
    await pilot.press(key)
    await pilot.pause()
    return len(world.agent.sent) > before or not app.chat.prompt.text


async def begin(app: HoldfastApp, pilot: Pilot[None], work: Coroutine[Any, Any, None]) -> None:
    """Run a command, as the router does."""
    app.run_worker(app.frontend.run_command(work))
    await pilot.pause()


# Nothing is sent


async def test_an_enter_meant_for_a_dialog_that_closed_by_itself_sends_no_draft() -> None:
    world = World()
    async with running(world) as (app, pilot):
        app.chat.prompt.insert(DRAFT)
        dialog = ChoiceDialog(question(unasked=True))
        app.push_screen(dialog)
        await until(pilot, lambda: app.screen is dialog)
        world.clock.elapsed += SURE
        await pilot.press("down")
        world.clock.elapsed += 0.1  # and Enter is on its way
        dialog.dismiss(None)
        await until(pilot, lambda: app.screen is app.chat)
        world.clock.elapsed += 0.1
        assert not await sends(world, app, pilot)
        assert app.chat.prompt.text == DRAFT
        assert SEND_AGAIN in app.chat.notice.text
        world.clock.elapsed += QUIET_S
        assert await sends(world, app, pilot)
        assert world.agent.sent == [DRAFT]


async def test_nothing_is_sent_between_two_dialogs_of_a_command() -> None:
    world = World()
    async with running(world) as (app, pilot):
        goes_on, answers = asyncio.Event(), list[object]()

        async def command() -> None:
            answers.append(await app.frontend.choose(question("First?")))
            await goes_on.wait()
            answers.append(await app.frontend.choose(question("Second?")))

        await begin(app, pilot, command())
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        world.clock.elapsed += SURE
        await pilot.press("a")
        await until(pilot, lambda: answers == ["do"])
        for _ in range(3):
            world.clock.elapsed += 0.2
            await pilot.press("b")
            assert not await sends(world, app, pilot)
        assert app.chat.prompt.text == "bbb"
        assert SEND_AGAIN in app.chat.notice.text
        goes_on.set()
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        assert answers == ["do"]
        assert world.agent.sent == []
        world.clock.elapsed += SURE
        await pilot.press("escape")
        world.clock.elapsed += SURE
        await pilot.press("escape")
        await until(pilot, lambda: answers == ["do", None])
        world.clock.elapsed += SURE
        assert await sends(world, app, pilot)


async def test_what_is_pressed_before_a_command_with_a_dialog_ends_sends_nothing_after_it() -> None:
    world = World()
    async with running(world) as (app, pilot):
        goes_on = asyncio.Event()

        async def command() -> None:
            await app.frontend.choose(question())
            await goes_on.wait()
            app.frontend.put_prompt("the earlier prompt", replace=True)

        await begin(app, pilot, command())
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await pilot.press("a")
        await until(pilot, lambda: app.screen is app.chat)
        world.clock.elapsed += 3.0
        goes_on.set()
        await until(pilot, lambda: app.chat.prompt.text == "the earlier prompt")
        world.clock.elapsed += 0.1
        assert not await sends(world, app, pilot)
        world.clock.elapsed += QUIET_S
        assert await sends(world, app, pilot)


def rewindable(world: World) -> SessionChoice:
    path = world.workspace / "old.jsonl"
    prompts = [record("user", n, text=f"prompt {n}") for n in range(3)]
    world.old[path] = OldSession(records=prompts, title="old")
    return SessionChoice(path)


async def test_a_command_typed_at_a_picker_chooses_nothing_there(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with running(world, choice=rewindable(world)) as (app, pilot):
        await say(pilot, "/rewind")
        await until(pilot, lambda: isinstance(app.screen, PickScreen))
        picker = app.screen
        await press(app, *"/tree 2", "enter")
        await until(pilot, lambda: not app.key_acts)
        await pilot.pause()
        assert app.screen is picker
        assert "Press Enter again" in str(picker.query_one("#box").border_subtitle)
        assert world.agent.sent == []
        world.clock.elapsed += QUIET_S
        await pilot.press("space")
        await until(pilot, lambda: app.screen is not picker)


async def test_space_that_comes_with_other_keys_chooses_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with running(world, choice=rewindable(world)) as (app, pilot):
        await say(pilot, "/rewind")
        await until(pilot, lambda: isinstance(app.screen, PickScreen))
        picker = app.screen
        keyboard = Keyboard()
        keyboard.read(b"j k")
        for message in keyboard.heard:
            app.post_message(message)
        await pilot.pause()
        await pilot.pause()
        assert app.screen is picker


# What is pressed early waits


async def test_letters_wait_for_the_screen_of_a_command_that_is_slow() -> None:
    world = World()
    async with running(world) as (app, pilot):
        ready = asyncio.Event()

        async def command() -> None:
            await ready.wait()
            app.push_screen(AskText("name"))

        await begin(app, pilot, command())
        await press(app, "x", "y")
        await until(pilot, lambda: "xy waits for the command." in app.chat.notice.text)
        assert app.chat.prompt.text == ""
        ready.set()
        await until(pilot, lambda: isinstance(app.screen, AskText))
        await press(app, "z")  # which doesn't overtake them
        await until(pilot, lambda: app.screen.query_one("#text", Input).value == "xyz")
        assert app.chat.prompt.text == ""
        assert "waits for" not in app.chat.notice.text


async def test_they_go_to_the_prompt_if_no_screen_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontend, "_KEYS_WAIT_S", 0.1)
    world = World()
    async with running(world) as (app, pilot):
        ready = asyncio.Event()

        async def command() -> None:
            await ready.wait()

        await begin(app, pilot, command())
        await press(app, "x", "y", "enter")
        await until(pilot, lambda: bool(app.early))
        world.clock.elapsed += 0.1
        await until(pilot, lambda: app.chat.prompt.text == "xy" and not app.early)
        assert world.agent.sent == []
        ready.set()


async def test_a_command_that_begins_work_lets_typing_into_the_prompt() -> None:
    world = World()
    async with running(world) as (app, pilot):
        ready = asyncio.Event()

        async def command() -> None:
            app.frontend.began("side", "working")
            await ready.wait()

        await begin(app, pilot, command())
        await press(app, "x", "y")
        await until(pilot, lambda: app.chat.prompt.text == "xy")
        ready.set()


async def test_a_key_for_a_question_of_ones_own_marks_its_answer() -> None:
    world = World()
    async with running(world) as (app, pilot):
        answers: list[object] = []
        dialog = ChoiceDialog(question())
        app.push_screen(dialog, answers.append)
        await app.pass_on(Key("b", "b"))  # in the time until it is mounted
        await until(pilot, lambda: "Press b again for “Leave it”" in foot_of(dialog))
        assert answers == []
        assert app.chat.prompt.text == ""
        world.clock.elapsed += SURE
        await pilot.press("b")
        await until(pilot, lambda: answers == ["leave"])


def foot_of(dialog: ChoiceDialog | Confirmation) -> str:
    return "".join(str(box.border_subtitle) for box in dialog.query("#box"))


# Held, said, and in one packet


async def test_the_esc_that_closes_the_key_viewer_stops_no_turn() -> None:
    world = World()
    world.scripts.append(turn(Hold()))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.conversation.in_turn)
        await say(pilot, "/keys")
        await until(pilot, lambda: isinstance(app.screen, KeysScreen))
        world.clock.elapsed += SURE
        for _ in range(20):
            await pilot.press("escape")
            await pilot.pause()
            world.clock.elapsed += 0.03
        assert app.screen is app.chat
        assert app.conversation.in_turn
        world.clock.elapsed += REPEAT_S
        await pilot.press("escape")
        await until(pilot, lambda: not app.conversation.in_turn)


@pytest.mark.parametrize("wait", [0.03, 0.66])  # a repetition, and the first one
async def test_the_esc_that_closes_a_screen_clears_no_prompt(wait: float) -> None:
    world = World()
    async with running(world) as (app, pilot):
        app.chat.prompt.insert(DRAFT)
        await pilot.press("f1")
        await until(pilot, lambda: app.screen is not app.chat)
        world.clock.elapsed += SURE
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)
        world.clock.elapsed += wait
        for _ in range(20):
            await pilot.press("escape")
            world.clock.elapsed += 0.03
        assert app.chat.prompt.text == DRAFT


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (b"\x1bgo", "go"),
        (b"\x1bg", "g"),
        ("\x1b\u00e9t\u00e9".encode(), "\u00e9t\u00e9"),
        (b"\x1bGo", "Go"),
    ],
)
async def test_a_letter_right_after_esc_is_text(sent: bytes, text: str) -> None:
    async with running(World()) as (app, pilot):
        await fed(app, pilot, sent)
        await until(pilot, lambda: app.chat.prompt.text == text)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x1bt",  # a key of the table
        b"\x1bo",  # of another agent: said what there is instead
        b"\x1b[103;3u",  # Alt+G as the kitty protocol sends it
    ],
)
async def test_a_key_with_alt_is_no_text(sent: bytes) -> None:
    async with running(World()) as (app, pilot):
        await fed(app, pilot, sent)
        await pilot.pause()
        assert app.chat.prompt.text == ""


async def test_alt_and_a_letter_answer_nothing() -> None:
    async with asked("approval") as there:
        there.world.clock.elapsed += SURE
        await fed(there.app, there.pilot, b"\x1b1 go")
        assert there.answers == []
        assert there.draft == "1 go"


async def fed(app: HoldfastApp, pilot: Pilot[None], sent: bytes) -> None:
    """Let the terminal send this in one read."""
    keyboard = Keyboard()
    keyboard.read(sent)
    for message in keyboard.heard:
        app.post_message(message)
    await pilot.pause()
    await pilot.pause()


async def test_a_key_that_does_nothing_in_an_approval_says_so() -> None:
    async with asked("approval", DRAFT) as there:
        await there.press("ctrl+f")
        assert "Ctrl+F does nothing here." in there.foot
        await there.press("1")
        assert "Press 1 again" in there.foot


async def test_a_letter_that_means_nothing_in_a_question_says_so() -> None:
    async with running(World()) as (app, pilot):
        dialog = Confirmation(YesNoQuestion("Sure?", "", "Yes", "No"))
        app.push_screen(dialog)
        await until(pilot, lambda: dialog.focused is not None)
        await pilot.press("j")
        assert "j does nothing here." in foot_of(dialog)


async def test_of_two_quick_copies_the_later_one_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    first, written = Event(), list[str]()

    def write(text: str) -> None:
        if text == "first":
            first.wait()
        written.append(text)

    monkeypatch.setattr(clipboard, "write", write)
    async with running(World()) as (app, pilot):
        monkeypatch.setattr(HoldfastApp, "is_headless", False)
        for text in ("first", "second", "third"):
            app.copy_to_clipboard(text)
            await pilot.pause()
        first.set()
        await until(pilot, lambda: "third" in written)
        assert written == ["first", "third"]
        assert app.clipboard == "third"


# At random


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 40))]
)
async def test_a_text_typed_while_dialogs_come_and_go_arrives_whole(seed: int) -> None:
    """Someone types on without a pause. Dialogs open and close by themselves meanwhile."""
    world, random = World(), Random(seed)
    async with running(world) as (app, pilot):
        app.chat.prompt.insert("go")
        typed, answers, closed_at = "go", list[object](), float("-inf")
        for _ in range(60):
            world.clock.elapsed += 0.02
            what, covered = random.random(), app.screen is not app.chat
            if what < 0.15 and len(app.screen_stack) < 3:
                app.push_screen(DIALOGS[random.choice(UNASKED)][0](), answers.append)
            elif what < 0.3 and covered:
                await until(pilot, lambda: app.screen.is_mounted)
                app.screen.dismiss(None)  # what it asks about is over
                closed_at = world.clock.elapsed
            elif what < 0.5:
                if covered or world.clock.elapsed - closed_at < QUIET_S:
                    await pilot.press(random.choice(["enter", "escape"]) if covered else "enter")
                    world.clock.elapsed += random.uniform(0.02, 0.4)
            else:
                character = random.choice("1234ynabrj f")
                await press(app, "space" if character == " " else character)
                typed += character
                world.clock.elapsed += random.uniform(0.02, 0.4)
                if random.random() < 0.5:
                    await pilot.pause()
        while app.screen is not app.chat:
            await until(pilot, lambda: app.screen.is_mounted)
            app.screen.dismiss(None)
            await pilot.pause()
        await until(pilot, lambda: not app.key_acts)
        for _ in range(3):
            await pilot.pause()
        assert app.chat.prompt.text == typed
        assert world.agent.sent == []
        assert {*answers} <= {None}
