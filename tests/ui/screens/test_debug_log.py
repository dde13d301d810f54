"""F12: the debug view on top of any screen: it follows, filters, pauses, opens and copies."""

from __future__ import annotations

from time import process_time

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import Static

from tests.support.clock import FakeClock
from tests.support.script import Ask
from tests.support.world import World
from tests.ui.screens.driving import (
    answer,
    running,
    say,
    session_open,
    turn,
    until,
)
from tui.core import facts
from tui.core.messages import Usage
from tui.permissions.types import Call, Decision
from tui.ui.screens.debug_log import DebugLogScreen
from tui.ui.widgets.fact_log import FactLog


class Host(App[None]):
    def __init__(self, log: FactLog) -> None:
        super().__init__()
        self.log_of_events = log
        self.copied = ""

    def compose(self) -> ComposeResult:
        yield Static("below")

    def on_mount(self) -> None:
        self.push_screen(DebugLogScreen(self.log_of_events))

    def copy_to_clipboard(self, text: str) -> None:
        self.copied = text


@pytest.fixture
def log() -> FactLog:
    log = FactLog(FakeClock())
    for n in range(100):
        log.add(facts.Notice(f"notice {n}"))
    return log


def view(pilot: Pilot[None]) -> DebugLogScreen:
    screen = pilot.app.screen
    assert isinstance(screen, DebugLogScreen)
    return screen


def state(pilot: Pilot[None]) -> str:
    return str(view(pilot).query_one("#box").border_title)


async def test_it_shows_what_was_and_follows_what_comes(log: FactLog):
    async with Host(log).run_test() as pilot:
        assert len(view(pilot).shown) == 100
        assert view(pilot).rows.cursor == 99
        log.add(facts.Notice("one more"))
        view(pilot).follow()
        assert view(pilot).rows.cursor == 100
        await pilot.press("up", "up")
        log.add(facts.Notice("and more"))
        view(pilot).follow()
        assert len(view(pilot).shown) == 102
        assert view(pilot).rows.cursor == 98


async def test_paused_it_stands_still(log: FactLog):
    async with Host(log).run_test() as pilot:
        await pilot.press("space")
        assert "paused" in state(pilot)
        log.add(facts.Notice("unseen"))
        view(pilot).follow()
        assert len(view(pilot).shown) == 100
        await pilot.press("space")
        assert len(view(pilot).shown) == 101
        assert "paused" not in state(pilot)


async def test_it_filters_and_copies_what_is_left(log: FactLog):
    app = Host(log)
    async with app.run_test() as pilot:
        await pilot.press("slash", *"notice 42", "enter")
        assert [entry.line for entry in view(pilot).shown] == ["text=notice 42"]
        await pilot.press("y")
        assert '"text": "notice 42"' in app.copied
        await pilot.press("escape")
        assert len(view(pilot).shown) == 100


async def test_a_filter_that_matches_nothing_says_so_and_names_its_own_keys(log: FactLog):
    async with Host(log).run_test() as pilot:
        await pilot.press("slash", *"zzz")
        nothing = view(pilot).query_one("#nothing", Static)
        assert str(nothing.content) == "No event matches “zzz”."
        assert [key for key, _ in view(pilot).explained[1]] == ["enter", "esc"]
        await pilot.press("escape")
        assert ("/", "filter") in view(pilot).explained[1]


async def test_an_event_is_opened_whole_and_esc_goes_back_step_by_step(log: FactLog):
    async with Host(log).run_test() as pilot:
        await pilot.press("home", "enter")
        assert view(pilot).has_class("-whole")
        assert '"text": "notice 0"' in str(view(pilot).query_one("#json", Static).content)
        await pilot.press("escape")
        assert not view(pilot).has_class("-whole")
        await pilot.press("escape")
        assert not isinstance(pilot.app.screen, DebugLogScreen)


async def test_without_an_event_it_says_what_will_be_here():
    async with Host(FactLog(FakeClock())).run_test() as pilot:
        assert view(pilot).query_one("#nothing").display
        await pilot.press("y", "enter", "space", "escape")
        assert not isinstance(pilot.app.screen, DebugLogScreen)


MEASURED = facts.ContextMeasured(12_345, 12_000, 345, 200_000, {"messages": 9000})
WORK = (
    facts.TextDelta("I look."),
    facts.AssistantMessage("I look.", "tool_use", Usage(12_000, 30), "req_0123"),
    facts.ToolStarted("t1", "run_command", {"command": "make"}, "make"),
    facts.PermissionAsked("t1", "run_command", "`make` runs what the Makefile says."),
    facts.PermissionAnswered("t1", "run_command", "session", "person", "It was asked for."),
    facts.ToolFinished("t1", "run_command", False, 0.4, None, "", "ok"),
    MEASURED,
)


async def test_f12_shows_every_event_on_top_of_any_screen_and_goes_again() -> None:
    world = World()
    world.scripts.append(turn(*WORK, *answer("Done.")))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: app.chat.status.state.turns == 1)
        await pilot.press("f2", "f12")
        told = "\n".join(f"{entry.kind} {entry.line}" for entry in view(pilot).shown)
        for fact in (
            "session_started",
            "req_0123",
            "answer=session  by=person  reason=It was asked for.",
            "tokens=12345",
            "turn_finished",
        ):
            assert fact in told
        assert world.agent.sent == ["go"]  # it is a view: nothing is switched
        await pilot.press("f12")
        assert not isinstance(app.screen, DebugLogScreen)
        assert len(app.screen_stack) == 2  # what was below is there still
        await pilot.press("f12", "escape")
        assert len(app.screen_stack) == 2


async def test_f12_stands_over_a_question_and_leaves_it_open() -> None:
    world = World()
    call = Call("t1", "run_command", "run", "make", "make", (), "command", "make", "this")
    world.scripts.append(turn(Ask(call, Decision("ask", "It runs.", "default", "standard"))))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        await pilot.press("f12")
        assert isinstance(app.screen, DebugLogScreen)
        await pilot.press("1")
        assert world.agent.answers == []
        await pilot.press("f12")
        assert not isinstance(app.screen, DebugLogScreen)
        assert len(app.screen_stack) == 2


async def test_the_debug_view_holds_what_came_while_it_was_closed_in_every_session() -> None:
    world = World()
    async with running(world) as (app, pilot):
        await say(pilot, "/new")
        await until(pilot, lambda: len(world.agents) == 2 and session_open(app))
        await pilot.press("f12")
        kinds = [entry.kind for entry in view(pilot).shown]
        assert kinds.count("session_started") == 2


async def test_verbose_on_the_command_line_starts_with_the_debug_view() -> None:
    async with running(World(), verbose=True) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, DebugLogScreen))
        await pilot.press("f12")
        assert app.screen is app.chat


def test_an_event_of_a_stream_costs_microseconds() -> None:
    log, delta = FactLog(FakeClock()), facts.TextDelta("word ")
    best = min(_seconds(log, delta) for _ in range(5))
    assert best / 10_000 < 20e-6  # 5 µs where nothing else runs


def _seconds(log: FactLog, event: facts.Fact) -> float:
    began = process_time()
    for _ in range(10_000):
        log.add(event)
    return process_time() - began
