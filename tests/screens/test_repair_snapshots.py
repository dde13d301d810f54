"""Pictures of what stands between a file and a session to go on with."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.context.sessions import answer, prompt, records
from tests.context.wild import call
from tests.screens.driving import until
from tests.screens.test_snapshots import NARROW, SIZES, Compare, press, shoot
from tests.support.fake_agent import FakeSession, World
from tui.errors import SessionInUseError
from tui.screens.damage import Damage
from tui.screens.repair import RepairScreen
from tui.services import SessionChoice
from tui.session.records import Finding

PATH = Path("/data/sessions/proj/20261121T070000Z-00f3a2c1d0e9.jsonl")
FOUND = (
    Finding("B52", "line 4 (byte 1200)", "skipped: not valid JSON"),
    Finding("B43", "line 7 (byte 2900)", "NUL bytes left out"),
    Finding("B40", "line 12 (byte 5400)", "the last line is cut short; left out"),
)


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")


@SIZES
def test_a_damaged_session(
    snap_compare: Compare, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def sides(_: Damage, number: int) -> tuple[str, str]:
        return f'{{"type": "user", "id": "{number}", "par', "(skipped: not valid JSON)"

    monkeypatch.setattr(Damage, "sides", sides)
    monkeypatch.setattr("tui.resuming.new_session_id", lambda: "48aa0f6f9cbe")
    world = World()
    told = records(prompt("fix the flaky test"), answer("Done."))
    world.old[PATH] = FakeSession(path=PATH, records=told, findings=FOUND, title="fix the test")

    async def drive(pilot: Pilot[None]) -> None:
        await press("down")(pilot)
        screen = pilot.app.screen
        assert isinstance(screen, RepairScreen)
        await until(pilot, lambda: '"id": "1"' in screen.sides()[0])

    shoot(snap_compare, world, drive, size, choice=SessionChoice(PATH))


@SIZES
def test_what_an_earlier_run_left_open(snap_compare: Compare, size: tuple[int, int]) -> None:
    world = World()
    write = {"type": "tool_use", "id": "t1", "name": "write_file", "input": {"path": "a.py"}}
    told = records(
        prompt("write it"),
        answer("I write.", write, call("t2")),
        ("intent", {"call_id": "t1", "tool": "write_file", "effect": "write", "label": "a.py",
                    "path": "/home/me/proj/a.py", "before_sha256": None}),
    )  # fmt: skip
    world.old[PATH] = FakeSession(path=PATH, records=told, title="write it")

    async def drive(pilot: Pilot[None]) -> None:
        await press()(pilot)
        await until(pilot, lambda: bool(pilot.app.screen.query("ResumeCard Choice")))
        await pilot.pause(0.3)

    shoot(snap_compare, world, drive, size, choice=SessionChoice(PATH))


def test_in_use_elsewhere(snap_compare: Compare) -> None:
    world = World()
    busy = "The session is open in process 4242 on here since 2026-11-21 08:00 UTC."
    world.refusals.append(SessionInUseError(busy))
    shoot(snap_compare, world, press(), NARROW, choice=SessionChoice(PATH))
