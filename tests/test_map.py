"""tui/README.md, the map, and CONTRIBUTING name files, functions and rooms that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TUI = ROOT / "tui"
MAP = (TUI / "README.md").read_text(encoding="utf-8")
GUIDE = (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROOMS = sorted(path.parent.name for path in TUI.glob("*/__init__.py"))
PATH = re.compile(r"`((?:\.\./)?[\w.-]+/[\w./-]*|[\w-]+\.(?:toml|md))(?::(\w+))?`")


def named(text: str, base: Path) -> list[tuple[Path, str]]:
    """The paths in backticks, each with the name that follows a colon. An example is no path."""
    return [(base / path, name) for path, name in PATH.findall(text) if "NAME" not in path]


@pytest.mark.parametrize(("text", "base"), [(MAP, TUI), (GUIDE, ROOT)], ids=["map", "guide"])
def test_every_path_exists(text: str, base: Path) -> None:
    paths = named(text, base)
    assert len(paths) > 15
    assert [str(path) for path, _ in paths if not path.exists()] == []


def test_every_station_is_a_function_or_class_of_its_file() -> None:
    stations = [(path, name) for path, name in named(MAP, TUI) if name]
    assert len(stations) > 10
    for path, name in stations:
        assert re.search(rf"\b(def|class) {name}\b", path.read_text(encoding="utf-8")), (path, name)


def test_every_room_has_its_line() -> None:
    tree = MAP.partition("## Rooms")[2].partition("## Layers")[0]
    rows = [line for line in tree.splitlines() if re.match(r"\w+/ ", line)]
    assert sorted(row.partition("/")[0] for row in rows if "no code" not in row) == ROOMS
    assert len(ROOMS) == 17


def test_the_layers_are_those_that_are_enforced() -> None:
    drawn = re.search(r"## Layers\n\n```\n(.*?)```", MAP, re.DOTALL)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    enforced = re.search(r"^layers = \[\n(.*?)^\]", project, re.DOTALL | re.MULTILINE)
    assert drawn
    assert enforced
    assert drawn[1].split("\n")[:-1] == re.findall(r'"(.+)"', enforced[1])


def test_the_map_is_short() -> None:
    assert len(MAP.splitlines()) <= 180
