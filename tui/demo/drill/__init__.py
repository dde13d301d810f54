"""`holdfast drill`: every fault that a server can show, played offline on the real screen.

The tour of them is a row of faults. Each is announced in a line that says what will go wrong and
what is done about it, a prompt is laid ready, and the first request of the next turn meets the
fault. All of it happens in a folder of its own that is removed at the end: settings, sessions and
files of the person are neither used nor touched, and the model is the practice model.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from tui.demo.drill import scratch

if TYPE_CHECKING:
    from tui.app.options.arguments import Options

__all__ = ["place", "run"]

_SETTINGS = """\
fallback_models = ["practice-2"]
"""
_FILES = {
    "README.md": """\
# Drill

A scratch folder. Everything here is removed when the drill is over.
""",
    "notes.md": """\
# Notes

- the drill plays the faults of a server
- nothing that happens here touches your files
""",
}


def run(options: Options) -> int:
    """Open the screen with the row of faults. Returns the exit code; raises UsageError."""
    scratch.need_terminal(
        "The drill",
        hint="Without one, a practice script plays faults: holdfast -p --practice-script FILE",
    )
    from tui.demo.drill.screen import DrillApp  # noqa: PLC0415 - the screen is heavy

    theme = scratch.theme_of(options)
    with place() as root:
        return scratch.show(DrillApp.at(root, options.faults, theme=theme))


def place() -> AbstractContextManager[Path]:
    """The folder of a drill, see `tui.demo.drill.scratch.place`."""
    return scratch.place("drill", _FILES, settings=_SETTINGS)
