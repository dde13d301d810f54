"""A question closes by itself once what it is about is over, and says so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.script import Hold
from tests.support.world import World
from tests.ui.screens.driving import app_of, running, say, turn, until
from tests.ui.screens.test_first_run import MODEL_SET
from tests.ui.screens.test_recovery import failed
from tui.app import passing_questions
from tui.app.dialog_data import SetupElsewhere
from tui.app.services import SessionChoice
from tui.core.errors import CredentialsError, SessionInUseError
from tui.session.lock import SessionLock, lock_of
from tui.ui.screens.chat import ChatScreen
from tui.ui.screens.recovery import RecoveryScreen
from tui.ui.screens.welcome import WelcomeScreen
from tui.ui.widgets.questions import ChoiceDialog


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passing_questions, "LOOK_S", 0.03)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_another_program_that_has_the_session_lets_go_of_it(world: World) -> None:
    world.add_row("busy", hours=1)
    path = world.rows[0].path
    other = SessionLock(path, clock=world.clock)
    other.take()
    world.refusals.append(SessionInUseError("It is open in process 1."))
    app = app_of(world, choice=SessionChoice(path))
    async with app.run_test() as pilot:
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        asked = " ".join(str(part.render()) for part in app.screen.query("Static"))
        assert f"It's open in process {os.getpid()} on" in asked
        other.release()
        await until(pilot, lambda: app.ready and app.conversation.agent is not None)
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
        assert world.chosen == [SessionChoice(path), SessionChoice(path)]
        assert "The other program has let go of this session." in app.chat.notice.text


async def test_the_folder_is_trusted_in_another_window(world: World) -> None:
    world.undecided = (MODEL_SET,)
    app = app_of(world, choice=SessionChoice())
    async with app.run_test() as pilot:
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        world.undecided = ()
        await until(pilot, lambda: app.conversation.agent is not None)
        assert isinstance(app.screen, ChatScreen)
        assert "Another window has answered" in app.chat.notice.text


async def test_a_session_that_is_taken_over_asks_nothing_any_more(world: World) -> None:
    """What its turn asked, whoever has it now asks."""
    hold = Hold()
    world.add_row("mine", hours=1)
    path = world.rows[0].path
    world.scripts.append(turn(hold))
    async with running(world, choice=SessionChoice(path)) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.conversation.busy)
        lock_of(path).unlink()
        other = SessionLock(path, clock=world.clock)
        other.take()
        await app.run_action("recheck")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await until(pilot, lambda: not app.conversation.in_turn)
        world.clock.elapsed += 1
        await pilot.press("f")
        await until(pilot, lambda: len(world.chosen) == 2)
        other.release()


async def test_a_key_is_stored_in_another_window(world: World) -> None:
    world.refusals.append(CredentialsError("No API key found."))
    app = app_of(world, choice=SessionChoice())
    async with app.run_test() as pilot:
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        world.set_up_elsewhere = True
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
        await until(pilot, lambda: app.conversation.agent is not None)
        assert world.set_up_with == [SetupElsewhere()]
        assert "Kept in the keyring." in app.chat.notice.text


async def test_the_welcome_screen_stays_while_a_key_is_entered_there(world: World) -> None:
    """What is typed next would be a prompt, and go to the model."""
    world.refusals.append(CredentialsError("No API key found."))
    app = app_of(world, choice=SessionChoice())
    async with app.run_test() as pilot:
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        await pilot.press("enter", "s")
        world.set_up_elsewhere = True
        await pilot.press("k", "-", "1")
        assert isinstance(app.screen, WelcomeScreen)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, ChatScreen))
        assert app.chat.prompt.text == ""


async def test_login_stays_whatever_another_window_stores(world: World) -> None:
    async with running(world) as (app, pilot):
        await say(pilot, "/login")
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        world.set_up_elsewhere = True
        await pilot.pause(0.2)
        assert isinstance(app.screen, WelcomeScreen)


async def test_another_key_is_stored_for_the_one_that_was_rejected(world: World) -> None:
    world.scripts.append(failed("auth", told="invalid x-api-key"))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: isinstance(app.screen, RecoveryScreen))
        world.set_up_elsewhere = True
        await until(pilot, lambda: world.agent.reconnected == 1)
        assert app.screen is app.chat
        assert "Kept in the keyring. /retry uses it." in app.chat.notice.text
        assert world.agent.went_on == 0  # only the person says when it is sent


async def test_the_ways_on_go_when_another_program_takes_the_session(world: World) -> None:
    world.add_row("mine", hours=1)
    path = world.rows[0].path
    world.scripts.append(failed("invalid_request"))
    async with running(world, choice=SessionChoice(path)) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: isinstance(app.screen, RecoveryScreen))
        lock_of(path).unlink()
        other = SessionLock(path, clock=world.clock)
        other.take()
        await app.run_action("recheck")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        world.clock.elapsed += 1
        await pilot.press("r")
        await until(pilot, lambda: app.screen is app.chat)
        other.release()
