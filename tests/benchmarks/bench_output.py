"""What 22.9 MB of a command's output cost, from the model's call to its next answer, in a pty.

With the settings as they are: in the sandbox, recorded and synced. The first such command of a
program also loads what starts it and cuts its output; the second shows what remains. Figures are
medians; each row is one over its limit. The processor time is that of the program, without the
command. The copy on the disk must be whole, and be the one that the record names.
"""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.benchmarks.pace import slowness
from tests.benchmarks.process_cost import cpu_s
from tests.benchmarks.streamed import playing
from tests.support.clock import PATIENCE_S
from tests.support.terminal import HOLDFAST, Terminal

RUNS = 5
LINES = 3_000_000
MB = 22.9
COLD_S, COLD_CPU_S = 0.33, 0.25
WARM_S, WARM_CPU_S = 0.28, 0.2
"""On a quiet machine."""
PEAK_MB = 110
"""45 of them are the two libraries."""

_CALL = {"tools": [{"name": "run_command", "input": {"command": f"seq 1 {LINES}"}}]}
_TURNS = [{"text": "ready"}, _CALL, {"text": "first answer"}, _CALL, {"text": "second answer"}]
_IDLE_S = 1.0
"""After the first answer, in which what is left to load is loaded."""


class _Cost(NamedTuple):
    seconds: float
    cpu_s: float
    peak_mb: float


def run() -> list[tuple[str, float, float]]:
    """(what, ratio measured, ratio allowed) of each measurement."""
    taken = [_measured() for _ in range(RUNS)]
    cold, warm = (_median([costs[n] for costs, _ in taken]) for n in (0, 1))
    missing, slow = sum(missing for _, missing in taken), slowness()
    return [
        _row("first", cold.seconds, COLD_S * slow, "s"),
        _row("first", cold.cpu_s, COLD_CPU_S * slow, "s of processor"),
        _row("first", cold.peak_mb, PEAK_MB, "MB at most"),
        _row("next", warm.seconds, WARM_S * slow, "s"),
        _row("next", warm.cpu_s, WARM_CPU_S * slow, "s of processor"),
        (f"copies of {2 * RUNS} that are not what was printed", float(missing), 0),
    ]


def _row(which: str, figure: float, goal: float, unit: str) -> tuple[str, float, float]:
    return (
        f"{which} {MB} MB of a command to the answer, {figure:.3g} of {goal:.3g} {unit}",
        (figure / goal),
        1,
    )


def _median(costs: list[_Cost]) -> _Cost:
    return _Cost(*map(statistics.median, zip(*costs, strict=True)))


def _measured() -> tuple[list[_Cost], int]:
    """What two such commands of one program cost, and how many copies are not whole."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        home = Path(folder)
        (home / "work").mkdir()
        posts = home / "requests.jsonl"
        with playing(home, _TURNS, "--log", str(posts)) as url:
            env = {k: v for k, v in os.environ.items() if not k.startswith("ANTHROPIC")}
            env |= {"HOLDFAST_HOME": folder, "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": url}
            with Terminal(HOLDFAST, cwd=home / "work", env=env, columns=120, rows=40) as screen:
                screen.wait_for("Ask for anything")
                screen.type("hello\r")
                screen.wait_for("1 prompt", "saved")
                costs = [_cost(screen, posts, f"{n} answer") for n in ("first", "second")]
        (session,) = (home / "data" / "sessions").rglob("*.jsonl")
        return costs, 2 - _whole(session)


def _cost(screen: Terminal, posts: Path, answer: str) -> _Cost:
    """From the request that is answered by the call until the next answer is on the screen."""
    idle = time.monotonic() + _IDLE_S
    while time.monotonic() < idle:
        screen.read(0.02)
    screen.forget()
    asked, until = posts.stat().st_size, time.monotonic() + PATIENCE_S
    screen.type("go\r")
    while posts.stat().st_size == asked:
        assert time.monotonic() < until, "it never asked"
        screen.read(0.001)
    started, used = time.perf_counter(), cpu_s(screen.process.pid)
    while answer not in screen.text:
        assert time.monotonic() < until, f"never answered: …{screen.text[-2000:]}"
        screen.read(0.005)
    seconds = time.perf_counter() - started
    return _Cost(seconds, cpu_s(screen.process.pid) - used, _peak_mb(screen.process.pid))


def _whole(session: Path) -> int:
    """How many results of a session name a copy that holds just what was printed."""
    printed = "".join(f"{n}\n" for n in range(1, LINES + 1)).encode()
    digest = hashlib.sha256(printed).hexdigest()
    records: list[dict[str, Any]] = list(map(json.loads, session.read_bytes().splitlines()))
    receipts = [one["receipt"] for one in records if one["type"] == "tool_result"]
    return sum(
        receipt["sha256"] == digest and Path(receipt["path"]).read_bytes() == printed
        for receipt in receipts
    )


def _peak_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024 / 1e6
