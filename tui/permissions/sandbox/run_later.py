"""Files of a workspace that tools run later, by themselves: who changes one may run code outside.

They stay writable, since work changes them too. What commands changed is named when a turn ends.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

# fmt: off
NAMES = frozenset({
    "Makefile", "makefile", "GNUmakefile", "package.json", ".envrc", "conftest.py", ".git",
    ".pre-commit-config.yaml",
})
FOLDERS = frozenset({".husky", ".vscode"})
"""Folders of which every file counts."""
_NEVER_ENTERED = frozenset({
    ".git", "node_modules", ".venv", "venv", "target", ".tox", "__pycache__", ".holdfast",
})
# fmt: on
_MOST_FOLDERS = 20_000


def file_states(
    roots: Iterable[Path], repositories: Iterable[Path] = ()
) -> dict[Path, tuple[int, int]]:
    """When each of these files was changed, and its size. At most 20,000 folders; blocks.

    `repositories` are further folders whose `.git` counts, wherever they lie.
    """
    inner = (folder / ".git" for folder in repositories)
    found = {path: _state(path) for path in inner if os.path.lexists(path)}
    for root in roots:
        for count, (place, folders, files) in enumerate(os.walk(root)):
            every = Path(place).name in FOLDERS
            for name in (*files, *folders):
                if name in NAMES or (every and name in files):
                    path = Path(place) / name
                    found[path] = _state(path)
            folders[:] = [name for name in folders if name not in _NEVER_ENTERED]
            if count > _MOST_FOLDERS:
                break
    return found


def changed(
    before: Mapping[Path, tuple[int, int]], after: Mapping[Path, tuple[int, int]]
) -> list[Path]:
    """What is new or another, in order. What is gone runs nothing."""
    return sorted(path for path, state in after.items() if before.get(path) != state)


def _state(path: Path) -> tuple[int, int]:
    """When it was changed, by the clock that nobody can set back, and its size.

    Of the folder `.git` its settings count: the folder changes with every commit.
    """
    try:
        if path.name == ".git" and path.is_dir():
            path /= "config"
        found = path.lstat()
    except OSError:
        return (0, 0)
    return (found.st_ctime_ns, found.st_size)
