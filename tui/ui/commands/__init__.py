"""Commands that only the full screen has: views on screens of their own, panes, the editor.

All others have one handler for every front end, in `tui.app`.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tui.ui.frontend import ScreenFrontend

VIEWS: Final[Mapping[str, str]] = {
    "help": "views.help_",
    "copy": "views.copy",
    "context": "views.context",
    "pin": "views.pin",
    "find": "views.find",
    "output": "views.output",
    "diff": "views.diff",
    "tasks": "views.tasks",
    "todos": "views.todos",
    "permissions": "views.permissions",
    "mcp": "views.mcp",
    "status": "views.status",
    "usage": "views.usage",
    "theme": "settings.theme",
    "config": "settings.config",
    "doctor": "programs.doctor",
    "tour": "programs.tour",
    "drill": "programs.drill",
    "quit": "views.quit_",
}
"""By the command's name: `module.function` in this package."""


def view(frontend: ScreenFrontend, name: str, argument: str) -> Coroutine[Any, Any, None] | None:
    """What carries a command out on the full screen only; None where it has a shared handler."""
    if name not in VIEWS:
        return None
    module, _, function = VIEWS[name].partition(".")
    return getattr(import_module(f"{__name__}.{module}"), function)(frontend, argument)
