"""F7 in the chat: the desk of this machine over it, and back."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from tests.support.desk import FakeHost
from tests.support.script import Ask, Hold
from tests.support.world import World
from tests.ui.desk.samples import call, day, row
from tests.ui.screens.driving import running, say, turn, until
from tui.app.door.lines import Hello, RecordEnd, SessionStatus, StopTurn
from tui.core.clock import Clock
from tui.core.paths import Folders
from tui.permissions.types import Call, Decision
from tui.ui.app import HoldfastApp
from tui.ui.desk import over_chat
from tui.ui.desk.desk_screen import DeskScreen
from tui.ui.desk.session_screen import SessionScreen
from tui.ui.widgets.approval import ApprovalModal


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> FakeHost:
    made = FakeHost("", day())

    def hosts_of(_: Folders, *, clock: Clock) -> list[FakeHost]:
        made.clock = clock
        return [made]

    monkeypatch.setattr(over_chat, "hosts_of", hosts_of)
    return made


def drawn(app: HoldfastApp) -> str:
    strips = app.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]
    return "\n".join(strip.text for strip in strips)


async def opened(app: HoldfastApp, pilot: Pilot[None], host: FakeHost) -> DeskScreen:
    await pilot.press("f7")
    await until(pilot, lambda: isinstance(app.screen, DeskScreen))
    host.put()
    screen = app.screen
    assert isinstance(screen, DeskScreen)
    await until(pilot, lambda: screen.row is not None)
    return screen


@pytest.mark.parametrize("key", ["f7", "escape", "q"])
async def test_f7_shows_the_desk_and_leads_back_to_the_chat(host: FakeHost, key: str) -> None:
    async with running(World()) as (app, pilot):
        screen = await opened(app, pilot, host)
        assert host.clock is app.conversation.services.clock
        assert screen.row is not None
        assert screen.row.title == "fix the flaky test in test_store.py"
        await pilot.press(key)
        await until(pilot, lambda: app.screen is app.chat)
        await until(pilot, lambda: host.closed)


async def test_a_command_shows_it_too(host: FakeHost) -> None:
    async with running(World()) as (app, pilot):
        await say(pilot, "/desk")
        await until(pilot, lambda: isinstance(app.screen, DeskScreen))
        await pilot.press("f2")
        await until(pilot, lambda: type(app.screen).__name__ == "ContextScreen")
        await until(pilot, lambda: host.closed)


async def test_the_session_of_this_very_chat_is_the_chat(host: FakeHost) -> None:
    async with running(World()) as (app, pilot):
        agent = app.conversation.agent
        assert agent is not None
        host.rows = [row(agent.session.id, "idle", "this one")]
        await opened(app, pilot, host)
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is app.chat)
        assert not host.channels


async def test_another_session_is_opened_live_and_left_for_the_desk(host: FakeHost) -> None:
    async with running(World()) as (app, pilot):
        screen = await opened(app, pilot, host)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SessionScreen) and bool(host.channels))
        await pilot.press("f7")
        await until(pilot, lambda: app.screen is screen)


async def test_ctrl_c_over_a_question_of_the_desk_stops_nothing_in_the_chat(host: FakeHost) -> None:
    world = World()
    world.scripts.append(
        turn(Ask(Call("t", "run_command", "run", "make"), Decision("ask", "", "")))
    )
    host.rows = [row("a", "waiting", "elsewhere", asked=call())]
    async with running(world) as (app, pilot):
        await opened(app, pilot, host)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))
        await pilot.press("ctrl+c")
        await until(pilot, lambda: isinstance(app.screen, DeskScreen))
        assert not any(channel.sent for channel in host.channels)


async def test_a_question_of_the_chat_over_another_session_says_whose_it_is(
    host: FakeHost,
) -> None:
    """And its keys are the chat's: they stop nothing in the session that is watched."""
    world = World()
    rm = Ask(Call("t", "run_command", "run", "make clean"), Decision("ask", "", ""))
    world.scripts.append(turn(hold := Hold(), rm))
    host.rows = [row("a", "working", "elsewhere")]
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await opened(app, pilot, host)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SessionScreen) and bool(host.channels))
        watched = app.screen
        channel = host.channels[-1]
        channel.tell(Hello(session="a", kind="background", pid=7), SessionStatus(state="working"))
        channel.tell(RecordEnd())
        hold.release()
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))
        await until(pilot, lambda: "The session of your chat asks:" in drawn(app))
        await pilot.press("ctrl+c")
        await until(pilot, lambda: app.screen is watched)
        await until(pilot, lambda: not app.conversation.busy)
        assert not channel.sent_of(StopTurn)


async def test_a_question_of_the_desk_names_its_session(host: FakeHost) -> None:
    host.rows = [row("a", "waiting", "elsewhere", asked=call())]
    async with running(World()) as (app, pilot):
        await opened(app, pilot, host)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))
        await until(pilot, lambda: "“elsewhere” asks:" in drawn(app))


async def test_the_desk_of_a_machine_without_sessions_shows_the_one_of_this_chat_or_none() -> None:
    async with running(World()) as (app, pilot):  # with the real host of an empty folder
        await pilot.press("f7")
        await until(pilot, lambda: isinstance(app.screen, DeskScreen))
        screen = app.screen
        assert isinstance(screen, DeskScreen)
        await until(pilot, lambda: not screen.is_reading)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)
