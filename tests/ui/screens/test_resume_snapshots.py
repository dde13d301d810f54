"""Pictures of a session that an earlier run left open."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.context.sessions import answer, prompt, records
from tests.context.wild import call
from tests.support.world import OldSession, World
from tests.ui.screens.driving import running, until
from tests.ui.screens.pictures import Compare, press
from tests.ui.screens.test_snapshots import SIZES, shoot
from tui.app.services import SessionChoice

PATH = Path("/data/sessions/proj/20261121T070000Z-00f3a2c1d0e9.jsonl")


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")


def left_open() -> World:
    """A session with a call that began, and one that never did."""
    world = World()
    write = {"type": "tool_use", "id": "t1", "name": "write_file", "input": {"path": "a.py"}}
    told = records(
        prompt("write it"),
        answer("I write.", write, call("t2")),
        ("intent", {"call_id": "t1", "tool": "write_file", "effect": "write", "label": "a.py",
                    "path": "/home/me/proj/a.py", "before_sha256": None}),
    )  # fmt: skip
    world.old[PATH] = OldSession(records=told, title="write it")
    return world


@SIZES
def test_what_an_earlier_run_left_open(snap_compare: Compare, size: tuple[int, int]) -> None:
    async def drive(pilot: Pilot[None]) -> None:
        await press()(pilot)
        await until(pilot, lambda: bool(pilot.app.screen.query("ResumeCard Choice")))
        await pilot.pause(0.3)

    shoot(snap_compare, left_open(), drive, size, choice=SessionChoice(PATH))


async def test_on_the_smallest_terminal_every_answer_is_in_sight() -> None:
    async with running(left_open(), (40, 10), choice=SessionChoice(PATH)) as (app, pilot):
        await until(pilot, lambda: len(app.screen.query("ResumeCard Choice")) == 3)
        for choice in app.screen.query("ResumeCard Choice"):
            place = app.screen.find_widget(choice)
            assert place.visible_region == place.region
