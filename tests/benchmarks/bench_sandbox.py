"""What walls cost a command, above one that is started without: the best of many, in turns.

A walled command passes through several processes, each of which waits for a processor: on a busy
machine the ratio says more about the machine.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from pathlib import Path

from tui.permissions.sandbox.engine import Engine, Sandbox, probe
from tui.permissions.sandbox.walls import Level, Walls

ROUNDS = 60
ALLOWED_MS = {Engine.BUBBLEWRAP: 15.0, Engine.LAUNCHER: 25.0}


def run() -> list[tuple[str, float, float]]:
    """(name, ratio measured, ratio allowed) of each engine that runs here."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_rows(Path(folder)))


async def _rows(folder: Path) -> list[tuple[str, float, float]]:
    workspace = folder / "workspace"
    workspace.mkdir()
    walls = Walls(
        workspace=workspace, session=folder / "session", cache=folder / "cache",
        home=Path.home(), search_path=os.environ["PATH"],
    )  # fmt: skip
    rows: list[tuple[str, float, float]] = []
    for engine, allowed in ALLOWED_MS.items():
        if (await probe(engine, walls)).ok:
            cost = await _cost_ms(engine, walls)
            rows.append((f"{engine}: cost of the walls / {allowed:g} ms", cost / allowed, 1.0))
    return rows


async def _cost_ms(engine: Engine, walls: Walls) -> float:
    sandbox = Sandbox(engine)
    bare: list[float] = []
    walled: list[float] = []
    try:
        for _ in range(ROUNDS):
            start = time.perf_counter()
            process = await asyncio.create_subprocess_exec("/bin/true", start_new_session=True)
            await process.wait()
            middle = time.perf_counter()
            running = await sandbox.start(
                ["/bin/true"], cwd=walls.workspace, environment=os.environ, walls=walls,
                level=Level.READ_ONLY, output=1,
            )  # fmt: skip
            await running.wait()
            walled.append(time.perf_counter() - middle)
            bare.append(middle - start)
    finally:
        await asyncio.to_thread(sandbox.close)
    return (min(walled) - min(bare)) * 1000
