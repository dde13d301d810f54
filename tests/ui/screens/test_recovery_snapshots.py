"""Pictures of what is shown when a request fails. `--snapshot-update` takes them anew."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.support.script import MODEL, Hold
from tests.support.world import World
from tests.ui.screens.driving import WIDE, session_open, turn, until
from tests.ui.screens.pictures import Compare, Drive, prompt
from tests.ui.screens.test_drill import FakeProgram
from tests.ui.screens.test_recovery import PARKED, RETRY, ROWS
from tests.ui.screens.test_snapshots import SIZES, shoot, untitled, work
from tui.app.options.flags import FAULTS
from tui.core import facts
from tui.demo.drill import place
from tui.demo.drill_screen import DrillApp
from tui.demo.drill_steps import Drill
from tui.ui.app import HoldfastApp

OTHER = "claude-haiku-5-5"


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def waited(event: facts.Fact, *, focused: bool = False) -> tuple[World, Drive]:
    world = untitled()
    world.models = ROWS
    world.scripts.append(turn(*work(), event, Hold()))

    async def drive(pilot: Pilot[None]) -> None:
        await prompt("fix the flaky test", lambda app: app.chat.retry.display)(pilot)
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
    step = facts.RecoveryStep("compaction", "summarized the conversation so far", 204_000, 41_000)
    world, drive = waited(step)
    shoot(snap_compare, world, drive, size)


@SIZES
def test_another_model_goes_on(snap_compare: Compare, size: tuple[int, int]) -> None:
    world = untitled()
    why, at = f"{MODEL}: overloaded", "2026-11-21T09:01:00.000Z"
    switched = facts.ModelSwitched(MODEL, OTHER, why, at, "overloaded", 529, "req_7")
    asked = facts.RequestSent(3, 100, OTHER, 1)
    world.scripts.append(turn(*work(), switched, asked, Hold()))
    drive = prompt("fix the flaky test", lambda app: app.chat.header.state.model == OTHER)
    shoot(snap_compare, world, drive, size)


def test_the_countdown_in_other_colours(snap_compare: Compare) -> None:
    world, drive = waited(RETRY, focused=True)
    shoot(snap_compare, world, drive, WIDE, theme="daylight")


@pytest.mark.usefixtures("painted")
@SIZES
def test_a_drill(snap_compare: Compare, size: tuple[int, int]) -> None:
    with place() as root:
        program = FakeProgram(root, Drill(FAULTS))
        program.launch = replace(
            program.launch, workspace=replace(program.launch.workspace, root=Path("/tmp/drill"))
        )
        app = DrillApp(program)

        async def drive(pilot: Pilot[None]) -> None:
            await until(pilot, lambda: session_open(app))
            await pilot.pause()

        assert snap_compare(app, terminal_size=size, run_before=drive)
