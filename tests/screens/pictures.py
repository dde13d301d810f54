"""What the pictures of screens share. A picture is named in a table with the screen it shows.

Every picture is taken in two themes and two sizes; one of a lesser state of a screen (`state`) in
each theme and in each size once. `--snapshot-update` takes them anew.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen

from tests.screens.driving import NARROW, WIDE, app_of, say, session_open, until
from tests.support.fake_agent import World
from tui.app import HoldfastApp

Compare: TypeAlias = Callable[..., bool]
Drive: TypeAlias = Callable[[Pilot[None]], Awaitable[None]]

THEMES = ("midnight", "daylight")
_IDS = {WIDE: "120x40", NARROW: "80x24"}


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a picture is taken. `folder` is empty and the picture's own."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch
    theme: str = "midnight"

    def workspace(self) -> Path:
        """A folder that can be written, shown as ~/proj."""
        self.monkeypatch.setenv("HOME", str(self.folder))
        made = self.folder / "proj"
        made.mkdir()
        return made

    def app(self, world: World, **options: Any) -> HoldfastApp:
        """The app in a world, in the stage's colours; `options` are those of `Opening`."""
        return app_of(world, theme=self.theme, **options)


Shot: TypeAlias = tuple[App[Any], Drive]
"""An app, and what brings it to what the picture shows."""


@dataclass(frozen=True, slots=True)
class Picture:
    """`screen` is the class of what stands on top when the picture is taken."""

    screen: type[Screen[Any]]
    make: Callable[[Stage], Shot]
    state: bool = False


Pictures: TypeAlias = Mapping[str, Picture]


def each_of(pictures: Pictures) -> pytest.MarkDecorator:
    """Parametrises a test with `picture`, `theme` and `size`."""
    every = [(theme, size) for theme in THEMES for size in (WIDE, NARROW)]
    return pytest.mark.parametrize(
        ("picture", "theme", "size"),
        [
            pytest.param(picture, theme, size, id=f"{name}-{theme}-{_IDS[size]}")
            for name, picture in pictures.items()
            for theme, size in (every[::3] if picture.state else every)
        ],
    )


Take: TypeAlias = Callable[[Picture, str, tuple[int, int]], None]


@pytest.fixture
def take(snap_compare: Compare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Take]:
    """Takes a picture, and compares it with the one that is kept."""

    def taken(picture: Picture, theme: str, size: tuple[int, int]) -> None:
        app, drive = picture.make(Stage(tmp_path, monkeypatch, theme))

        async def before(pilot: Pilot[None]) -> None:
            await drive(pilot)
            assert type(pilot.app.screen) is picture.screen

        assert snap_compare(app, terminal_size=size, run_before=before)

    at_home(monkeypatch)
    yield taken
    monkeypatch.undo()
    time.tzset()


def at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """The person's home is /home/me, without other agents, and the time zone is UTC."""
    for name in ("CLAUDE_CONFIG_DIR", "PI_CODING_AGENT_DIR", "OPENCLAW_STATE_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def here(app: App[Any]) -> HoldfastApp:
    """The app as what it is."""
    assert isinstance(app, HoldfastApp)
    return app


async def opened(pilot: Pilot[None]) -> None:
    """Wait until a session is open, or another screen covers the chat."""
    app = here(pilot.app)
    await until(pilot, lambda: session_open(app) or len(app.screen_stack) > 1)


def prompt(text: str, done: Callable[[HoldfastApp], bool]) -> Drive:
    """Open a session, send a prompt, and wait for something."""

    async def drive(pilot: Pilot[None]) -> None:
        await opened(pilot)
        await say(pilot, text)
        app = here(pilot.app)
        await until(pilot, lambda: done(app))

    return drive


def command(text: str, screen: type[Screen[Any]], *keys: str) -> Drive:
    """Open a session, give a command that shows a screen, and press keys there."""

    async def drive(pilot: Pilot[None]) -> None:
        await prompt(text, lambda app: isinstance(app.screen, screen))(pilot)
        await pilot.press(*keys)
        await pilot.pause()

    return drive


def press(*keys: str) -> Drive:
    """Open a session, and press keys."""

    async def drive(pilot: Pilot[None]) -> None:
        await opened(pilot)
        await pilot.press(*keys)
        await pilot.pause()

    return drive
