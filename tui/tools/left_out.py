"""Names in one line what a search did not look at, though something may be there.

Folders that are left out by default are read from git's index: what it tracks there is as much a
part of the project as the rest. Blocks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

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


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a search leaves out: tracked files by their folder; `ignored`: git ignores some."""

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


def left_out(root: SearchRoot, matches: Callable[[str], bool] | None = None) -> LeftOut:
    """Return what a search from a root leaves out; with `matches`, only files that it accepts, by
    their path below the root, are counted."""
    top = next((up for up in (root.folder, *root.folder.parents) if (up / ".git").exists()), None)
    if top is None or root.name is not None:
        return LeftOut()
    env = {name: value for name, value in child_environment().items() if name[:4] != "GIT_"}
    paths = answer(root.folder, "ls-files", "-z", env=env, patience_s=_PATIENCE_S) or ""
    tracked: Counter[str] = Counter()
    if any(f"{name}/" in paths for name in _NAMES):
        for inside in _INSIDE.finditer(paths):
            if matches is None or matches(inside[1] + inside[2]):
                tracked[inside[1]] += 1
    return LeftOut(tracked, not root.inside_excluded and _ignores(root.folder, top))


def _ignores(folder: Path, top: Path) -> bool:
    above = [up for up in (folder, *folder.parents) if up.is_relative_to(top)]
    return any((up / ".gitignore").exists() for up in above)


def _named(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
