"""A question closes by itself once what it is about is over, and says so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.script import Hold
from tests.support.world import World
from tests.ui.screens.driving import app_of, running, say, turn, until
from tests.ui.screens.test_first_run import MODEL_SET
from tui.app import passing_questions
from tui.app.services import SessionChoice
from tui.core.errors import SessionInUseError
from tui.session.lock import SessionLock, lock_of
from tui.ui.screens.chat import ChatScreen
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
