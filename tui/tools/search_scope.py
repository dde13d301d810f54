"""Names in one line what a search did not look at, though something may be there.

Folders that are left out by default are read from git's index: what it tracks there is as much a
part of the project as the rest. Blocks.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

from tui.core.dataclass import dataclass, field
from tui.core.files import read_small
from tui.core.formatting import plural
from tui.core.git.door import answer
from tui.core.redaction import child_environment
from tui.core.workspace import PRIVATE_DIR
from tui.tools.search import EXCLUDED, SearchRoot

_NAMED: Final = 3
_NAMES: Final = [name for name in EXCLUDED if name not in {".git", PRIVATE_DIR}]
_INSIDE: Final = re.compile(
    rf"(?:\A|\0)((?:[^\0/]*/)*?(?:{'|'.join(map(re.escape, _NAMES))})/)([^\0]*)"
)
"""A tracked path in a folder that is left out, and that folder."""
_PATIENCE_S: Final = 2.0
_INDEX_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class SearchScope:
    """The files that a search leaves out: tracked ones by folder; `ignored`: git ignores some."""

    tracked: Mapping[str, int] = field(default_factory=dict[str, int])
    ignored: bool = False

    def line(self, root: SearchRoot, *, binary: Sequence[str] = (), found: bool) -> list[str]:
        """Return the line for the model; none if there is nothing to say. `binary` are files that
        match and are not shown; what git ignores is named if nothing was found."""
        parts: list[str] = []
        if binary:
            parts.append(f"{plural(len(binary), 'binary file')} with a match ({_named(binary)})")
        if self.tracked:
            folders = [root.show(folder) for folder in self.tracked]
            count = sum(self.tracked.values())
            parts.append(f"{plural(count, 'file')} that git tracks in {_named(folders)}")
        if self.ignored and not found:
            parts.append("files that git ignores")
        return [f"[left out: {'; '.join(parts)}. Name one as path to look there]"] if parts else []


def search_scope(root: SearchRoot, matches: Callable[[str], bool] | None = None) -> SearchScope:
    """Return what a search from a root leaves out; with `matches`, only files that it accepts, by
    their path below the root, are counted."""
    top = next((up for up in (root.folder, *root.folder.parents) if (up / ".git").exists()), None)
    if top is None or root.name is not None:
        return SearchScope()
    tracked: Counter[str] = Counter()
    for folder, name in _tracked(root.folder, *_index(top)):
        if matches is None or matches(folder + name):
            tracked[folder] += 1
    return SearchScope(tracked, not root.inside_excluded and _ignores(root.folder, top))


def _index(top: Path) -> tuple[Path, tuple[int, int, int]]:
    """Return the index of a checkout, and the state by which a change of it is known."""
    index = top / ".git/index"
    with suppress(OSError, ValueError):
        if (top / ".git").is_file():  # in a worktree it names the folder
            named = read_small(top / ".git", limit=4096)[0].removeprefix(b"gitdir:").strip()
            index = top / os.fsdecode(named) / "index"
        state = index.stat()
        return index, (state.st_ino, state.st_size, state.st_mtime_ns)
    return index, (0, 0, 0)


@lru_cache(maxsize=8)
def _tracked(folder: Path, index: Path, state: tuple[int, int, int]) -> Sequence[tuple[str, str]]:
    """Return the tracked files below a folder that searches leave out: their own folder that is
    left out, and the rest of the path."""
    if not state[1] or not _may_name_one(index):
        return ()
    env = {name: value for name, value in child_environment().items() if name[:4] != "GIT_"}
    paths = answer(folder, "ls-files", "-z", env=env, patience_s=_PATIENCE_S) or ""
    return [(inside[1], inside[2]) for inside in _INSIDE.finditer(paths)]


def _may_name_one(index: Path) -> bool:
    """True unless an index plainly has no path in a folder that is left out: most have none, and
    asking git takes as long as a small search."""
    try:
        data, _ = read_small(index, limit=_INDEX_BYTES)
    except OSError:
        return True
    # Paths may be shortened (version 4), or be in a second file.
    if data[4:8] not in {b"\0\0\0\2", b"\0\0\0\3"} or b"link\0\0" in data:
        return True
    return any(f"{name}/".encode() in data for name in _NAMES)


def _ignores(folder: Path, top: Path) -> bool:
    above = [up for up in (folder, *folder.parents) if up.is_relative_to(top)]
    return any((up / ".gitignore").exists() for up in above)


def _named(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
