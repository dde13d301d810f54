"""How soon a typed key is on the screen while the program has its hands full, in a pty.

While an answer of 20,000 tokens streams at full speed from a loopback server, and while a command
prints 20 MB into the output pane; beside that the memory the output costs, and how much longer the
program takes to be ready with it than to start. Each row is a figure over its limit.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.benchmarks.streamed import streaming
from tests.support.terminal import HOLDFAST, Terminal

TOKENS, PIECE = 20_000, 4
OUTPUT_MB = 20
_KEYS = "ΩΨΦΣΠΞΛΘΔΓЖЦЧШЩЭЮЯБД"
"""Nothing else on the screen has them."""
_PAUSE_S = 0.1
_ROUNDS = 5
"""The output is there so fast that there is time for a few keys only."""

_PRINT = """\
import sys
line = "2026-11-21 07:00:00 module.%06d some text with /usr/lib/%06d\\n"
left = {megabytes} * 1_000_000
n = 0
while left > 0:
    piece = "".join(line % (n + i, n + i) for i in range(1000))
    sys.stdout.write(piece)
    left -= len(piece)
    n += 1000
sys.stdout.write("the very end\\n")
"""


def run() -> list[tuple[str, float, float]]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "work").mkdir()
        (home / "print.py").write_text(_PRINT.format(megabytes=OUTPUT_MB))
        with streaming(home, tokens=TOKENS, piece=PIECE, every_s=0.0005) as url:
            return [*_while_it_streams(home, url), *_while_it_prints(home)]


def _env(home: Path, **more: str) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("ANTHROPIC")}
    return env | {"HOLDFAST_HOME": str(home)} | more


def _while_it_streams(home: Path, url: str) -> list[tuple[str, float, float]]:
    env = _env(home, ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL=url)
    with Terminal(HOLDFAST, cwd=home / "work", env=env, columns=120, rows=40) as screen:
        screen.wait_for("Ask for anything")
        screen.type("hello\r")
        screen.wait_for("1 turn", "saved")
        screen.forget()
        screen.type("go\r")
        screen.wait_for("answering")
        waits = _latencies(screen, lambda: "2 turns" in screen.text)
    middle, worst = statistics.median(waits), max(waits)
    what = f"a key while {TOKENS:,} tokens stream, {1e3 * middle:.0f} ms of 50"
    return [(f"{what} ({len(waits)} keys, slowest {1e3 * worst:.0f} ms)", middle / 0.05, 1)]


def _while_it_prints(home: Path) -> list[tuple[str, float, float]]:
    argv = [*HOLDFAST, "--practice"]
    command = f"!{sys.executable} {home / 'print.py'}\r"
    with Terminal(argv, cwd=home / "work", env=_env(home), columns=120, rows=40) as screen:
        screen.wait_for("ask first", "Ask for anything", "practice")
        _rest(screen, 1.0)
        memory: list[float] = []
        times: list[float] = []
        waits: list[float] = []
        for _ in range(_ROUNDS):
            screen.forget()
            started = time.perf_counter()
            screen.type(command)
            _rest(screen, 0.1)  # what is typed with the same stroke is gone with the prompt
            waits += _latencies(screen, lambda: "the very end" in screen.text, pause=0.02)
            times.append(time.perf_counter() - started)
            memory.append(_rss_mb(screen.process.pid))
            _rest(screen, 0.3)
            _clear(screen)
    seconds = statistics.median(times)
    printing = time.perf_counter()
    print_alone = [sys.executable, str(home / "print.py")]
    subprocess.run(print_alone, stdout=subprocess.DEVNULL, check=True)
    beyond = seconds - (time.perf_counter() - printing)
    middle, worst = statistics.median(waits), max(waits)
    keys = f"a key while {OUTPUT_MB} MB are printed, {1e3 * middle:.0f} ms of 20"
    return [
        (f"{keys} ({len(waits)} keys, slowest {1e3 * worst:.0f} ms)", middle / 0.02, 1),
        (f"{OUTPUT_MB} MB printed, {beyond:.2f} s of 1 beyond the printing", beyond, 1),
        (f"memory with {OUTPUT_MB} MB printed, {memory[0]:.0f} MB of 120", memory[0] / 120, 1),
    ]


def _latencies(
    screen: Terminal, over: Callable[[], bool], *, pause: float = _PAUSE_S
) -> list[float]:
    """Seconds from each key to its echo, one at a time, until `over`."""
    waits: list[float] = []
    until = time.monotonic() + 60
    while not over():
        assert time.monotonic() < until, "it never ended"
        assert screen.process.poll() is None, f"it died: …{screen.text[-2000:]}"
        key = _KEYS[len(waits) % len(_KEYS)]
        echo = key.encode()
        seen = screen.raw.count(echo)
        typed = time.perf_counter()
        screen.type(key)
        while screen.raw.count(echo) <= seen and time.perf_counter() - typed < 5:
            screen.read(0.005)
        waits.append(time.perf_counter() - typed)
        _rest(screen, pause)
        if len(waits) % len(_KEYS) == 0:
            _clear(screen)
    return waits


def _clear(screen: Terminal) -> None:
    """Empty the prompt."""
    screen.type("\x15")
    _rest(screen, _PAUSE_S)


def _rest(screen: Terminal, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        screen.read(0.01)


def _rss_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
