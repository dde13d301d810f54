"""The present states of files, at the cost of a `stat` where nothing happened. Blocks.

A file whose size, times and inode are as before is as before; else its content is hashed. Nothing
is opened but a regular file at the very path: no link is followed, no pipe waited for.
"""

from __future__ import annotations

import os
import stat as stats
import time
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import TypeAlias

from tui.context.seen_files import GONE, LINK, OTHER, UNREADABLE, Excerpt, FileState
from tui.core.errors import ToolError
from tui.session.checkpoints.entries import RACY_NS
from tui.tools.file_access import WHOLE_FILE_LIMIT, open_regular

_CHUNK = 1 << 20
_Stamp: TypeAlias = tuple[int, int, int, int, int]
"""Device, inode, size, and the times of content and inode."""


class FileStates:
    """Remembers the hashes of files, by what `stat` says of them."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[_Stamp, str]] = {}

    def of(self, excerpts: Iterable[Excerpt], stop: Event) -> dict[str, FileState]:
        """Return the present states of the files of excerpts, by path, each in the form of its
        excerpt. Forgets all others. Leaves out those that were not looked at when `stop` was
        set."""
        states: dict[str, FileState] = {}
        for one in excerpts:
            if stop.is_set():
                return states
            states[one.path] = self._state(one, stop)
        self._known = {path: known for path, known in self._known.items() if path in states}
        return states

    def _state(self, excerpt: Excerpt, stop: Event) -> FileState:
        path = excerpt.path
        try:
            if excerpt.link and os.path.realpath(excerpt.link) != path:
                return LINK if os.path.lexists(excerpt.link) else GONE
            now = os.lstat(path)
            if stats.S_ISLNK(now.st_mode):
                return LINK
            if not stats.S_ISREG(now.st_mode):
                return OTHER
            if not excerpt.hashed or now.st_size > WHOLE_FILE_LIMIT:
                return f"{now.st_size} {now.st_mtime_ns}"
            return self._hash(path, now, stop)
        except (FileNotFoundError, NotADirectoryError):
            return GONE
        except (OSError, ToolError, ValueError):
            return UNREADABLE

    def _hash(self, path: str, now: os.stat_result, stop: Event) -> str:
        stamp, known = _stamp(now), self._known.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        began = time.time_ns()
        with open_regular(Path(path), path) as file:
            stamp = _stamp(os.fstat(file.fileno()))
            digest = sha256()
            while not stop.is_set() and (chunk := file.read(_CHUNK)):
                digest.update(chunk)
            same = _stamp(os.fstat(file.fileno())) == stamp
        if same and max(stamp[3:]) < began - RACY_NS and not stop.is_set():
            self._known[path] = stamp, digest.hexdigest()
        else:  # it may change once more and keep its times
            self._known.pop(path, None)
        return digest.hexdigest()


def _stamp(stat: os.stat_result) -> _Stamp:
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns
