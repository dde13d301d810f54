"""Reads from `.git` which branch is checked out: before the first frame no process starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from tui.core.files import read_small

_LONGEST: Final = 4096
_HEADS: Final = "ref: refs/heads/"
_ELSEWHERE: Final = ".invalid"
"""What HEAD holds where refs are kept in another format (reftable, from git 2.45)."""


def branch_of(root: Path) -> str:
    """The git branch of a folder, a short commit id when detached, "" where there is none, or it
    can't be told."""
    for folder in (root, *root.parents):
        git = folder / ".git"
        if not os.path.lexists(git):
            continue
        if git.is_file():
            git = folder / _line(git).removeprefix("gitdir:").strip()
        head = _line(git / "HEAD")
        branch = head.removeprefix(_HEADS) if head.startswith("ref:") else head[:8]
        return "" if branch == _ELSEWHERE else branch
    return ""


def _line(file: Path) -> str:
    """The one line of a small file; "" for anything else."""
    try:
        text = read_small(file, limit=_LONGEST)[0].decode().removesuffix("\n").strip()
    except (OSError, UnicodeDecodeError):
        return ""
    return text if text.isprintable() else ""
