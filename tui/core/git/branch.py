"""Reads git's own small files: which branch and commit are checked out (before the first frame no
process starts), and which folder one names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from tui.core.files import read_small

_LONGEST: Final = 4096
_MOST_PACKED: Final = 4_000_000
_HEADS: Final = "ref: refs/heads/"
_LINK: Final = b"gitdir: "
_ELSEWHERE: Final = ".invalid"
"""The content of HEAD where refs are kept in another format (reftable, from git 2.45)."""


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


def commit_of(root: Path) -> str:
    """The commit that is checked out in a folder that has a `.git` itself; "" where it can't be
    told."""
    git = root / ".git"
    if git.is_file():
        git = root / _line(git).removeprefix("gitdir:").strip()
    head = _line(git / "HEAD")
    if not head.startswith("ref:"):
        return head if _is_id(head) else ""
    name = head.removeprefix("ref:").strip()
    shared = git / (_line(git / "commondir") or ".")
    loose = _line(shared / name)
    return loose if _is_id(loose) else _packed(shared / "packed-refs", name)


def folder_named(file: Path, *, link: bool = False) -> str:
    """The folder that one of git's files names, `gitdir`, `commondir` or a `.git` (`link`); "" for
    none. Raises OSError.

    As git 2.39 reads it: what comes before the first NUL, without line breaks at the end of the
    file, and with every space.
    """
    data = read_small(file, follow=False, whole=False)[0].rstrip(b"\r\n").partition(b"\0")[0]
    if link and not data.startswith(_LINK):
        return ""
    return os.fsdecode(data.removeprefix(_LINK) if link else data)


def _packed(file: Path, name: str) -> str:
    """A ref's commit as `git pack-refs` wrote it."""
    try:
        lines = read_small(file, limit=_MOST_PACKED)[0].decode(errors="replace").splitlines()
    except OSError:
        return ""
    return next((one.split()[0] for one in lines if one.split()[1:] == [name]), "")


def _is_id(text: str) -> bool:
    return len(text) in {40, 64} and all(char in "0123456789abcdef" for char in text)


def _line(file: Path) -> str:
    """The one line of a small file; "" for anything else."""
    try:
        text = read_small(file, limit=_LONGEST)[0].decode().removesuffix("\n").strip()
    except (OSError, UnicodeDecodeError):
        return ""
    return text if text.isprintable() else ""
