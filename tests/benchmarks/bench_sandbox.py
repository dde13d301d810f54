"""What walls cost a command, above one that is started without: of many in turns, the best of
those behind the first few.

All that a session does for a command counts: asking git, planning, starting, tidying up. A walled
command passes through several processes, each of which waits for a processor: on a busy machine
the ratio says more about the machine. A command that follows as a model's next call does finds its
walls waiting; of many that follow each other at once, the walls of each are built while those
before it run.
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
FIRST = 5
"""Rounds in which nothing is ready yet."""
PAUSE_S = 0.5
"""A model's answer lies between two calls."""
ENGINES: tuple[Literal["bubblewrap", "launcher"], ...] = ("bubblewrap", "launcher")
ALLOWED_MS = 8.0
"""On a quiet machine."""


def run() -> list[tuple[str, float, float]]:
    """(name, ratio measured, ratio allowed) of each engine that runs here."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        return asyncio.run(_rows(Path(folder)))


async def _rows(folder: Path) -> list[tuple[str, float, float]]:
    workspace = folder / "workspace"
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)  # noqa: ASYNC221
    rows: list[tuple[str, float, float]] = []
    for engine in ENGINES:
        confinement = Confinement(
            SandboxSettings(engine=engine), Workspace.at(workspace), folder / "s", folder / "c"
        )
        levels = (Level.READ_ONLY, Level.WORKSPACE) if await confinement.levels() else ()
        for level in levels:
            for rounds, pause_s in ((ROUNDS, 0.0), (PAUSED_ROUNDS, PAUSE_S)):
                cost = await _cost_ms(confinement, workspace, level, rounds, pause_s)
                most, when = ALLOWED_MS * slowness(), "after a pause" if pause_s else "at once"
                what = f"{engine}, {level}, {when}: the walls cost {cost:.1f} of {most:.1f} ms"
                rows.append((what, cost / most, 1.0))
        await confinement.close()
    return rows


async def _cost_ms(
    confinement: Confinement, workspace: Path, level: Level, rounds: int, pause_s: float
) -> float:
    start, bare, walled = confinement.starter(level), list[float](), list[float]()
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
    return (min(walled[FIRST:]) - min(bare[FIRST:])) * 1000
