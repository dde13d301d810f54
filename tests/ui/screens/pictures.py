"""What the pictures of screens share. A picture is named in a table with the screen it shows.

Every picture is taken in two themes and two sizes; one of a lesser state of a screen (`state`) in
each theme and in each size once. The app runs once for all of them: its colours are changed and its
terminal is resized in between. `--snapshot-update` takes them anew.
"""

from __future__ import annotations

import asyncio
import pickle
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

import pytest
from pytest_textual_snapshot import (
    PseudoApp,
    PseudoConsole,
    SVGImageExtension,
    node_to_report_path,
)
from rich.console import Console
from syrupy.assertion import SnapshotAssertion
from syrupy.location import PyTestLocation
from syrupy.types import SnapshotIndex
from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen

from tests.support.world import World
from tests.ui.screens.driving import NARROW, WIDE, app_of, say, session_open, until
from tui.ui.app import HoldfastApp
from tui.ui.toolkit.base_app import ThemedApp

Compare: TypeAlias = Callable[..., bool]
Drive: TypeAlias = Callable[[Pilot[None]], Awaitable[None]]

Look: TypeAlias = tuple[str, tuple[int, int]]
"""A theme and a size."""

EVERY: tuple[Look, ...] = (
    ("midnight", WIDE),
    ("daylight", WIDE),
    ("daylight", NARROW),
    ("midnight", NARROW),
)
"""In the order of the fewest changes; one of colours costs most."""
ONCE: tuple[Look, ...] = EVERY[::2]


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a picture is taken. `folder` is empty and the picture's own."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch
    theme: str

    def workspace(self) -> Path:
        """A folder that can be written, shown as ~/proj."""
        self.monkeypatch.setenv("HOME", str(self.folder))
        made = self.folder / "proj"
        made.mkdir()
        return made

    def app(self, world: World, **options: Any) -> HoldfastApp:
        """The app in a world, in the first look's theme; `options` are those of `Opening`."""
        return app_of(world, theme=self.theme, **options)


Shot: TypeAlias = tuple[App[Any], Drive]
"""An app, and what brings it to what the picture shows."""


@dataclass(frozen=True, slots=True)
class Picture:
    """`screen` is the class of what stands on top when the picture is taken.

    `fresh` runs the app for each look: what is shown there depends on the size it began in.
    """

    screen: type[Screen[Any]]
    make: Callable[[Stage], Shot]
    state: bool = False
    fresh: bool = False


Pictures: TypeAlias = Mapping[str, Picture]


def each_of(pictures: Pictures) -> pytest.MarkDecorator:
    """Parametrises a test with `picture`."""
    return pytest.mark.parametrize("picture", list(pictures.values()), ids=list(pictures))


class _Svg(SVGImageExtension):
    """A picture's file: `test[state]` in a look becomes `test[state-look]`, `test` `test[look]`."""

    @classmethod
    def get_snapshot_name(cls, *, test_location: PyTestLocation, index: SnapshotIndex = 0) -> str:
        name: str = test_location.snapshot_name
        return f"{name[:-1]}-{index}]" if name.endswith("]") else f"{name}[{index}]"


Looks: TypeAlias = Callable[[App[Any], Drive, Sequence[Look]], None]


@pytest.fixture
def looks(snapshot: SnapshotAssertion, request: pytest.FixtureRequest) -> Looks:
    """Runs an app once and compares what it shows in each look with the picture that is kept."""
    kept = snapshot.use_extension(_Svg)
    node = cast("pytest.Function", request.node)

    def compared(app: App[Any], drive: Drive, wanted: Sequence[Look]) -> None:
        taken: dict[str, str] = {}

        async def run() -> None:
            async with app.run_test(size=wanted[0][1]) as pilot:
                await drive(pilot)
                for theme, size in wanted:
                    await _look(pilot, theme, size)
                    svg = app.export_screenshot(title=app.title, simplify=True)
                    taken[_name(theme, size)] = svg

        asyncio.run(run())
        same = {name: kept(name=name) == svg for name, svg in taken.items()}
        for number, (name, svg) in enumerate(taken.items()):
            found = list(kept.executions.values())[number - len(taken)].final_data
            _report(node, name, svg, found, same=same[name])
        assert all(same.values()), [name for name, one in same.items() if not one]

    return compared


def _report(node: pytest.Function, look: str, svg: str, kept: Any, *, same: bool) -> None:
    """Leave a picture to the plugin's report, in the plugin's form."""
    path, line, name = node.reportinfo()
    console = Console(legacy_windows=False, force_terminal=True)
    app = PseudoApp(PseudoConsole(console.legacy_windows, console.size))
    told = (same, str(kept), svg, app, path, line, f"{name} {look}", "", "", kept is not None)
    place = node_to_report_path(node)
    place.with_name(f"{place.name}_{look}").write_bytes(pickle.dumps(told))


async def _look(pilot: Pilot[None], theme: str, size: tuple[int, int]) -> None:
    """Show an app in other colours and another size, and wait until it stands."""
    if pilot.app.theme != theme:
        assert isinstance(pilot.app, ThemedApp)
        assert not pilot.app.use_theme(theme)
    if pilot.app.size != size:
        await pilot.resize_terminal(*size)
    await pilot.pause()
    await pilot.wait_for_scheduled_animations()
    await pilot.pause()


def _name(theme: str, size: tuple[int, int]) -> str:
    return f"{theme}-{size[0]}x{size[1]}"


Take: TypeAlias = Callable[[Picture], None]


@pytest.fixture
def take(looks: Looks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Take]:
    """Takes the pictures of a state, and compares them with those that are kept."""

    def taken(picture: Picture) -> None:
        wanted = ONCE if picture.state else EVERY
        runs = [[look] for look in wanted] if picture.fresh else [wanted]
        for number, run in enumerate(runs):
            folder = tmp_path / str(number)
            folder.mkdir()
            app, drive = picture.make(Stage(folder, monkeypatch, run[0][0]))

            async def stand(pilot: Pilot[None], drive: Drive = drive) -> None:
                await drive(pilot)
                await until(pilot, lambda: type(pilot.app.screen) is picture.screen)

            looks(app, stand, run)

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
