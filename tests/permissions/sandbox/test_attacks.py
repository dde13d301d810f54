"""No attack of the list has an effect outside what its level allows."""

from __future__ import annotations

import asyncio
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.permissions.sandbox.conftest import MARK, Scene, picture
from tui.permissions.sandbox.engine import Engine, Sandbox
from tui.permissions.sandbox.git_walls import git_places, quarantine, snapshot, with_git
from tui.permissions.sandbox.system_calls import landlock_version
from tui.permissions.sandbox.walls import Level

ATTACKS: list[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("attacks.toml").read_text(encoding="utf-8")
)["attack"]
BOTH = (Level.READ_ONLY, Level.WORKSPACE)
RUNS = [
    pytest.param(attack, level, id=f"{attack['name']}, {level}".replace(" ", "_"))
    for attack in ATTACKS
    for level in ([Level(attack["level"])] if "level" in attack else BOTH)
]


def sleepers() -> list[str]:
    """The processes that an attack has left."""
    asked = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return [
        line for line in asked.stdout.splitlines() if "sleep 4321" in line and "bash -c" not in line
    ]


@pytest.mark.parametrize(("attack", "level"), RUNS)
async def test_an_attack_has_no_effect(
    attack: dict[str, Any], level: Level, any_engine: Engine, scene: Scene
) -> None:
    if any_engine is Engine.LANDLOCK and level is not Level.READ_ONLY:
        pytest.skip("Landlock confines the read-only level alone")
    if landlock_version() < attack.get("needs_landlock", 0):
        pytest.skip("Landlock is older here")
    places = git_places(scene.workspace, scene.environment)
    scene.walls = with_git(scene.walls, places)
    names = snapshot(places)
    parts = (scene.walls.home, scene.outside, scene.workspace)
    before = [picture(part) for part in parts]
    sandbox = Sandbox(any_engine)
    try:
        _, output = await scene.run(sandbox, attack["commands"], level)
        assert not sleepers()
    finally:
        await asyncio.to_thread(sandbox.close)
    quarantine(names, scene.base / "quarantine")
    after = [picture(part) for part in parts]

    assert MARK not in output
    assert before[:2] == after[:2]
    if level is Level.READ_ONLY:
        assert before[2] == after[2]
    assert scene.reached() == []
    use_git_outside(scene)
    assert not scene.canary.exists()


def use_git_outside(scene: Scene) -> None:
    """What a person does later, in the workspace and without walls."""
    for words in (
        ["status"],
        ["add", "-A"],
        ["commit", "-qm", "later"],
        ["checkout", "-q", "-b", "x"],
    ):
        subprocess.run(
            ["git", "-C", str(scene.workspace), *words],
            env=scene.environment, capture_output=True, check=False,
        )  # fmt: skip
