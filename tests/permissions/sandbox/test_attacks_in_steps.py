"""Attacks of several commands: what one leaves for the next, for git, or for the program itself."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.permissions.sandbox.conftest import MARK, Scene
from tests.permissions.sandbox.test_attacks import use_git_outside
from tests.support.clock import PATIENCE_S
from tests.support.folder_picture import picture
from tui.core.config import SandboxSettings
from tui.core.workspace import Workspace
from tui.keeper.command import Starter, SupervisedCommand
from tui.permissions.sandbox.confinement import Confinement
from tui.permissions.sandbox.engine import Engine
from tui.permissions.sandbox.walls import Level

ATTACKS: list[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("attacks_in_steps.toml").read_text(encoding="utf-8")
)["attack"]
BASH = shutil.which("bash") or "/bin/sh"


@dataclass(slots=True)
class Played:
    """A session in a scene, as the program has it."""

    scene: Scene
    confinement: Confinement

    @classmethod
    def begin(cls, scene: Scene, engine: Engine) -> Played:
        path = f"{scene.workspace}/bin:{scene.environment['PATH']}"
        walls = scene.walls
        made = Confinement(
            SandboxSettings(engine=engine.value),
            Workspace.at(scene.workspace),
            walls.session,
            walls.cache,
            environment={**scene.environment, "PATH": path},
        )
        return cls(scene, made)

    async def step(self, command: str, level: Level) -> str:
        argv = [BASH, "-c", self.scene.filled(command)]
        async with asyncio.timeout(PATIENCE_S):
            try:
                running = await self.start(argv, level)
            except OSError as error:  # it was not started
                return str(error)
            await running.wait()
        await self.confinement.traces.tidy()
        try:
            return running.read().decode(errors="replace")
        finally:
            running.discard()

    async def start(
        self, argv: Sequence[str], level: Level, starter: Starter | None = None
    ) -> SupervisedCommand:
        starter = starter or self.confinement.starter(level)
        return await SupervisedCommand.start(
            argv, cwd=self.scene.workspace, env=self.scene.environment,
            folder=self.scene.base / "kept" / "command", starter=starter,
            call={}, limit=1 << 20, min_free=0,
        )  # fmt: skip


def without_walls(scene: Scene, command: str) -> None:
    subprocess.run(
        [BASH, "-c", scene.filled(command)],
        cwd=scene.workspace, env=scene.environment, check=True, capture_output=True,
    )  # fmt: skip


def outside(scene: Scene) -> list[dict[str, str]]:
    return [picture(part) for part in (scene.walls.home, scene.outside)]


async def play(
    scene: Scene, engine: Engine, steps: Sequence[str], level: Level
) -> tuple[str, list[str]]:
    """The output of all, and what the notice at the end of the turn names."""
    played = Played.begin(scene, engine)
    try:
        texts = [await played.step(step, level) for step in steps]
        named = [
            str(path.relative_to(scene.workspace))
            for path in await played.confinement.traces.changed_files()
        ]
    finally:
        await played.confinement.close()
    return "\n".join(texts), named


@pytest.mark.parametrize(
    "attack", [pytest.param(one, id=one["name"].replace(" ", "_")) for one in ATTACKS]
)
async def test_an_attack_in_steps_has_no_effect(
    attack: dict[str, Any], engine: Engine, scene: Scene
) -> None:
    without_walls(scene, attack.get("before", "true"))
    before = outside(scene)
    level = Level(attack.get("level", "workspace"))
    output, named = await play(scene, engine, attack["steps"], level)
    assert outside(scene) == before
    for command in attack.get("later", ()):
        without_walls(scene, f"{command}; true")
    if not attack.get("leads_git"):
        use_git_outside(scene)
    assert outside(scene) == before
    assert not scene.canary.exists()
    assert MARK not in output
    assert not scene.reached()
    assert set(attack.get("named", ())) <= set(named)


@pytest.mark.parametrize("left", [False, True], ids=["stopped", "left"])
async def test_a_job_in_the_background_plants_nothing(
    engine: Engine, scene: Scene, *, left: bool
) -> None:
    played = Played.begin(scene, engine)
    ready = scene.workspace / "ready"
    command = "until test -e ready; do :; done; echo x > .git/commondir; : > done; exec sleep 60"
    job = await played.start([BASH, "-c", command], Level.WORKSPACE)
    assert await played.confinement.traces.tidy() == []
    ready.touch()
    async with asyncio.timeout(PATIENCE_S):
        while not (scene.workspace / "done").exists():
            await asyncio.to_thread(ready.exists)
    if left:  # by a program that was killed: the next one finds it
        later = Played.begin(scene, engine)
        later.confinement.traces.take_over(job.folder)
        job.kill()
        await job.wait()
        assert len(await later.confinement.traces.tidy()) == 1
        played = later
    job.kill()
    await job.wait()
    await played.confinement.close()
    assert not (scene.workspace / ".git/commondir").exists()


async def test_what_runs_without_a_question_fills_no_cache_of_a_build(
    engine: Engine, scene: Scene
) -> None:
    played = Played.begin(scene, engine)
    try:
        await played.step("mkdir ~/.gradle/init.d; echo planted > ~/.gradle/x", Level.READ_ONLY)
        assert "planted" in await played.step("cat ~/.gradle/x", Level.READ_ONLY)
        assert "planted" not in await played.step("cat ~/.gradle/x", Level.NETWORK)
    finally:
        await played.confinement.close()
