"""What an answer of 20,000 tokens costs at full speed, from Enter to its last line, in a pty.

With the real SDK, against a loopback server that sends as fast as it is read. The first answer of a
session also loads what reads, shows and counts it; the second shows what remains; in the third each
event is an HTTP chunk of its own, as real servers send them. Figures are medians; each row is one
over its limit. The processor time is that of the program, until the turn is recorded and over.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.pace import slowness
from tests.benchmarks.process_cost import cpu_s
from tests.benchmarks.streamed import essay, playing
from tests.support.clock import PATIENCE_S
from tests.support.terminal import HOLDFAST, Terminal

RUNS = 5
TOKENS, PIECE = 20_000, 4
FIRST_S, FIRST_CPU_S = 0.3, 0.3
"""On a quiet machine."""
DELTA_US = 20
CHUNK_US = 25
"""Measured: 17 to 19. Of these, HTTP takes 10 for each chunk, which nothing here can change (h11
5.4, httpcore 1.7, httpx 1.6, reading ahead 1), and events take 0.8; the rest is drawn and kept."""
_IDLE_S = 2.0
"""Before an answer, in which what is left to load is loaded."""
_AFTER_S = 0.5
"""After an answer, in which what it leaves to do is done."""


class _Cost(NamedTuple):
    seconds: float
    cpu_s: float


def run() -> list[tuple[str, float, float]]:
    """(what, ratio measured, ratio allowed) of each measurement."""
    taken = [_measured() for _ in range(RUNS)]
    first, second, third = (_median([costs[n] for costs in taken]) for n in range(3))
    print(f"      second {TOKENS:,}-token answer: {second.seconds:.2f} s, {second.cpu_s:.2f} CPU s")
    slow = slowness()
    most_s, most_cpu_s = FIRST_S * slow, FIRST_CPU_S * slow
    what = f"first {TOKENS:,}-token answer of a session"
    delta, chunk = (cost.cpu_s / TOKENS * 1e6 for cost in (second, third))
    return [
        (f"{what}, {first.seconds:.2f} of {most_s:.2f} s", first.seconds / most_s, 1),
        (f"{what}, {first.cpu_s:.2f} of {most_cpu_s:.2f} CPU s", first.cpu_s / most_cpu_s, 1),
        (
            f"one delta, wire to screen, {delta:.0f} of {DELTA_US} µs of processor",
            delta / DELTA_US,
            1,
        ),
        (
            f"one delta in a chunk of its own, {chunk:.0f} of {CHUNK_US} µs of processor",
            chunk / CHUNK_US,
            1,
        ),
    ]


def _median(costs: list[_Cost]) -> _Cost:
    return _Cost(*map(statistics.median, zip(*costs, strict=True)))


def _measured() -> list[_Cost]:
    """What the first three answers of a session cost."""
    ends = [f"This is the end of answer {number}." for number in (1, 2, 3)]
    turns = [
        {"text": f"{essay(TOKENS * PIECE - len(end) - 2)}\n\n{end}", "piece": PIECE, "burst": burst}
        for end, burst in zip(ends, (True, True, "chunks"), strict=True)
    ]
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        home = Path(folder)
        (home / "work").mkdir()
        with playing(home, turns) as url:
            env = {k: v for k, v in os.environ.items() if not k.startswith("ANTHROPIC")}
            env |= {"HOLDFAST_HOME": folder, "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": url}
            with Terminal(HOLDFAST, cwd=home / "work", env=env, columns=120, rows=40) as screen:
                screen.wait_for("Ask for anything")
                return [
                    _cost(screen, end, over)
                    for end, over in zip(ends, ("1 prompt", "2 prompts", "3 prompts"), strict=True)
                ]


def _cost(screen: Terminal, end: str, over: str) -> _Cost:
    """From Enter until the end of the answer is on the screen, or until the turn is over."""
    screen.type("go")
    screen.listen(_IDLE_S)
    screen.forget()
    used, started = cpu_s(screen.process.pid), time.perf_counter()
    screen.type("\r")
    while end not in screen.text:
        assert time.perf_counter() - started < PATIENCE_S, f"no end: …{screen.text[-2000:]}"
        screen.read(0.01)
    seconds = time.perf_counter() - started
    screen.wait_for(over, "saved")
    screen.listen(_AFTER_S)
    return _Cost(seconds, cpu_s(screen.process.pid) - used)
