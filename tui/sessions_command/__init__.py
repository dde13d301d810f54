"""`holdfast sessions …`: look at sessions from the shell, and make copies of them.

`reading` has the actions that change nothing, `writing` those that make a file, move one, or add
a title. The bytes of a session are never changed.
"""

from __future__ import annotations

from tui.app.options.arguments import Options
from tui.sessions_command import reading, writing

_ACTIONS = {
    "list": reading.list_,
    "search": reading.search,
    "show": reading.show,
    "check": reading.check,
    "view": reading.view_,
    "repair": writing.repair_,
    "import": writing.import_,
    "export": writing.export_,
    "fork": writing.fork,
    "rename": writing.rename,
    "delete": writing.delete,
}


def run(options: Options) -> int:
    """Carry out one action. Returns the exit code; raises HoldfastError."""
    return _ACTIONS[options.action](options)
