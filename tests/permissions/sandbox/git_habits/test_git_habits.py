"""Git behind the walls: the same repository and the same words as without, or one question."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.permissions.sandbox.conftest import runnable
from tests.permissions.sandbox.git_habits.replay import Habit, Place, differences, habits
from tui.permissions.sandbox.engine import Engine

HABITS = habits()
FEW = {
    "git switch -c z origin/topic", "git remote add up https://example.org/up.git",
    "git sparse-checkout set docs", "git worktree remove w", "git submodule update --init",
}  # fmt: skip
"""Those of the default suite."""


def tried() -> Iterator[object]:
    """Each with bubblewrap, and some with the launcher."""
    for number, habit in enumerate(HABITS):
        few = habit.command in FEW
        for engine in (Engine.BUBBLEWRAP, Engine.LAUNCHER):
            if engine is Engine.BUBBLEWRAP or few or number % 4 == 0:
                quick = few and (number % 2 == 0) == (engine is Engine.LAUNCHER)
                marks = () if quick else (pytest.mark.slow,)
                yield pytest.param(engine, habit, id=f"{engine}-{habit.command}", marks=marks)


def test_the_table_is_large() -> None:
    assert len({habit.command for habit in HABITS}) >= 150
    assert {habit.command for habit in HABITS} >= FEW


@pytest.mark.parametrize(("engine", "habit"), tried())
async def test_git_does_and_says_the_same_behind_the_walls(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    probe_folder: Path,
    engine: Engine,
    habit: Habit,
) -> None:
    await asyncio.to_thread(runnable, engine, probe_folder)
    place = await asyncio.to_thread(Place, tmp_path)
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    outside = await asyncio.to_thread(place.outside, habit)
    inside = await place.inside(habit, engine)
    assert differences(outside, inside) == []
    assert len(inside.asked) == habit.asks, inside.asked


@pytest.mark.parametrize("engine", [Engine.BUBBLEWRAP, Engine.LAUNCHER])
async def test_no_other_command_reaches_the_copies_of_gits_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, probe_folder: Path, engine: Engine
) -> None:
    """What could put a link in their place would lead our writing, or a mount, anywhere."""
    await asyncio.to_thread(runnable, engine, probe_folder)
    place = await asyncio.to_thread(Place, tmp_path)
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    shared = "git config branch.z.merge refs/heads/z; ls -A /tmp | grep git; readlink .git/config"
    inside = await place.inside(Habit(shared), engine)
    assert inside.said.startswith("/run/holdfast/git/")
    assert inside.state["work: git config --local --list"].count("branch.z.merge") == 1
