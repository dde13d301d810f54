"""Pictures of the tour. `--snapshot-update` takes them anew."""

from __future__ import annotations

import fcntl
import platform
import shutil
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.ui.screens.driving import until
from tests.ui.screens.pictures import EVERY, Look, Looks
from tests.ui.screens.test_tour import (
    SMALL,
    FakeProgram,
    allow,
    at,
    on,
    send_laid,
    skip_to,
)
from tui.core.facts import ContextMeasured
from tui.demo import guide, tour_scene
from tui.demo.tour_screen import TourApp, TourPanel
from tui.demo.tour_steps import APPROVAL, END

Way = Callable[[TourApp, Pilot[None]], Awaitable[None]]
FOLDER = Path("/tmp/holdfast-tour-picture")

SIZES = {"system": 600, "tools": 2700, "messages": 100}
FULL = ContextMeasured(3400, 3300, 100, 32_000, SIZES, "server")
"""What the prompts and the tools weigh is not what is looked at here."""


@contextmanager
def fixed(**_: object) -> Generator[str]:
    """A folder of the same name each time, for one test at a time: the model is told its path,
    and what that weighs is in the pictures."""
    with FOLDER.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir()
        try:
            yield str(FOLDER)
        finally:
            shutil.rmtree(FOLDER, ignore_errors=True)


@pytest.fixture(autouse=True)
def the_same_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guide, "TemporaryDirectory", fixed)
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")


def shoot(looks: Looks, wanted: Sequence[Look], way: Way) -> None:
    """Open the tour and go a way in it, then compare."""
    with tour_scene.place() as root:
        app = TourApp(FakeProgram(root))

        async def drive(pilot: Pilot[None]) -> None:
            await until(pilot, lambda: bool(app.ready and app.chat.prompt.text))
            await way(app, pilot)
            await until(pilot, lambda: bool(app.screen.query(TourPanel)))
            app.chat.measure(FULL)
            await pilot.pause()

        looks(app, drive, wanted)


async def beginning(app: TourApp, pilot: Pilot[None]) -> None:
    """The first step."""


async def asked(app: TourApp, pilot: Pilot[None]) -> None:
    """A command waits for a yes."""
    await skip_to(app, pilot, "long output")
    await send_laid(app, pilot, "run sh build.sh")
    await until(pilot, on(app, APPROVAL))


async def cut(app: TourApp, pilot: Pilot[None]) -> None:
    """The output was cut."""
    await asked(app, pilot)
    await allow(app, pilot)
    await until(pilot, lambda: app.tour.seen.cut is not None and at(app, "long output")())
    await until(pilot, lambda: app.screen.query_one(TourPanel).text.happened.startswith("The mod"))


async def over(app: TourApp, pilot: Pilot[None]) -> None:
    """The end."""
    while not app.tour.over:
        await pilot.press("f9")
    await until(pilot, lambda: app.screen.query_one(TourPanel).text.now == END.cues[0].say)


def test_the_first_step(looks: Looks) -> None:
    shoot(looks, EVERY, beginning)


def test_a_command_is_asked_for(looks: Looks) -> None:
    shoot(looks, EVERY, asked)


def test_long_output(looks: Looks) -> None:
    shoot(looks, EVERY, cut)


def test_the_end(looks: Looks) -> None:
    shoot(looks, EVERY, over)


@pytest.mark.parametrize("way", [beginning, asked, over])
def test_in_a_small_terminal(looks: Looks, way: Way) -> None:
    shoot(looks, [("midnight", SMALL)], way)
