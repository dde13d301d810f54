"""What may change between two tool calls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tui.core.workspace import Workspace
from tui.permissions.types import Mode


@dataclass(slots=True)
class Settings:
    """What may change between two calls: read before every execution (K45)."""

    workspace: Workspace
    mode: Mode = "ask"
    elevated: bool = False
    verbose: bool = False

    @property
    def folders(self) -> tuple[Path, ...]:
        """Where the file tools work: the workspace first."""
        return (self.workspace.root, *self.workspace.extra)

    def add_dir(self, folder: Path) -> bool:
        """Let them work in a real folder too. False if they may already, elevated or not."""
        if replace(self.workspace, widened=False).contains(folder):
            return False
        self.workspace = replace(self.workspace, extra=(*self.workspace.extra, folder))
        return True
