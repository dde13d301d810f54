"""How soon a typed key is on the screen while the program has its hands full, in a pty.

Of the first prompt, while what a request needs is loaded; at rest; while an answer streams from a
loopback server, at a model's speed and at full speed; while a command prints 20 MB into the output
pane. Beside that the memory the output costs, and how long it takes beyond the printing. Each row
is a figure over its limit.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.pace import slowness
from tests.benchmarks.process_cost import rss_mb
from tests.benchmarks.streamed import essay, playing, streaming
from tests.support.terminal import HOLDFAST, Terminal

TOKENS, PIECE = 20_000, 4
SECONDS, PER_SECOND = 20, 100
KEYS_AT_REST = 100
OUTPUT_MB = 20
_KEYS = "ΩΨΦΣΠΞΛΘΔΓЖЦЧШЩЭЮЯБД"
"""Nothing else on the screen has them."""
_PAUSE_S = 0.1
_STARTS, _FIRST_KEYS = 10, 8
_BURSTS = 8
"""Each is over within half a second."""
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
        return [
            *_first_prompt(home),
            *_at_rest_and_at_speed(home),
            *_in_full_flood(home),
            *_in_bursts(home),
            *_while_it_prints(home),
        ]


def _env(home: Path, **more: str) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("ANTHROPIC")}
    return env | {"HOLDFAST_HOME": str(home)} | more


def _first_prompt(home: Path) -> list[tuple[str, float, float]]:
    """While the SDK is loaded: of several starts, since each loads once."""
    env = _env(home, ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL="http://127.0.0.1:9")
    waits: list[float] = []
    for _ in range(_STARTS):
        with Terminal(HOLDFAST, cwd=home / "work", env=env, columns=120, rows=40) as screen:
            screen.wait_for("Ask for anything")
            _rest(screen, 2.0)
            waits += _latencies(screen, lambda n: n == _FIRST_KEYS)
    return _rows("a key of the first prompt", waits, middle_ms=6, most_ms=20)


def _at_rest_and_at_speed(home: Path) -> list[tuple[str, float, float]]:
    """While nothing happens, then while an answer comes as fast as models write."""
    with (
        streaming(home, tokens=SECONDS * PER_SECOND, piece=PIECE, every_s=1 / PER_SECOND) as url,
        _answered_once(home, url) as screen,
    ):
        _rest(screen, 3.0)
        rest = _latencies(screen, lambda n: n == KEYS_AT_REST)
        _send(screen)
        stream = _latencies(screen, lambda _: "2 prompts" in screen.text)
    return [
        *_rows("a key at rest", rest, middle_ms=3, most_ms=6),
        *_rows(f"a key while {PER_SECOND} tokens/s stream", stream, middle_ms=4, most_ms=12),
    ]


def _in_full_flood(home: Path) -> list[tuple[str, float, float]]:
    """While an answer comes faster than any model writes."""
    with (
        streaming(home, tokens=TOKENS, piece=PIECE, every_s=0.0005) as url,
        _answered_once(home, url) as screen,
    ):
        _send(screen)
        waits = _latencies(screen, lambda _: "2 prompts" in screen.text)
    return _rows(f"a key while {TOKENS:,} tokens stream at once", waits, middle_ms=8, most_ms=40)


def _in_bursts(home: Path) -> list[tuple[str, float, float]]:
    """While answers come as fast as they can be read, each event in an HTTP chunk of its own."""
    burst = {"text": essay(TOKENS * PIECE), "piece": PIECE, "burst": "chunks"}
    waits = list[float]()
    with (
        playing(home, [{"text": "ready"}, *[burst] * _BURSTS]) as url,
        _answered_once(home, url) as screen,
    ):
        for over in range(2, 2 + _BURSTS):
            _send(screen)
            waits += _latencies(screen, lambda _: f"{over} prompts" in screen.text, pause=0.02)  # noqa: B023 - called in this round
    return _rows(f"a key while a burst of {TOKENS:,} tokens comes", waits, middle_ms=8, most_ms=12)


@contextmanager
def _answered_once(home: Path, url: str) -> Generator[Terminal]:
    env = _env(home, ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL=url)
    with Terminal(HOLDFAST, cwd=home / "work", env=env, columns=120, rows=40) as screen:
        screen.wait_for("Ask for anything")
        screen.type("hello\r")
        screen.wait_for("1 prompt", "saved")
        yield screen


def _send(screen: Terminal) -> None:
    _clear(screen)
    screen.forget()
    screen.type("go\r")
    screen.wait_for("answering")


def _rows(
    what: str, waits: list[float], *, middle_ms: float, most_ms: float
) -> list[tuple[str, float, float]]:
    """The median, and what 95 of 100 keys take at most; the limits are those of a quiet machine."""
    slow = slowness()
    middle_ms, most_ms = middle_ms * slow, most_ms * slow
    middle, most = 1e3 * statistics.median(waits), 1e3 * statistics.quantiles(waits, n=20)[-1]
    seen = f"{len(waits)} keys, slowest {1e3 * max(waits):.0f} ms"
    return [
        (f"{what}, median {middle:.1f} of {middle_ms:.2g} ms ({seen})", middle / middle_ms, 1),
        (f"{what}, 95 of 100 within {most:.1f} of {most_ms:.2g} ms", most / most_ms, 1),
    ]


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
            waits += _latencies(screen, lambda _: "the very end" in screen.text, pause=0.02)
            times.append(time.perf_counter() - started)
            memory.append(rss_mb(screen.process.pid))
            _rest(screen, 0.3)
            _clear(screen)
    seconds = statistics.median(times)
    printing = time.perf_counter()
    print_alone = [sys.executable, str(home / "print.py")]
    subprocess.run(print_alone, stdout=subprocess.DEVNULL, check=True)
    beyond = seconds - (time.perf_counter() - printing)
    return [
        *_rows(f"a key while {OUTPUT_MB} MB are printed", waits, middle_ms=20, most_ms=40),
        (f"{OUTPUT_MB} MB printed, {beyond:.2f} s of 1 beyond the printing", beyond, 1),
        (f"memory with {OUTPUT_MB} MB printed, {memory[0]:.0f} MB of 110", memory[0] / 110, 1),
    ]


def _latencies(
    screen: Terminal, over: Callable[[int], bool], *, pause: float = _PAUSE_S
) -> list[float]:
    """Seconds from each key to its echo, one at a time, until `over` says so of their number."""
    waits: list[float] = []
    until = time.monotonic() + 60
    while not over(len(waits)):
        assert time.monotonic() < until, "it never ended"
        assert screen.process.poll() is None, f"it died: …{screen.text[-2000:]}"
        waits.append(screen.echo(_KEYS[len(waits) % len(_KEYS)]))
        _rest(screen, pause)
        if len(waits) % len(_KEYS) == 0:
            _clear(screen)
    return waits


def _clear(screen: Terminal) -> None:
    """Empty the prompt, and let that be seen: a key typed at once would change nothing there."""
    screen.type("\x15")
    _rest(screen, 3 * _PAUSE_S)


def _rest(screen: Terminal, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        screen.read(0.01)
