"""What may change between two tool calls."""

from __future__ import annotations

from dataclasses import dataclass

from tui.permissions.base import Mode
from tui.workspace import Workspace


@dataclass(slots=True)
class Settings:
    """What may change between two calls: read before every execution (K45)."""

    workspace: Workspace
    mode: Mode = "ask"
    elevated: bool = False
    verbose: bool = False
