"""F12: the debug view on top of any screen: it follows, filters, pauses, opens and copies."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import Static

from tests.support.clock import FakeClock
from tui.agent import events
from tui.screens.verbose import VerboseScreen
from tui.widgets.event_log import EventLog


class Host(App[None]):
    def __init__(self, log: EventLog) -> None:
        super().__init__()
        self.log_of_events = log
        self.copied = ""

    def compose(self) -> ComposeResult:
        yield Static("below")

    def on_mount(self) -> None:
        self.push_screen(VerboseScreen(self.log_of_events))

    def copy_to_clipboard(self, text: str) -> None:
        self.copied = text


@pytest.fixture
def log() -> EventLog:
    log = EventLog(FakeClock())
    for n in range(100):
        log.add(events.Notice(f"notice {n}"))
    return log


def view(pilot: Pilot[None]) -> VerboseScreen:
    screen = pilot.app.screen
    assert isinstance(screen, VerboseScreen)
    return screen


def state(pilot: Pilot[None]) -> str:
    return str(view(pilot).query_one("#box").border_subtitle)


async def test_it_shows_what_was_and_follows_what_comes(log: EventLog):
    async with Host(log).run_test() as pilot:
        assert len(view(pilot).shown) == 100
        assert view(pilot).rows.cursor == 99
        log.add(events.Notice("one more"))
        view(pilot).follow()
        assert view(pilot).rows.cursor == 100
        await pilot.press("up", "up")
        log.add(events.Notice("and more"))
        view(pilot).follow()
        assert len(view(pilot).shown) == 102
        assert view(pilot).rows.cursor == 98


async def test_paused_it_stands_still(log: EventLog):
    async with Host(log).run_test() as pilot:
        await pilot.press("space")
        assert "paused" in state(pilot)
        log.add(events.Notice("unseen"))
        view(pilot).follow()
        assert len(view(pilot).shown) == 100
        await pilot.press("space")
        assert len(view(pilot).shown) == 101
        assert "paused" not in state(pilot)


async def test_it_filters_and_copies_what_is_left(log: EventLog):
    app = Host(log)
    async with app.run_test() as pilot:
        await pilot.press("slash", *"notice 42", "enter")
        assert [entry.line for entry in view(pilot).shown] == ["text=notice 42"]
        await pilot.press("y")
        assert '"text": "notice 42"' in app.copied
        await pilot.press("escape")
        assert len(view(pilot).shown) == 100


async def test_an_event_is_opened_whole_and_esc_goes_back_step_by_step(log: EventLog):
    async with Host(log).run_test() as pilot:
        await pilot.press("home", "enter")
        assert view(pilot).has_class("-whole")
        assert '"text": "notice 0"' in str(view(pilot).query_one("#json", Static).content)
        await pilot.press("escape")
        assert not view(pilot).has_class("-whole")
        await pilot.press("escape")
        assert not isinstance(pilot.app.screen, VerboseScreen)


async def test_without_an_event_it_says_what_will_be_here():
    async with Host(EventLog(FakeClock())).run_test() as pilot:
        assert view(pilot).query_one("#nothing").display
        await pilot.press("y", "enter", "space", "escape")
        assert not isinstance(pilot.app.screen, VerboseScreen)
