"""Files of a workspace that tools run later by themselves: whoever changes one may run code
outside.

They stay writable, since ordinary work changes them, too. The ones that commands changed are
reported when a turn ends. In folders that tools fill, only git's own are searched for, and reported
as a number.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from tui.core.files import read_small
from tui.core.git.branch import folder_named
from tui.core.late_pattern import late_pattern
from tui.core.paths import shorten
from tui.core.workspace import PRIVATE_DIR, WORKTREES
from tui.permissions.sandbox.folder_lists import FolderLists

# fmt: off
NAMES = frozenset({
    "Makefile", "makefile", "GNUmakefile", "package.json", ".envrc", "conftest.py", ".git",
    ".pre-commit-config.yaml",
})
FOLDERS = frozenset({".husky", ".vscode"})
"""Folders in which every file counts."""
FILLED = frozenset({"node_modules", ".venv", "venv", "target", ".tox"})
"""Folders that tools fill: only a `.git` in them counts."""
_NEVER_ENTERED = frozenset({".git", "__pycache__", PRIVATE_DIR})
# fmt: on
_EXECUTES = late_pattern(rb"^[ \t]*(?:x|exec)[ \t]", re.MULTILINE)
_MOST_FOLDERS = 20_000
_MOST_FILLED = 20_000
_SLACK_NS = 20_000_000
"""The clock of the file system may lag this far behind."""


def folder_lists() -> FolderLists:
    return FolderLists(lambda folder, name: name in NAMES or folder in FOLDERS or name == "HEAD")


def file_states(
    roots: Iterable[Path], repositories: Iterable[Path] = (), lists: FolderLists | None = None
) -> dict[Path, tuple[int, int]]:
    """The time of change and the size of each of these files. At most 20,000 folders; blocks.

    `repositories` are further folders whose `.git` counts, wherever they are. `lists` caches the
    contents of folders.
    """
    lists = lists or folder_lists()
    lists.begin()
    inner = (folder / ".git" for folder in repositories)
    states = {path: _state(path) for path in inner if os.path.lexists(path)}
    for root in roots:
        for place in islice(_folders(root, lists), _MOST_FOLDERS):
            listing, every = lists.of(place), place.rpartition("/")[2] in FOLDERS
            for name in (*listing.files, *listing.folders, *listing.links):
                if name in NAMES or (every and name not in listing.folders):
                    path = Path(place, name)
                    states[path] = _state(path)
        for name in lists.of(str(root.joinpath(*WORKTREES))).folders:
            tree = root.joinpath(*WORKTREES, name, ".git")
            if os.path.lexists(tree):
                states[tree] = _state(tree)
    steps = [_steps_of(path) for path in states if path.name == ".git"]
    return states | {path: _state(path) for path in steps if path is not None}


def _steps_of(link: Path) -> Path | None:
    """The steps of a rebase in progress, if `git rebase --continue` would run commands in them."""
    git_dir = link
    with suppress(OSError):
        if not link.is_dir():
            git_dir = link.parent / folder_named(link, link=True)
        todo = git_dir / "rebase-merge" / "git-rebase-todo"
        if _EXECUTES.search(read_small(todo, whole=False)[0]):
            return todo
    return None


def changed_in_filled(
    roots: Iterable[Path], since_ns: int, lists: FolderLists | None = None
) -> list[Path]:
    """The `.git` in folders that tools fill that changed since a time. At most 20,000 of their
    folders are examined; blocks."""
    lists = lists or folder_lists()
    tops = (
        f"{place}/{name}"
        for root in roots
        for place in islice(_folders(root, lists), _MOST_FOLDERS)
        for name in lists.of(place).folders
        if name in FILLED
    )
    every = (place for top in tops for place in _folders(top, lists, frozenset({".git"})))
    changed_links: list[Path] = []
    for place in islice(every, _MOST_FILLED):
        listing = lists.of(place)
        if ".git" in (*listing.files, *listing.folders, *listing.links):
            path = Path(place, ".git")
            if _state(path)[0] >= since_ns - _SLACK_NS:
                changed_links.append(path)
    return sorted(changed_links)


def changed(
    before: Mapping[Path, tuple[int, int]], after: Mapping[Path, tuple[int, int]]
) -> list[Path]:
    """The new and the changed files, in order. A deleted file runs nothing."""
    return sorted(path for path, state in after.items() if before.get(path) != state)


def in_words(paths: Sequence[Path], root: Path, most: int) -> str:
    """List the names for the end of a turn, at most so many; those in folders that tools fill as a
    number for each folder."""
    shown: list[str] = []
    filled: Counter[str] = Counter()
    for path in paths:
        inside = path.is_relative_to(root)
        parts = path.relative_to(root).parts if inside else path.parts
        name = str(Path(*parts)) if inside else shorten(path)
        at = next((n for n, part in enumerate(parts) if part in FILLED), None)
        if at is None or path.name != ".git":
            shown.append(name)
        else:
            filled[str(Path(*parts[: at + 1]))] += 1
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    words = [f"{', '.join(shown[:most])}{more}"] if shown else []
    words += [f"{count} .git in {name}" for name, count in islice(sorted(filled.items()), most)]
    return ", ".join(words)


def _folders(
    top: Path | str, lists: FolderLists, never: frozenset[str] = _NEVER_ENTERED | FILLED
) -> Iterator[str]:
    """Yield a folder and all below it except those that are never entered, in a stable order."""
    waiting = [str(top)]
    while waiting:
        place = waiting.pop()
        yield place
        waiting += [f"{place}/{name}" for name in lists.of(place).folders if name not in never]


def _state(path: Path) -> tuple[int, int]:
    """The time of change, by the clock that nobody can set back, and the size.

    For a folder `.git` its settings count: the folder changes with every commit.
    """
    try:
        if path.name == ".git" and path.is_dir() and not path.is_symlink():
            path /= "config"
        status = path.lstat()
    except OSError:
        return (0, 0)
    return (status.st_ctime_ns, status.st_size)
