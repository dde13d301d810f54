"""Leaving a session: what is new is saved to the memory first, and nobody has to wait for it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.support.processes import gone as ended
from tests.support.script import Hold
from tests.support.world import WatchedAgent, World
from tests.ui.screens.driving import app_of, items, running, say, session_open, turn, until
from tui.app import conversation, passing_questions
from tui.app.options.arguments import Options
from tui.core import facts
from tui.core.facts import Fact
from tui.keeper.command import lives
from tui.keeper.folder import KILL, send
from tui.tools.jobs import Job
from tui.ui.app import HoldfastApp
from tui.ui.widgets.conversation.items import AttemptItem, NoticeItem
from tui.ui.widgets.questions import ChoiceDialog


class Slow:
    """Makes an agent's flush last until it is cancelled."""

    def __init__(self, agent: WatchedAgent) -> None:
        self.began, self.cancelled = asyncio.Event(), asyncio.Event()
        agent.remember()
        agent.flush = self.flush
        agent.cancel = self.cancelled.set  # type: ignore[method-assign]

    async def flush(self) -> AsyncGenerator[Fact]:
        self.began.set()
        yield facts.Notice("📝 Saving context...")
        await self.cancelled.wait()


def gone(app: HoldfastApp) -> bool:
    return app._exit  # pyright: ignore[reportPrivateUsage]


async def test_quitting_saves_what_is_new_and_then_leaves() -> None:
    world = World()
    async with running(world) as (app, pilot):
        world.agent.remember()
        await say(pilot, "/quit")
        await until(pilot, lambda: gone(app))
        told = [item.text for item in items(app, NoticeItem)]
        assert told[0] == "📝 Saving context..."
        assert told[1].startswith("Saved 1 line to memory")
        assert world.agent.closed


async def test_with_nothing_new_it_leaves_at_once() -> None:
    world = World()
    async with running(world) as (app, pilot):
        await say(pilot, "/quit")
        await until(pilot, lambda: gone(app))
        assert items(app, NoticeItem) == []


@pytest.mark.parametrize("key", ["escape", "ctrl+c", "ctrl+d"])
async def test_a_key_skips_the_saving(key: str) -> None:
    world = World()
    async with running(world) as (app, pilot):
        await until(
            pilot, lambda: app.conversation.agent is not None and not app.conversation.opening
        )
        slow = Slow(world.agent)
        await pilot.press("ctrl+d", "ctrl+d")
        await until(pilot, slow.began.is_set)
        assert not gone(app)
        await pilot.press(key)
        await until(pilot, lambda: gone(app))
        assert slow.cancelled.is_set()
        assert world.agent.closed


async def test_a_server_that_cannot_be_reached_is_asked_once() -> None:
    world = World()
    async with running(world) as (app, pilot):
        await until(
            pilot, lambda: app.conversation.agent is not None and not app.conversation.opening
        )
        slow = Slow(world.agent)
        began, wait = slow.flush, asyncio.Event()

        async def flush() -> AsyncGenerator[Fact]:
            yield facts.Notice("📝 Saving context...")
            await wait.wait()
            yield facts.RetryScheduled(1, 3, 60.0, "no connection", None, "network")
            async for event in began():
                yield event

        world.agent.flush = flush
        await pilot.press("ctrl+d", "ctrl+d")
        said = "saving memory before quitting; esc quits now"
        await until(pilot, lambda: said in app.chat.prompt_rule.title.plain)
        wait.set()
        await until(pilot, lambda: gone(app))
        assert slow.cancelled.is_set()
        assert not items(app, AttemptItem)


async def test_a_model_that_does_not_answer_holds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "SAVE_LIMIT_S", 0.01)
    world = World()
    async with running(world) as (app, pilot):
        await until(
            pilot, lambda: app.conversation.agent is not None and not app.conversation.opening
        )
        slow = Slow(world.agent)
        await pilot.press("ctrl+d", "ctrl+d")
        await until(pilot, lambda: gone(app))
        assert slow.cancelled.is_set()


async def test_a_signal_waits_for_nothing() -> None:
    world = World()
    async with running(world) as (app, pilot):
        await until(
            pilot, lambda: app.conversation.agent is not None and not app.conversation.opening
        )
        world.agent.remember()
        app._leave(signal.SIGTERM)  # pyright: ignore[reportPrivateUsage] - as it does
        await until(pilot, lambda: gone(app))
        assert items(app, NoticeItem) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_that_came_before_the_screen_stood_is_not_lost(number: int) -> None:
    app = app_of(World())
    app._signalled(number, None)  # pyright: ignore[reportPrivateUsage] - as a handler is called
    async with app.run_test() as pilot:
        await until(pilot, lambda: gone(app))
    assert app.return_code == 128 + number


async def test_a_new_session_begins_once_the_old_one_is_saved() -> None:
    world = World()
    async with running(world) as (app, pilot):
        first = world.agent
        slow = Slow(first)
        await say(pilot, "/new")
        await until(pilot, slow.began.is_set)
        assert len(world.agents) == 1
        await pilot.press("escape")
        await until(
            pilot, lambda: len(world.agents) == 2 and app.conversation.agent is world.agents[1]
        )
        assert first.closed
        await _one_more(world, pilot)


async def _one_more(world: World, pilot: Pilot[None]) -> None:
    """With nothing new in it, the next one begins at once."""
    await say(pilot, "/new")
    await until(pilot, lambda: len(world.agents) == 3)


async def _with_job(world: World, app: HoldfastApp, pilot: Pilot[None]) -> Job:
    """A command that runs in the background of the session that is open."""
    await until(pilot, lambda: app.conversation.agent is not None and not app.conversation.opening)
    jobs = world.agent._ctx.toolbox.jobs  # pyright: ignore[reportPrivateUsage] - what a call does
    return await jobs.start("sleep 300", cwd=world.workspace, path=world.workspace / "job.txt")


def asks(app: HoldfastApp) -> bool:
    return isinstance(app.screen, ChoiceDialog)


@pytest.mark.parametrize(
    ("keys", "runs"), [(["l"], True), (["ctrl+q"], True), (["e"], False)], ids=str
)
async def test_commands_that_run_are_left_or_ended(
    tmp_path: Path, keys: list[str], runs: bool
) -> None:
    world = World(tmp_path)
    async with running(world) as (app, pilot):
        job = await _with_job(world, app, pilot)
        await pilot.press("ctrl+q")
        await until(pilot, lambda: asks(app))
        await pilot.press("escape")
        await until(pilot, lambda: not asks(app))
        assert not gone(app)
        await pilot.press("ctrl+q")
        await until(pilot, lambda: asks(app))
        await pilot.press(*keys)
        await until(pilot, lambda: gone(app))
        assert world.agent.closed
    assert lives(job.kept.folder) == runs
    send(job.kept.folder, KILL)
    assert ended(job.pid)


async def test_a_turn_is_handed_to_the_background_or_stopped(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with running(world) as (app, pilot):
        await until(pilot, lambda: session_open(app) and not app.conversation.opening)
        world.background_options = Options()
        world.scripts.append(turn(Hold()))
        await say(pilot, "go")
        await until(pilot, lambda: app.conversation.in_turn)
        await pilot.press("ctrl+q")
        await until(pilot, lambda: asks(app))
        await pilot.press("e")
        await until(pilot, lambda: gone(app))
        assert world.agent.closed


async def test_a_turn_that_ends_while_it_is_asked_about_needs_no_answer(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with running(world) as (app, pilot):
        await until(pilot, lambda: session_open(app) and not app.conversation.opening)
        world.background_options = Options()
        hold = Hold()
        world.scripts.append(turn(hold))
        await say(pilot, "go")
        await until(pilot, lambda: app.conversation.in_turn)
        await pilot.press("ctrl+q")
        await until(pilot, lambda: asks(app))
        hold.release()
        await until(pilot, lambda: gone(app))
        assert world.agent.closed
        assert not asks(app)


async def test_a_command_that_ends_while_it_is_asked_about_needs_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passing_questions, "LOOK_S", 0.03)
    world = World(tmp_path)
    async with running(world) as (app, pilot):
        job = await _with_job(world, app, pilot)
        await pilot.press("ctrl+q")
        await until(pilot, lambda: asks(app))
        send(job.kept.folder, KILL)
        await until(pilot, lambda: gone(app))
        assert not asks(app)
