"""Leaving the terminal to another run of this program, and coming back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from textual.app import App, SuspendNotSupported


def step_aside(app: App[Any], *words: str) -> str:
    """Leave the terminal to `holdfast` with these words until it ends. Blocks.

    It is a process of its own: nothing of this one can get into it. Returns what is in the way,
    "" where nothing was.
    """
    try:
        with app.suspend():
            subprocess.run(argv(words, app.theme), check=False)
    except SuspendNotSupported:
        return f"This terminal cannot be shared. Run `holdfast {words[0]}` in another."
    return ""


def argv(words: Sequence[str], theme: str) -> list[str]:
    """A command line of this program. What lies in the current folder is never imported."""
    return [sys.executable, "-P", "-m", "tui", *words, "--theme", theme]
