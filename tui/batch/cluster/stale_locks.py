"""Locks of refs that a git left in a store when it was killed: nobody else removes them. Blocks."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from tui.core.errors import os_error_as
from tui.core.files import locked
from tui.core.git.door import GitError

_STALE_S: Final = 90.0
"""Age of a lock that no git holds any more: a ref is locked for milliseconds."""
_REFS: Final = Path("refs", "holdfast")


def remove_stale(store: Path, lock: Path) -> bool:
    """Remove the lock of one of our refs in a store on this machine, if it's old. Raises GitError.

    Its age is told by the file system alone, whose clock may be another machine's.
    """
    if not lock.is_relative_to(store / _REFS) or lock.suffix != ".lock" or ".." in lock.parts:
        return False
    with (
        os_error_as(GitError, f"Can't remove {lock}"),
        locked(store),  # of two who remove it, the second would hit the next git's
        TemporaryFile(dir=lock.parent) as now,
    ):
        try:
            age_s = os.fstat(now.fileno()).st_mtime - lock.lstat().st_mtime
        except FileNotFoundError:
            return True
        if age_s < _STALE_S:
            return False
        lock.unlink(missing_ok=True)
    return True
