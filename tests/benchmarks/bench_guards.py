"""What the guards cost: beside one encode and one write of the same text, and beside a limit.

The floor of a cut result is to encode it once, to write it once and to sync it; the guards also
count its lines, hash the copy and count the tokens of 2 MB of it, which alone takes as long as
one or two floors. Six are allowed. A command of 1 GB is run in a process of its own: its memory
must not grow with its output, and the event loop must go on turning.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tui.core.messages import ToolOutput
from tui.tokens import tokenizer
from tui.tools.limits.pipeline import GuardLimits, guard

ROUNDS = 5
TEXT = "".join(f"{n}: the quick brown fox jumps over the lazy dog\n" for n in range(400_000))
GIGABYTE = 1_000_000_000
LEEWAY_MB = 32
"""What a run may hold above a program that has loaded the same and run nothing."""
STALL_MS = 100


def run() -> list[tuple[str, float, float]]:
    """(name, ratio measured, ratio allowed) of each measurement."""
    tokenizer.default.load()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        cost = min(_cut_to_floor(Path(folder), n) for n in range(ROUNDS))
        idle = _measured(folder, 0)
        flood = _measured(folder, GIGABYTE)
    grown = (flood["rss_kb"] - idle["rss_kb"]) / 1024
    return [
        ("cut of 20 MB / encode + write + sync", cost, 6.0),
        ("memory that a command of 1 GB takes / 32 MB", grown / LEEWAY_MB, 1.0),
        ("longest stall of the loop meanwhile / 100 ms", flood["stall_ms"] / STALL_MS, 1.0),
        ("bytes of 1 GB missing in the full copy", float(GIGABYTE - flood["kept"]), 0.0),
    ]


def _cut_to_floor(folder: Path, number: int) -> float:
    text = TEXT[: 20 * 1024 * 1024]
    start = time.perf_counter()
    with (folder / f"floor-{number}").open("wb") as file:
        file.write(text.encode())
        file.flush()
        os.fdatasync(file.fileno())
    middle = time.perf_counter()
    spill = folder / ".holdfast" / "tool-results" / f"{number}.txt"
    cut = guard(ToolOutput.text(text), tool="any", keep="ends", spill=spill, limits=GuardLimits())
    receipt = asyncio.run(cut).receipt
    end = time.perf_counter()
    assert receipt is not None
    assert receipt.bytes_kept == len(text)
    spill.unlink()
    return (end - middle) / (middle - start)


def _measured(folder: str, size: int) -> dict[str, float]:
    """What a process of its own says after it has run a command that prints `size` bytes."""
    command = [sys.executable, "-m", "tests.benchmarks.bench_guards", folder, str(size)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    return json.loads(done.stdout)


async def _flood(root: Path, size: int) -> dict[str, float]:
    """Run the command through a real agent, a ticker beside it."""
    from tests.support.agents import Yes, events_of, make_agent  # noqa: PLC0415
    from tests.support.provider import ScriptedProvider, call, say  # noqa: PLC0415

    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.005)
            now = time.perf_counter()
            longest, last = max(longest, now - last - 0.005), now

    await tokenizer.load()
    command = f"yes 'a line of output that says nothing at all' | head -c {size}"
    provider = ScriptedProvider([call("run_command", f"size_{size}", command=command)], say("ok"))
    agent = make_agent(root, provider, approver=Yes())
    ticker = asyncio.create_task(tick())
    await events_of(agent, "go")
    ticker.cancel()
    (record,) = [r for r in agent.session.records if r.type == "tool_result"]
    receipt = record.data["receipt"]
    kept = 0
    if receipt is not None:
        kept = int(receipt["bytes_kept"])
        _check_and_remove(Path(receipt["path"]), str(receipt["sha256"]))
    return {"rss_kb": _peak_kb(), "stall_ms": longest * 1000, "kept": kept}


def _check_and_remove(path: Path, sha256: str) -> None:
    with path.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == sha256
    path.unlink()


def _peak_kb() -> int:
    """The most memory this process has held. `getrusage` may tell that of the one it came from."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1])


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(asyncio.run(_flood(Path(sys.argv[1]), int(sys.argv[2])))))
    else:
        for name, measured, allowed in run():
            print(f"{name}: {measured:.2f} (allowed {allowed:.2f})")
