"""`holdfast sessions …`: show sessions in the shell, and make copies of them.

`read` has the actions that change nothing, `write` those that make a file, move one, or add a
title. The bytes of a session are never changed.
"""

from __future__ import annotations

from tui.app.options.arguments import Options
from tui.cli.sessions import read, write

_ACTIONS = {
    "list": read.list_,
    "search": read.search,
    "show": read.show,
    "check": read.check,
    "view": read.view_,
    "repair": write.repair_,
    "import": write.import_,
    "export": write.export_,
    "fork": write.fork,
    "rename": write.rename,
    "delete": write.delete,
}


def run(options: Options) -> int:
    """Carry out one action. Returns the exit code; raises HoldfastError."""
    return _ACTIONS[options.action](options)
