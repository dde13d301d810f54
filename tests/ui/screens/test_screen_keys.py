"""The keys that lead to screens work from every screen, and Esc leads back."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList

from tests.support.script import Ask
from tests.support.world import World
from tests.ui.screens.driving import answer, running, say, turn, until
from tui.core.clock import Clock, SystemClock
from tui.core.paths import Folders
from tui.desk import hosts
from tui.desk.local_host import LocalHost
from tui.permissions.types import Call, Decision
from tui.ui.app import HoldfastApp
from tui.ui.widgets.conversation.view import ConversationView
from tui.ui.widgets.row_list import RowList

SCREENS = {
    "f1": "HelpScreen",
    "f2": "ContextScreen",
    "f3": "SessionsScreen",
    "f7": "DeskScreen",
    "f12": "DebugLogScreen",
    "ctrl+p": "PaletteScreen",
    "ctrl+t": "TasksScreen",
}
ON_TOP = ("f1", "f12", "ctrl+p")
"""These come over whatever is shown; the others take its place."""

OPENED_BY = {
    "ContextScreen": ("f2",),
    "BulkMenu": ("f2", "b"),
    "SessionsScreen": ("f3",),
    "DeskScreen": ("f7",),
    "SettingsScreen": tuple("/config"),
    "ThemePicker": tuple("/theme"),
    "ModelsScreen": tuple("/model"),
    "McpScreen": tuple("/mcp"),
    "TasksScreen": ("ctrl+t",),
    "DoctorScreen": tuple("/doctor"),
    "PermissionsScreen": tuple("/permissions"),
    "HelpScreen": ("f1",),
    "DebugLogScreen": ("f12",),
    "PaletteScreen": ("ctrl+p",),
}
CALL = Call("t1", "run_command", "run", "make", "make", (), "command", "make", "this")


def top(app: HoldfastApp) -> str:
    return type(app.screen).__name__


@pytest.fixture(autouse=True)
def _a_desk_in_real_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that sleeps for no time, the desk would look for sessions without a pause."""

    def host(folders: Folders, _clock: Clock) -> LocalHost:
        return LocalHost(folders, SystemClock())

    monkeypatch.setattr(hosts, "LocalHost", host)


@asynccontextmanager
async def opened(screen: str) -> AsyncGenerator[tuple[HoldfastApp, Pilot[None]]]:
    """The app with one turn behind it, and a screen over the chat."""
    world = World()
    world.scripts.append(turn(*answer("hello")))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1 and not app.conversation.busy)
        await open_screen(app, pilot, screen)
        yield app, pilot


async def open_screen(app: HoldfastApp, pilot: Pilot[None], screen: str) -> None:
    keys = OPENED_BY[screen]
    if keys[0] == "/":
        await say(pilot, "".join(keys))
    else:
        await pilot.press(*keys)
    await until(pilot, lambda: top(app) == screen)


@pytest.fixture
def toasts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is said in a corner; a test has no toasts of its own."""
    told: list[str] = []

    def notify(_: HoldfastApp, text: str, **_options: object) -> None:
        told.append(text)

    monkeypatch.setattr(HoldfastApp, "notify", notify)
    return told


async def close_all(app: HoldfastApp, pilot: Pilot[None]) -> None:
    for _ in range(4):
        if app.screen is not app.chat:
            await pilot.press("escape")
            await pilot.pause()
    assert app.screen is app.chat


ALIKE = ("SettingsScreen", "ThemePicker", "McpScreen", "DoctorScreen", "PermissionsScreen")
"""Dialogs that a command opens, as it opens `ModelsScreen`: the test of these is slow."""


@pytest.mark.parametrize(
    "screen",
    [pytest.param(one, marks=pytest.mark.slow if one in ALIKE else ()) for one in OPENED_BY],
)
async def test_from_every_screen_each_key_opens_its_own_and_escape_leads_back(screen: str) -> None:
    async with opened(screen) as (app, pilot):
        for key, wanted in SCREENS.items():
            await pilot.press(key)
            if wanted == screen:
                await until(pilot, lambda: app.screen is app.chat)
            else:
                await until(pilot, lambda wanted=wanted: top(app) == wanted)
                await pilot.press("escape")
                back = screen if key in ON_TOP else "ChatScreen"
                await until(pilot, lambda back=back: top(app) == back)
            if top(app) != screen:
                await close_all(app, pilot)
                await open_screen(app, pilot, screen)


@pytest.mark.parametrize("screen", ["ContextScreen", "ModelsScreen", "TasksScreen"])
async def test_f4_goes_to_the_output_and_f5_changes_the_effort(
    screen: str, toasts: list[str]
) -> None:
    async with opened(screen) as (app, pilot):
        agent = app.conversation.agent
        assert agent
        before = agent.models.effort
        await pilot.press("f5")  # nothing is in the cache, so nothing is asked
        await until(pilot, lambda: agent.models.effort != before and top(app) == screen)
        await until(pilot, lambda: any("Effort is now" in told for told in toasts))
        await pilot.press("f4")
        if screen != "TasksScreen":  # it has an output of its own
            await until(pilot, lambda: app.screen is app.chat and app.chat.side.display)


@pytest.mark.parametrize("key", SCREENS)
async def test_over_an_approval_a_screen_opens_and_escape_leads_back_to_it(key: str) -> None:
    world = World()
    world.scripts.append(turn(Ask(CALL, Decision("ask", "It runs.", "default", "standard"))))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: top(app) == "ApprovalModal")
        await pilot.press(key)
        await until(pilot, lambda: top(app) == SCREENS[key])
        assert world.agent.answers == []
        await pilot.press("escape")
        await until(pilot, lambda: top(app) == "ApprovalModal")
        assert world.agent.answers == []


async def test_a_letter_of_another_script_is_the_key_in_its_place_where_it_types_nothing() -> None:
    async with opened("McpScreen") as (app, pilot):
        await pilot.press("й")  # q
        await until(pilot, lambda: app.screen is app.chat)
        app.chat.query_one(ConversationView).focus()
        await pilot.press("г", "й")  # u, q: here letters write the prompt
        await until(pilot, lambda: app.chat.prompt.text == "гй")


async def test_a_letter_of_another_script_answers_nothing() -> None:
    world = World()
    world.scripts.append(turn(Ask(CALL, Decision("ask", "It runs.", "default", "standard"))))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: top(app) == "ApprovalModal")
        for letter in "нтм":  # y, n, v; the first begins the word for no
            world.clock.elapsed += 5
            await pilot.press(letter)
        assert top(app) == "ApprovalModal"
        assert world.agent.answers == []


async def test_while_nothing_is_open_yet_a_key_waits_and_leaves_the_question(
    toasts: list[str],
) -> None:
    async with running(World(), choice=None) as (app, pilot):
        await until(pilot, lambda: top(app) == "SessionsScreen")
        await pilot.press("f2")
        await until(pilot, lambda: toasts == ["/context waits for the session. Ctrl+C cancels."])
        assert top(app) == "SessionsScreen"


async def test_the_chosen_row_and_the_scrollbars_look_alike_on_every_screen() -> None:
    async with opened("ContextScreen") as (app, pilot):
        rows = app.screen.query_one(RowList).get_component_styles("rows--cursor")
        chosen = {"RowList": (rows.background, str(rows.text_style))}
        thick: list[str] = []
        for screen in OPENED_BY:
            await close_all(app, pilot)
            await open_screen(app, pilot, screen)
            for widget in app.screen.query("*"):
                styles = widget.styles
                if max(styles.scrollbar_size_vertical, styles.scrollbar_size_horizontal) > 1:
                    thick.append(f"{screen} {widget}")
                if isinstance(widget, OptionList):
                    found = widget.get_component_styles("option-list--option-highlighted")
                    chosen[str(widget)] = (found.background, str(found.text_style))
        assert thick == []
        assert len(chosen) > 1
        assert len(set(chosen.values())) == 1
