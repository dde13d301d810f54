"""What walls cost a command, above one that is started without: the best of many, in turns.

All that a session does for a command counts: asking git, planning, starting, tidying up. A walled
command passes through several processes, each of which waits for a processor: on a busy machine
the ratio says more about the machine. A command that follows another at once has its walls built
for it; one that follows as a model's next call does finds them waiting.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Literal

from tests.benchmarks.pace import slowness
from tui.core.config import SandboxSettings
from tui.core.workspace import Workspace
from tui.keeper.command import SupervisedCommand
from tui.permissions.sandbox.confinement import Confinement
from tui.permissions.sandbox.walls import Level

ROUNDS, PAUSED_ROUNDS = 60, 15
PAUSE_S = 0.5
"""A model's answer lies between two calls."""
ALLOWED_MS: dict[Literal["bubblewrap", "launcher"], dict[Level, tuple[float, float]]] = {
    "bubblewrap": {Level.READ_ONLY: (15.0, 8.0), Level.WORKSPACE: (22.0, 8.0)},
    "launcher": {Level.READ_ONLY: (15.0, 8.0), Level.WORKSPACE: (18.0, 8.0)},
}
"""On a quiet machine; at once after another, and after a pause. Where a command may write, what
bubblewrap mounted is checked before the command runs: 5 ms."""


def run() -> list[tuple[str, float, float]]:
    """(name, ratio measured, ratio allowed) of each engine that runs here."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        return asyncio.run(_rows(Path(folder)))


async def _rows(folder: Path) -> list[tuple[str, float, float]]:
    workspace = folder / "workspace"
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)  # noqa: ASYNC221
    rows: list[tuple[str, float, float]] = []
    for engine, allowed in ALLOWED_MS.items():
        confinement = Confinement(
            SandboxSettings(engine=engine), Workspace.at(workspace), folder / "s", folder / "c"
        )
        for level, (at_once, later) in allowed.items() if await confinement.levels() else ():
            for rounds, pause_s, quiet_ms in (
                (ROUNDS, 0.0, at_once),
                (PAUSED_ROUNDS, PAUSE_S, later),
            ):
                cost = await _cost_ms(confinement, workspace, level, rounds, pause_s)
                most, when = quiet_ms * slowness(), "after a pause" if pause_s else "at once"
                what = f"{engine}, {level}, {when}: the walls cost {cost:.1f} of {most:.1f} ms"
                rows.append((what, cost / most, 1.0))
        await confinement.close()
    return rows


async def _cost_ms(
    confinement: Confinement, workspace: Path, level: Level, rounds: int, pause_s: float
) -> float:
    start, bare, walled = confinement.starter(level), [9.0], [9.0]
    for _ in range(rounds):
        await asyncio.sleep(pause_s)
        begin = time.perf_counter()
        process = await asyncio.create_subprocess_exec("/bin/true", start_new_session=True)
        await process.wait()
        middle = time.perf_counter()
        command = await SupervisedCommand.start(
            ["/bin/true"], cwd=workspace, env=os.environ, folder=workspace.parent / "kept",
            starter=start, call={}, limit=1 << 20, min_free=0,
        )  # fmt: skip
        await command.wait()
        await confinement.traces.tidy()
        walled.append(time.perf_counter() - middle)
        command.discard()
        bare.append(middle - begin)
    return (min(walled) - min(bare)) * 1000
