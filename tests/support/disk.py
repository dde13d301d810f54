"""A disk that nobody waits for: a sync counts for a machine that loses its power, and none does.

What a test puts in the place of `os.fsync` or `os.fdatasync` is what the program calls, as before.
"""

from __future__ import annotations

import os
from typing import Protocol


class Open(Protocol):
    """An open file."""

    def fileno(self) -> int: ...


def sync_at_once() -> None:
    """Let this process, and its forks, take for synced what is written to an open file."""
    os.fsync = _checked
    if hasattr(os, "fdatasync"):
        os.fdatasync = _checked


def _checked(fd: int | Open) -> None:
    os.fstat(fd if isinstance(fd, int) else fd.fileno())
