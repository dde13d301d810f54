"""How long the loop of the whole program, in a pty, is without an ear for keys: for each screen
that is opened for the first time, and for keys in it.

The milliseconds are of processor, of the longest callback (`tests.benchmarks.loop`). To open a
screen, Textual lays out and paints all of it at once; that takes most of what is allowed here.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

from tests.benchmarks.bench_usage import fill
from tests.benchmarks.loop import stretches
from tests.benchmarks.pace import slowness
from tests.support.desk_world import home_in
from tests.support.terminal import Terminal

OPENED_MS, KEY_MS = 40.0, 20.0
"""A key that moves all that is below it, as one that shows a filter, draws a frame: 10 to 18 ms."""
SESSIONS, SIZE = 1_000, 20_000
REST_S, KEY_S = 2.0, 0.15


class Scene(NamedTuple):
    """A screen: what opens it, what it shows then, and keys in it."""

    name: str
    opens: str
    words: str
    keys: tuple[str, ...]


_DOWN: Final = ("\x1b[B",) * 5
SCENES: Final = (
    Scene("the help", "\x1bOP", "Filter keys", ("s", "e", "s", "s", "i", "o", "n")),
    Scene(f"{SESSIONS:,} sessions", "\x1bOR", "now open here", (*_DOWN, "f", "i", "x")),
    Scene("the context", "\x1bOQ", "largest first", _DOWN),
    Scene("tasks", "/tasks\r", "No task file", ()),
    Scene("the desk", "\x1b[18~", "sessions", ("/", "Ω")),
    Scene("/usage", "/usage\r", "prompt", _DOWN),
    Scene("/timeline", "/timeline\r", "timeline", _DOWN),
    Scene("/jobs", "/jobs\r", "No background", ()),
)


def run() -> list[tuple[str, float, float]]:
    """(what, ratio measured, ratio allowed) of each screen."""
    rows: list[tuple[str, float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "work").mkdir()
        (log := place / "stretches").touch()
        fill(home_in(place), SESSIONS, SIZE)
        env = {k: v for k, v in os.environ.items() if not k.startswith("ANTHROPIC")}
        env |= {"HOLDFAST_HOME": folder, "PYTHONPATH": str(Path(__file__).parents[2])}
        argv = (sys.executable, "-m", "tests.benchmarks.loop", str(log), "--practice")
        slow = slowness()
        with Terminal(argv, cwd=place / "work", env=env, columns=160, rows=48) as screen:
            screen.wait_for("Ask for anything")
            screen.type("hello\r")
            screen.wait_for("1 prompt")
            screen.listen(REST_S)
            for scene in SCENES:
                screen.forget()
                began = time.monotonic()
                screen.type(scene.opens)
                screen.wait_for(scene.words)
                screen.listen(REST_S)
                opened, pressed = _longest(log, began), time.monotonic()
                for key in scene.keys:
                    screen.type(key)
                    screen.listen(KEY_S)
                screen.listen(REST_S if scene.keys else 0)
                heard = _longest(log, pressed)
                rows += [
                    (f"{scene.name}, opened: each {opened:.1f} ms", opened / OPENED_MS / slow, 1),
                    (f"{scene.name}, keys: each {heard:.1f} ms", heard / KEY_MS / slow, 1),
                ]
                for _ in range(3):
                    screen.type("\x1b")
                    screen.listen(0.5)
    return rows


def _longest(log: Path, since: float) -> float:
    return max((one.ms for one in stretches(log, since)), default=0.0)
