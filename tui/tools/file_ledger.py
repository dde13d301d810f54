"""A ledger of what the model has seen of files, so that it overwrites nothing unseen.

The ledger belongs to the event loop.
"""

from __future__ import annotations

import os
from pathlib import Path

from tui.core.dataclass import dataclass, replace
from tui.core.errors import ToolError

KEPT_FILE_BYTES = 512 << 10
KEPT_BYTES = 16 << 20
"""Bytes that a ledger keeps of a file that the model saw, and of all of them, to show changes."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A regular file as it was found. `data` and `sha256` are None above WHOLE_FILE_LIMIT."""

    path: Path
    stat: os.stat_result
    data: bytes | None
    sha256: str | None


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file as the model last saw it. `sha256` is None if it is not known, `data` if the bytes are
    not kept."""

    stat: os.stat_result
    sha256: str | None
    data: bytes | None = None

    def is_still(self, found: Snapshot) -> bool:
        """True if the content of the file is unchanged."""
        if self.sha256 is not None and found.sha256 is not None:
            return self.sha256 == found.sha256
        then, now = self.stat, found.stat
        return (then.st_size, then.st_mtime_ns) == (now.st_size, now.st_mtime_ns)


class FileLedger:
    """The state in which the model last saw each file, so that it overwrites nothing unseen.

    Paths are real paths. A new ledger is empty: after a resume, a file must be read again before it
    is written.
    """

    def __init__(self) -> None:
        self._seen: dict[Path, SeenFile] = {}
        self._room = KEPT_BYTES

    def note_seen(
        self, path: Path, stat: os.stat_result, digest: str | None = None, data: bytes | None = None
    ) -> None:
        """Note that the model knows the file as of `stat`; `digest` is its SHA-256 and `data` its
        bytes, if known. They are kept while there is room, those seen last the longest."""
        self.forget(path)
        if data is not None and len(data) > KEPT_FILE_BYTES:
            data = None
        self._seen[path] = SeenFile(stat, digest, data)
        self._room -= len(data or b"")
        for old, seen in self._seen.items() if self._room < 0 else ():
            if seen.data is not None:
                self._seen[old] = replace(seen, data=None)
                self._room += len(seen.data)
                if self._room >= 0:
                    break

    def seen(self, path: Path) -> SeenFile | None:
        """Return the file as the model last saw it; None if it has not."""
        return self._seen.get(path)

    def forget(self, path: Path) -> None:
        """Note that the file is gone."""
        if (seen := self._seen.pop(path, None)) is not None:
            self._room += len(seen.data or b"")

    def before(self, found: Snapshot, shown: str) -> SeenFile | None:
        """Return the file as the model last saw it if it has changed since, otherwise None. Raises
        ToolError for one that it has not seen."""
        seen = self._seen.get(found.path)
        if seen is None:
            raise ToolError(
                f"{shown} exists and hasn't been read since this session was opened.",
                hint="Read it with read_file first, so that nothing in it is lost unseen.",
            )
        return None if seen.is_still(found) else seen
