"""The attacks of `test_attacks`, behind walls that waited for a command."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.permissions.sandbox.conftest import Scene, sleepers
from tests.permissions.sandbox.test_attacks import RUNS, Judge
from tests.permissions.sandbox.test_walls_ahead import Desk
from tui.permissions.sandbox.engine import Engine, Sandbox
from tui.permissions.sandbox.system_calls import landlock_version
from tui.permissions.sandbox.walls import Level


@pytest.mark.slow
@pytest.mark.parametrize(("attack", "level"), RUNS)
async def test_an_attack_has_no_effect_behind_walls_that_waited(
    attack: dict[str, Any], level: Level, engine: Engine, scene: Scene
) -> None:
    if landlock_version() < attack.get("needs_landlock", 0):
        pytest.skip("Landlock is older here")
    judge = Judge(scene, level)
    judge.look()
    desk = Desk(Sandbox(engine), scene, level)
    try:
        assert (await desk.run("true"))[0] == 0
        waits = await desk.waiting()
        _, output, keeper = await desk.run(scene.filled(attack["commands"]))
        assert keeper == waits
        assert not sleepers(scene)
    finally:
        await asyncio.to_thread(desk.sandbox.close)
    assert not judge.effects(output)
