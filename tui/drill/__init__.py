"""`holdfast drill`: every fault that a server can show, played offline on the real screen.

The tour is a row of faults. Each is announced in a line that says what will go wrong and what is
done about it, a prompt is laid ready, and the first request of the next turn meets the fault. All
of it happens in a folder of its own that is removed at the end: settings, sessions and files of
the person are neither used nor touched, and the model is the practice model.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tui import look
from tui.errors import UsageError
from tui.paths import folders
from tui.themes import DEFAULT_DARK

if TYPE_CHECKING:
    from tui.arguments import Options

__all__ = ["place", "run"]

_SETTINGS = """\
fallback_models = ["practice-2"]
"""
_README = """\
# Drill

A scratch folder. Everything here is removed when the drill is over.
"""
_NOTES = """\
# Notes

- the drill plays the faults of a server
- nothing that happens here touches your files
"""


def run(options: Options) -> int:
    """Open the screen with the tour. Returns the exit code; raises UsageError."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "The drill needs a terminal.",
            hint="Without one, a practice script plays faults: holdfast -p --practice-script FILE",
        )
    from tui.drill.screen import DrillApp  # noqa: PLC0415 - the screen is heavy

    theme = options.theme or look.remembered().get("theme", DEFAULT_DARK)
    with place() as root:
        app = DrillApp.at(root, options.faults, theme=theme)
        app.run()
        if app.failure:
            raise app.failure
        return app.return_code or 0


@contextmanager
def place() -> Generator[Path]:
    """A folder with all that a session needs: a home for the program, and a project.

    While it stands, it is HOLDFAST_HOME; the person's own themes are there too.
    """
    themes = folders().config / "themes"
    before = os.environ.get("HOLDFAST_HOME")
    with TemporaryDirectory(prefix="holdfast-drill-", ignore_cleanup_errors=True) as made:
        root = Path(os.path.realpath(made))
        project, config = root / "project", root / "home" / "config"
        project.mkdir()
        config.mkdir(parents=True)
        (config / "config.toml").write_text(_SETTINGS, encoding="utf-8")
        (project / "README.md").write_text(_README, encoding="utf-8")
        (project / "notes.md").write_text(_NOTES, encoding="utf-8")
        if themes.is_dir():
            shutil.copytree(themes, config / "themes", ignore_dangling_symlinks=True)
        os.environ["HOLDFAST_HOME"] = str(root / "home")
        try:
            yield root
        finally:
            if before is None:
                del os.environ["HOLDFAST_HOME"]
            else:
                os.environ["HOLDFAST_HOME"] = before
