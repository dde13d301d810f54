"""Shared with the sandbox by those who make and remove git worktrees, without loading them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tui.core.shared_lock import SharedLock

IN_PLACE: Final = SharedLock()
"""Had alone while a worktree is removed, shared while a command starts in the sandbox: its walls
stand around what git keeps of every worktree, and can't be built where that goes meanwhile."""
MADE: Final[set[Path]] = set()
"""The worktrees that this process has made: nobody else put them there."""
