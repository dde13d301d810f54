"""Copies of files from before edits whose session is gone: what is left of it. Blocks.

A file tool keeps what it is about to replace next to the session's long results. Without the
session nobody knows which file that was, nor who asked for the edit, but the copy's text and time
tell that a session, and not the person, may have made the state after it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from tui.context.blame.trace import lines_of
from tui.core.files import read_small
from tui.core.workspace import PRIVATE_DIR, TOOL_RESULTS

_BYTES_MAX: Final = 20_000_000
_LATE_S: Final = 5.0
"""A copy is made within this time around the edit."""
_READ_MAX: Final = 50
"""Copies that are compared for one state."""
_SIMILAR: Final = 0.5
"""The share of lines that a copy has in common with the file that it may be of."""


class OrphanedCopy(NamedTuple):
    """A copy, and when it was made, in seconds since the epoch."""

    time: float
    path: Path


def orphaned_copies(folders: Iterable[Path], known: Collection[str]) -> list[OrphanedCopy]:
    """The copies in these folders and those above them that no session is `known` to have made, by
    their times."""
    places = {place for folder in folders for place in (folder, *folder.parents)}
    return sorted(
        copy
        for place in places
        for copy in _in(place / PRIVATE_DIR / TOOL_RESULTS)
        if str(copy.path) not in known
    )


def _in(folder: Path) -> Iterator[OrphanedCopy]:
    with suppress(OSError):
        for path in folder.iterdir():
            if path.suffix == ".before":
                with suppress(OSError):
                    yield OrphanedCopy(path.stat().st_mtime, path)


def edited_meanwhile(
    copies: Sequence[OrphanedCopy], since: float, until: float, versions: Sequence[Sequence[str]]
) -> bool:
    """True if one of the copies was made between two moments of a file that had these versions."""
    first = bisect_left(copies, since - _LATE_S, key=lambda one: one.time)
    last = bisect_right(copies, until + _LATE_S, key=lambda one: one.time)
    known = [Counter(lines) for lines in versions if lines]
    for copy in copies[first:last][-_READ_MAX:]:
        with suppress(OSError):
            lines = Counter(lines_of(read_small(copy.path, limit=_BYTES_MAX, follow=False)[0]))
            if any((lines & one).total() > _SIMILAR * lines.total() for one in known):
                return True
    return False
