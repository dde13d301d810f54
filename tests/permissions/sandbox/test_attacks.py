"""No attack of the list has an effect outside what its level allows."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from tests.permissions.sandbox.conftest import MARK, Scene, sleepers
from tests.support.folder_picture import picture
from tui.permissions.sandbox.engine import Engine, Sandbox
from tui.permissions.sandbox.git_quarantine import Watched, quarantine, snapshot
from tui.permissions.sandbox.git_walls import git_places, with_git
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


@dataclass(slots=True)
class Judge:
    """Looks at a scene before and after."""

    scene: Scene
    level: Level
    before: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    names: dict[Path, Watched] = field(default_factory=dict[Path, Watched])

    def look(self) -> None:
        places = git_places(self.scene.workspace, self.scene.environment)
        self.scene.walls = with_git(self.scene.walls, places)
        self.names = snapshot(places)
        self.before = self.pictures()

    def pictures(self) -> list[dict[str, str]]:
        scene = self.scene
        parts = [scene.walls.home, scene.outside]
        parts += [scene.workspace] if self.level is Level.READ_ONLY else []
        return [picture(part) for part in parts]

    def effects(self, output: str) -> list[str]:
        """What the attack reached; quarantine and a later use of git come before."""
        seen = [f"left running: {number}" for number in sleepers(self.scene)]
        seen += ["printed a secret"] if MARK in output else []
        seen += ["changed files"] if self.pictures() != self.before else []
        seen += [f"reached {name}" for name in self.scene.reached()]
        quarantine(self.names, self.scene.base / "quarantine")
        use_git_outside(self.scene)
        return seen + (["ran later"] if self.scene.canary.exists() else [])


@pytest.mark.parametrize(("attack", "level"), RUNS)
async def test_an_attack_has_no_effect(
    attack: dict[str, Any], level: Level, any_engine: Engine, scene: Scene
) -> None:
    if any_engine is Engine.LANDLOCK and level is not Level.READ_ONLY:
        pytest.skip("Landlock confines the read-only level alone")
    if landlock_version() < attack.get("needs_landlock", 0):
        pytest.skip("Landlock is older here")
    judge = Judge(scene, level)
    judge.look()
    sandbox = Sandbox(any_engine)
    try:
        _, output = await scene.run(sandbox, attack["commands"], level)
        assert not sleepers(scene)
    finally:
        await asyncio.to_thread(sandbox.close)
    assert not judge.effects(output)


@pytest.mark.parametrize(
    ("attack", "level"),
    [run for run in RUNS if cast("dict[str, Any]", run.values[0]).get("harmless")],
)
def test_the_judge_sees_the_attack_without_walls(
    attack: dict[str, Any], level: Level, scene: Scene
) -> None:
    judge = Judge(scene, level)
    judge.look()
    said = scene.base / "output"
    with said.open("wb") as output:
        subprocess.run(
            ["bash", "-c", scene.filled(attack["commands"])], cwd=scene.workspace, check=False,
            env=scene.environment, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    try:
        assert judge.effects(said.read_text(errors="replace"))
    finally:
        end_sleepers(scene)


def end_sleepers(scene: Scene) -> None:
    """What the attack without walls has left."""
    for number in sleepers(scene):
        os.kill(number, signal.SIGKILL)


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
