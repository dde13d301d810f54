"""What walls cost a command, above one that is started without: the best of many, in turns.

All that a session does for a command counts: asking git, planning, starting, tidying up. A walled
command passes through several processes, each of which waits for a processor: on a busy machine
the ratio says more about the machine.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Literal

from tui.core.config import SandboxSettings
from tui.core.workspace import Workspace
from tui.keeper.command import SupervisedCommand
from tui.permissions.sandbox.confinement import Confinement
from tui.permissions.sandbox.walls import Level

ROUNDS = 60
ALLOWED_MS: dict[Literal["bubblewrap", "launcher"], dict[Level, float]] = {
    "bubblewrap": {Level.READ_ONLY: 15.0, Level.WORKSPACE: 22.0},
    "launcher": {Level.READ_ONLY: 25.0, Level.WORKSPACE: 25.0},
}
"""Where a command may write, what bubblewrap mounted is checked before the command runs: 5 ms."""


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
        for level, most in allowed.items() if await confinement.levels() else ():
            cost = await _cost_ms(confinement, workspace, level)
            rows.append((f"{engine}, {level}: cost of the walls / {most:g} ms", cost / most, 1.0))
        await confinement.close()
    return rows


async def _cost_ms(confinement: Confinement, workspace: Path, level: Level) -> float:
    start, bare, walled = confinement.starter(level), [9.0], [9.0]
    for _ in range(ROUNDS):
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
