"""Spawn → first frame, first key and real screen, in a pty, beside bare Python and bare Textual."""

from __future__ import annotations

import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.support.terminal import Terminal

RUNS = 9

_BARE_PYTHON = [sys.executable, "-c", "print('READY')"]
_BARE_TEXTUAL = """
from textual.app import App
from textual.widgets import Input
class Bare(App):
    def compose(self):
        yield Input(placeholder="READY")
    def on_mount(self):
        self.query_one(Input).focus()
Bare().run()
"""


# The line over the real prompt, the key in it, and the line below: the early frame has neither.
_REAL = re.compile("ask first.*› x.*sessions")


def _seconds(
    argv: list[str], env: dict[str, str], work: Path, seen: Callable[[str], bool], typed: str = ""
) -> float:
    """Seconds from spawn until `seen` holds for what is on the screen."""
    started = time.perf_counter()
    with Terminal(argv, cwd=work, env=env, columns=120, rows=40) as screen:
        if typed:
            screen.type(typed)
        while not seen(screen.text):
            if time.perf_counter() - started > 30:
                raise RuntimeError(f"never ready: {argv} {screen.text[-500:]}")
            screen.read(0.001)
        return time.perf_counter() - started


def run() -> list[tuple[str, float, float]]:
    """Medians of runs taken in turn, each over the median of its reference."""
    with tempfile.TemporaryDirectory() as home:
        work = Path(home) / "work"
        work.mkdir()
        env = {k: v for k, v in os.environ.items() if not k.startswith("ANTHROPIC")}
        env["HOLDFAST_HOME"] = home
        env["ANTHROPIC_API_KEY"] = "no request is sent"
        # As installed: compiled once, whatever the environment of the benchmark says.
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        env["PYTHONPYCACHEPREFIX"] = str(Path(home) / "compiled")
        ours = [sys.executable, "-m", "tui"]
        bare = [sys.executable, "-c", _BARE_TEXTUAL]
        measures: dict[str, Callable[[], float]] = {
            "python": lambda: _seconds(_BARE_PYTHON, env, work, lambda t: "READY" in t),
            "textual": lambda: _seconds(bare, env, work, lambda t: "│" in t or "▊ x" in t, "x"),
            "painted": lambda: _seconds(ours, env, work, lambda t: "›" in t),
            "echoed": lambda: _seconds(ours, env, work, lambda t: "› x" in t, "x"),
            "real": lambda: _seconds(ours, env, work, lambda t: bool(_REAL.search(t)), "x"),
        }
        taken: dict[str, list[float]] = {name: [] for name in measures}
        for round_ in range(RUNS + 1):
            for name, measure in measures.items():
                seconds = measure()
                if round_:  # the first warms the disk cache
                    taken[name].append(seconds)
    median = {name: statistics.median(values) for name, values in taken.items()}

    def row(what: str, one: str, other: str, allowed: float) -> tuple[str, float, float]:
        figures = f"{1e3 * median[one]:.0f} ms ÷ {1e3 * median[other]:.0f} ms"
        return f"spawn → {what}, {figures}", median[one] / median[other], allowed

    return [
        row("painted prompt ÷ bare Python", "painted", "python", 5),
        row("typed key echoed ÷ bare Python", "echoed", "python", 6),
        row("key in the real prompt ÷ bare Textual Input", "real", "textual", 1.35),
    ]
