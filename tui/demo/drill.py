"""`holdfast drill`: every fault that a server can show, played offline on the real screen.

The faults come one after the other. Each is announced in a line that says what will go wrong and
what the program does about it, a prompt is put into the input line, and the first request of the
next turn meets the fault. All of it happens in a folder of its own that is removed at the end:
settings, sessions and files of the person are neither used nor touched, and the model is the
practice model.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from tui.demo import guide
from tui.demo.drill_steps import Drill

if TYPE_CHECKING:
    from tui.app.options.arguments import Options


_SETTINGS = """\
fallback_models = ["practice-2"]
"""
_FILES = {
    "README.md": """\
# Drill

A throwaway folder. Everything here is removed when the drill ends.
""",
    "notes.md": """\
# Notes

- the drill simulates server failures
- nothing here touches your files
""",
}


def run(options: Options) -> int:
    """Open the screen with the series of faults, and return the exit code; raises UsageError."""
    guide.need_terminal(
        "The drill",
        hint=(
            "Without one, a practice script can simulate failures: holdfast -p "
            "--practice-script FILE"
        ),
    )
    from tui.app.options.flags import FAULTS  # noqa: PLC0415 - only a drill needs them
    from tui.demo.drill_screen import DrillApp, DrillProgram  # noqa: PLC0415 - the screen is heavy

    theme = guide.theme_of(options)
    with place() as root:
        return guide.show(DrillApp(DrillProgram(root, Drill(options.help.faults or FAULTS), theme)))


def place() -> AbstractContextManager[Path]:
    """Return the folder of a drill: see `tui.demo.guide.place`."""
    return guide.place("drill", _FILES, settings=_SETTINGS)
