"""A command that runs already swaps folders and links while the walls of the next are built."""

from __future__ import annotations

import asyncio
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.permissions.sandbox.conftest import MARK, Scene, runnable
from tests.support.folder_picture import picture
from tui.permissions.sandbox import bubblewrap
from tui.permissions.sandbox import engine as engines
from tui.permissions.sandbox.bubblewrap import arguments
from tui.permissions.sandbox.engine import Engine, Sandbox, SandboxError
from tui.permissions.sandbox.observed import Observed
from tui.permissions.sandbox.walls import Level, Plan, Walls, plan

WRITE = Level.WORKSPACE
ATTACK = "cat deep/config; echo x > deep/config; echo x > deep/new; true"
FLIP = """
import ctypes, itertools, time
libc = ctypes.CDLL(None)
print("ready", flush=True)
for wait in itertools.cycle((0.0002, 0.0005, 0.001, 0.003)):
    end = time.perf_counter() + wait
    while time.perf_counter() < end:
        pass
    libc.renameat2(-100, b"deep", -100, b"link", 2)
"""


@pytest.fixture
def guarded(scene: Scene) -> Scene:
    """A scene with a protected file in a folder that another command may rename."""
    deep = scene.workspace / "deep"
    deep.mkdir()
    (deep / "config").write_text("inside\n")
    (scene.walls.home / "config").write_text(MARK)
    (scene.workspace / "link").symlink_to(scene.walls.home)
    scene.walls = replace(scene.walls, protected=(deep / "config",))
    return scene


async def test_what_is_protected_is_mounted_where_it_lies(sandbox: Sandbox, guarded: Scene) -> None:
    code, output = await guarded.run(sandbox, f"{ATTACK}; mv deep away", WRITE)
    assert code != 0
    assert output.startswith("inside\n")
    assert (guarded.workspace / "deep/config").read_text() == "inside\n"
    assert (guarded.workspace / "deep/new").exists()


async def test_a_link_in_the_place_of_a_planned_folder_is_not_followed(
    sandbox: Sandbox, guarded: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swapped_after(walls: Walls, level: Level, observed: Observed) -> Plan:
        made = plan(walls, level, observed)
        (guarded.workspace / "deep").rename(guarded.workspace / "kept")
        (guarded.workspace / "link").rename(guarded.workspace / "deep")
        return made

    monkeypatch.setattr(engines, "plan", swapped_after)
    before = picture(guarded.walls.home)
    try:
        output = (await guarded.run(sandbox, ATTACK, WRITE))[1]
    except SandboxError as error:
        output = str(error)
    assert MARK not in output
    assert picture(guarded.walls.home) == before


async def test_bubblewrap_found_something_else_at_a_path(
    guarded: Scene, probe_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = Sandbox(await asyncio.to_thread(runnable, Engine.BUBBLEWRAP, probe_folder))
    deep, home = str(guarded.workspace / "deep"), str(guarded.walls.home)

    def elsewhere(made: Plan, cwd: str) -> list[str]:
        words = arguments(made, cwd)
        at = words.index(deep)
        return [*words[:at], home, *words[at + 1 :]]

    monkeypatch.setattr(bubblewrap, "arguments", elsewhere)
    before = picture(guarded.walls.home)
    try:
        with pytest.raises(SandboxError, match="moved while the walls were built"):
            await guarded.run(sandbox, ATTACK, WRITE)
    finally:
        await asyncio.to_thread(sandbox.close)
    assert picture(guarded.walls.home) == before


@pytest.mark.slow
async def test_a_command_that_keeps_swapping(sandbox: Sandbox, guarded: Scene) -> None:
    (guarded.workspace / "flip.py").write_text(FLIP)
    reading, writing = os.pipe()
    flipping = await sandbox.start(
        [shutil.which("bash") or "/bin/sh", "-c", "python3 flip.py"], cwd=guarded.workspace,
        environment=guarded.environment, walls=replace(guarded.walls, protected=()), level=WRITE,
        output=writing,
    )  # fmt: skip
    os.close(writing)
    assert (await asyncio.to_thread(os.read, reading, 100)).startswith(b"ready")
    before = picture(guarded.walls.home)
    outcomes: set[str] = set()
    for _ in range(150):
        try:
            said = (await guarded.run(sandbox, ATTACK, WRITE))[1]
        except (SandboxError, OSError) as error:
            said = str(error)
        outcomes.add(said)
        assert picture(guarded.walls.home) == before, said
    assert flipping.returncode is None
    os.close(reading)
    assert not any(MARK in said for said in outcomes), outcomes
    assert len(outcomes) > 1
