"""What features cost that sit beside a prompt, a key and a command, with the same off beside it.

In a git repository with 5,000 files that git does not know: checkpoints, checks of edits, and two
MCP servers, as a person has them on, against all of them off. The first prompt of such a folder is
a figure by itself.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.pace import slowness
from tests.benchmarks.streamed import essay, playing
from tests.support.clock import PATIENCE_S
from tests.support.terminal import HOLDFAST, Terminal

FILES = 5_000
STARTS = 5
PER_SECOND, SECONDS = 100, 8
_SERVERS = "".join(
    f"[mcp.{name}]\ncommand = {json.dumps([sys.executable, '-m', f'mcp_server_{name}'])}\n"
    for name in ("time", "git")
)
_SETTINGS = {True: _SERVERS, False: '[checkpoints]\nmode = "off"\n[diagnostics]\nmode = "off"\n'}
"""By whether the features are on."""
_WRITES = {"tools": [{"name": "run_command", "input": {"command": "touch made"}}]}
_KEYS = "ΩΨΦΣΠΞΛΘΔΓЖЦЧШЩЭЮЯБД"
"""Nothing else on the screen has them."""


class _Cost(NamedTuple):
    """Seconds of a start's first key, a first prompt, a command that writes, and keys meanwhile."""

    first_key: float
    prompt: float
    command: float
    keys: list[float]


def run() -> list[tuple[str, float, float]]:
    """(what, ratio measured, ratio allowed) of each measurement."""
    costs: dict[bool, list[_Cost]] = {True: [], False: []}
    for _ in range(STARTS):
        for on, taken in costs.items():
            taken.append(_cost(on=on))
    slow = slowness()

    def median(on: bool, figure: Callable[[_Cost], float]) -> float:
        return statistics.median(map(figure, costs[on]))

    def beside(
        what: str, figure: Callable[[_Cost], float], allowed: float
    ) -> tuple[str, float, float]:
        on, off = median(True, figure), median(False, figure)
        return (
            f"{what}, all features on ÷ off, {1e3 * on:.1f} ÷ {1e3 * off:.1f} ms",
            on / off,
            allowed,
        )

    prompt = median(True, lambda cost: cost.prompt)
    more = median(True, lambda cost: cost.command) - median(False, lambda cost: cost.command)
    return [
        (f"the first prompt beside {FILES:,} unknown files, {prompt:.2f} of {2 * slow:.2f} s",
         prompt / (2 * slow), 1),
        (f"checkpoints of a command beside them, {more:.2f} of {0.25 * slow:.2f} s",
         more / (0.25 * slow), 1),
        beside("the first key", lambda cost: cost.first_key, 1.2),
        beside("a key while an answer streams", lambda cost: statistics.median(cost.keys), 1.3),
        beside("95 of 100 keys meanwhile", lambda cost: _slow_key(cost.keys), 1.6),
    ]  # fmt: skip


def _slow_key(waits: list[float]) -> float:
    return statistics.quantiles(waits, n=20)[-1]


def _cost(*, on: bool) -> _Cost:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, _program(Path(folder), on) as start:
        started = time.perf_counter()
        with start() as screen:
            screen.type(
                "x"
            )  # the terminal itself echoes it, too: it counts behind the prompt's sign
            while "› x" not in screen.text:
                assert time.perf_counter() - started < PATIENCE_S, screen.text[-500:]
                screen.read(0.001)
            first_key = time.perf_counter() - started
            screen.wait_for("ask first", "sessions")
            screen.type("\x15")
            screen.listen(1.0)
            prompt = _answered(screen, "first")
            screen.listen(2.0)  # what the first prompt began is over
            _answered(screen, "second")
            command = min(_answered(screen, name) for name in ("third", "fourth"))
            screen.type("go\r")
            screen.wait_for("answering")
            keys: list[float] = []
            while len(keys) < PER_SECOND * SECONDS // 20:
                keys.append(screen.echo(_KEYS[len(keys) % len(_KEYS)]))
                screen.listen(0.1)
            return _Cost(first_key, prompt, command, keys)


@contextmanager
def _program(home: Path, on: bool) -> Generator[Callable[[], Terminal]]:
    work = home / "work"
    for number in range(FILES):
        place = work / f"p{number % 50}" / f"m{number // 50 % 20}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.py").write_text(f"# {number}\n" * 100)
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    (home / "config").mkdir()
    (home / "config" / "config.toml").write_text(_SETTINGS[on])
    turns = [
        {"text": "first answer"},
        *(
            turn
            for name in ("second", "third", "fourth")
            for turn in (_WRITES, {"text": f"{name} answer"})
        ),
        {"text": essay(4 * PER_SECOND * SECONDS), "piece": 4, "every_s": 1 / PER_SECOND},
    ]
    with playing(home, turns) as url:
        env = {k: v for k, v in os.environ.items() if not k.startswith("ANTHROPIC")}
        env |= {"HOLDFAST_HOME": str(home), "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": url}
        argv = [*HOLDFAST, "--allow", "run_command(touch*)"]
        yield lambda: Terminal(argv, cwd=work, env=env, columns=120, rows=40)


def _answered(screen: Terminal, which: str) -> float:
    """Seconds from Enter to an answer that is on the screen."""
    screen.forget()
    started = time.perf_counter()
    screen.type("go\r")
    screen.wait_for(f"{which} answer")
    seconds = time.perf_counter() - started
    screen.listen(0.5)
    return seconds
