"""Errors that say that a disk is full: this program's, git's, or those of git elsewhere. Pure."""

from __future__ import annotations

import errno
import os
from typing import Final

_FULL: Final = (*map(os.strerror, (errno.ENOSPC, errno.EDQUOT)), "Out of diskspace")
"""The system's words, which git has, too, and git's own for a pack."""


def is_full(message: str) -> bool:
    """True if an error is that of a machine without room, and not of what was to be written."""
    return any(one in message for one in _FULL)
