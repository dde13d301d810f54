"""Whether a file is still what was read of it. Blocks: to be used in a thread."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from tui.context.bulk_mask import Read

HASHED_BYTES = 20 * 1024 * 1024


def checker(root: Path) -> Callable[[Read], bool]:
    """Tells whether a file is another one than was read, or gone. `root` is for relative paths.

    Size and time decide where they are the same, the hash where it is known, and else the time
    of the read against that of the file. Each file is looked at once.
    """
    looks: dict[Path, os.stat_result | None] = {}
    hashes: dict[Path, str] = {}

    def look(path: Path) -> os.stat_result | None:
        try:
            found = path.stat()
        except OSError:
            return None
        return found if stat.S_ISREG(found.st_mode) else None

    def changed(read: Read) -> bool:
        path = root / read.path
        if path not in looks:
            looks[path] = look(path)
        found = looks[path]
        if found is None:
            return True
        if read.mtime_ns is None or read.size is None:
            return found.st_mtime > _seconds(read.time)
        if (found.st_size, found.st_mtime_ns) == (read.size, read.mtime_ns):
            return False
        if read.sha256 is None or found.st_size != read.size or found.st_size > HASHED_BYTES:
            return True
        if path not in hashes:
            hashes[path] = _digest(path)
        return hashes[path] != read.sha256

    return changed


def _seconds(time: str) -> float:
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return float("inf")


def _digest(path: Path) -> str:
    try:
        return sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
