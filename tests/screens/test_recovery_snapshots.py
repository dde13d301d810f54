"""Pictures of what is shown when a request fails. `--snapshot-update` takes them anew."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.screens.driving import NARROW, WIDE, say, session_open, turn, until
from tests.screens.test_drill import FakeWiring
from tests.screens.test_recovery import PARKED, RETRY, ROWS, refusing
from tests.screens.test_snapshots import SIZES, Compare, Drive, opened, prompt, shoot, work
from tests.support.fake_agent import MODEL, Hold, World, record
from tui import doctor
from tui.agent import events
from tui.app import HoldfastApp
from tui.doctor import Check, Subject
from tui.drill import place
from tui.drill.screen import DrillApp
from tui.drill.tour import Tour
from tui.flags import FAULTS
from tui.screens.doctor import DoctorScreen
from tui.screens.models import ModelsScreen
from tui.screens.recovery import RecoveryScreen

OTHER = "claude-haiku-5-5"
ERROR = (
    "messages.17: `tool_use` ids were found without `tool_result` blocks immediately after:"
    " toolu_01. Each `tool_use` block must have a corresponding `tool_result` block."
)
CHECKS = [
    Check("program", "ok", "holdfast 1.2.3, Python 3.11.7 on Linux"),
    Check("terminal", "ok", "xterm-256color, 120 × 40"),
    Check("colours", "warn", "16", "If the terminal has more: export COLORTERM=truecolor"),
    Check("configuration", "ok", "~/.config/holdfast/config.toml"),
    Check("key", "fail", "none", "Set ANTHROPIC_API_KEY, or run `holdfast` and paste one."),
    Check("storage", "ok", "~/.local/share/holdfast can be written"),
    Check("sessions", "ok", "37 sessions (2 interrupted)"),
]


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def waited(event: events.Event, *, focused: bool = False) -> tuple[World, Drive]:
    world = World()
    world.models = ROWS
    world.scripts.append(turn(*work(), event, Hold(), text="fix the flaky test"))

    async def drive(pilot: Pilot[None]) -> None:
        await prompt("fix it", lambda app: app.chat.retry.display)(pilot)
        app = pilot.app
        assert isinstance(app, HoldfastApp)
        if focused:
            app.chat.retry.focus()

    return world, drive


@SIZES
@pytest.mark.parametrize("focused", [False, True], ids=["typing", "focused"])
def test_the_countdown(snap_compare: Compare, size: tuple[int, int], focused: bool) -> None:
    world, drive = waited(RETRY, focused=focused)
    shoot(snap_compare, world, drive, size)


@SIZES
def test_parked(snap_compare: Compare, size: tuple[int, int]) -> None:
    world, drive = waited(PARKED)
    shoot(snap_compare, world, drive, size)


@SIZES
def test_a_recovery_step(snap_compare: Compare, size: tuple[int, int]) -> None:
    step = events.RecoveryStep(
        "compaction", "the conversation so far was summarised", 204_000, 41_000
    )
    world, drive = waited(step)
    shoot(snap_compare, world, drive, size)


@SIZES
def test_another_model_goes_on(snap_compare: Compare, size: tuple[int, int]) -> None:
    world = World()
    why, at = f"{MODEL}: overloaded", "2026-11-21T09:01:00.000Z"
    switched = events.ModelSwitched(MODEL, OTHER, why, at, "overloaded", 529, "req_7")
    world.scripts.append(turn(*work(), switched, Hold(), text="fix the flaky test"))
    drive = prompt("fix it", lambda app: app.chat.header.state.model == OTHER)
    shoot(snap_compare, world, drive, size)


@SIZES
@pytest.mark.parametrize("error_class", ["invalid_request", "context_overflow", "auth"])
def test_the_ways_on(snap_compare: Compare, size: tuple[int, int], error_class: str) -> None:
    world = refusing(error_class, rungs=1)
    error = events.ErrorRaised(error_class, ERROR, True, "The same request fails again.")
    if error_class != "invalid_request":
        told = {"context_overflow": "prompt is too long", "auth": "invalid x-api-key"}
        error = events.ErrorRaised(error_class, told[error_class], True)
    world.scripts.clear()
    world.scripts.append(turn(error, events.TurnFinished("failed"), text="fix the flaky test"))
    status = {"invalid_request": 400, "context_overflow": 400, "auth": 401}[error_class]
    stood = (record("error", 1, error_class=error_class, status=status, request_id="req_011CQ"),)

    async def drive(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, HoldfastApp)
        await opened(pilot)
        world.agent.session.records = stood
        await say(pilot, "fix it")
        await until(pilot, lambda: isinstance(app.screen, RecoveryScreen))

    shoot(snap_compare, world, drive, size)


@SIZES
def test_the_models(snap_compare: Compare, size: tuple[int, int]) -> None:
    world = World()
    world.models = ROWS
    drive = prompt("/model", lambda app: isinstance(app.screen, ModelsScreen))
    shoot(snap_compare, world, drive, size)


@SIZES
def test_the_doctor(
    snap_compare: Compare, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def examine(_: Subject) -> list[Check]:
        return CHECKS

    monkeypatch.setattr(doctor, "examine", examine)

    def done(app: HoldfastApp) -> bool:
        return isinstance(app.screen, DoctorScreen) and app.screen.found

    shoot(snap_compare, World(), prompt("/doctor", done), size)


def test_the_picker_when_nothing_matches(snap_compare: Compare) -> None:
    world = World()
    world.models = ROWS

    async def drive(pilot: Pilot[None]) -> None:
        await prompt("/model", lambda app: isinstance(app.screen, ModelsScreen))(pilot)
        await pilot.press(*"llama3")

    shoot(snap_compare, world, drive, NARROW)


def test_the_countdown_in_other_colours(snap_compare: Compare) -> None:
    world, drive = waited(RETRY, focused=True)
    shoot(snap_compare, world, drive, WIDE, theme="daylight")


@SIZES
def test_a_drill(snap_compare: Compare, size: tuple[int, int]) -> None:
    with place() as root:
        wiring = FakeWiring(root, Tour(FAULTS))
        wiring.launch = replace(
            wiring.launch, workspace=replace(wiring.launch.workspace, root=Path("/tmp/drill"))
        )
        app = DrillApp(wiring, theme="midnight")

        async def drive(pilot: Pilot[None]) -> None:
            await until(pilot, lambda: session_open(app))
            await pilot.pause()

        assert snap_compare(app, terminal_size=size, run_before=drive)
