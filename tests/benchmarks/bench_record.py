"""What it costs to write a record down, beside the bare system calls in the same run: in a thread,
for the disk may take long, and a loop must not wait for it."""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path

from tui.core.clock import SystemClock
from tui.core.paths import folders
from tui.session.session import Session

ROUNDS = 5
RECORDS = 120
ALLOWED = 1.4
WORDS = [{"type": "text", "text": "word " * 80}]


def run() -> list[tuple[str, float, float]]:
    """(name, ratio measured, ratio allowed) of each measurement."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        ratio = asyncio.run(_append_and_sync(Path(folder)))
    return [("record append + sync / a write and fdatasync in a thread", ratio, ALLOWED)]


async def _append_and_sync(folder: Path) -> float:
    """Alternating records, so that both sides see the same disk; the best of the rounds.

    A machine busy with something else delays the two threads of ours more than the one of the
    bare calls, so the quietest round is the one that measures the program.
    """
    session = Session.create(
        folder, folders=folders({"HOLDFAST_HOME": str(folder)}), clock=SystemClock()
    )
    line = (await session.commit("user", content=WORDS, text="x")).to_line()
    bare = os.open(folder / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    ratios: list[float] = []
    for _ in range(ROUNDS):
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(RECORDS):
            start = time.perf_counter()
            os.write(bare, line)
            await asyncio.to_thread(os.fdatasync, bare)
            middle = time.perf_counter()
            await session.commit("user", content=WORDS, text="x")
            theirs.append(middle - start)
            ours.append(time.perf_counter() - middle)
        ratios.append(statistics.median(ours) / statistics.median(theirs))
    os.close(bare)
    await session.close()
    return min(ratios)


if __name__ == "__main__":
    for name, measured, allowed in run():
        print(f"{name}: {measured:.2f} (allowed {allowed:.2f})")
