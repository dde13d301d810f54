"""The hash of all that is in a folder, by which trust in it ends with any change.

Git's own folder in it does not count, so nothing may be used from there; and no link may lead there
or out of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeAlias

from tui.core.errors import ConfigError
from tui.core.files import read_small
from tui.core.paths import shorten

_FILES_MAX: Final = 3000
_BYTES_MAX: Final = 50_000_000
_REMEMBERED: Final = 1000
_SKIPPED: Final = frozenset({".git"})


Files: TypeAlias = tuple[tuple[str, int, int, int, int], ...]
"""The files of a folder: name, mode, size, and when contents and state changed."""


def fingerprint(root: Path) -> str:
    """The hash of all that is in a folder. Raises ConfigError. Blocks."""
    return _hash_of(root, files_in(root))


def files_in(root: Path) -> Files:
    """Everything below a folder but what is never looked at. Raises ConfigError. Blocks."""
    found: list[tuple[str, int, int, int, int]] = []
    size, waiting = 0, [(str(root), "")]
    while waiting:
        folder, before = waiting.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            states = [(entry, entry.stat(follow_symlinks=False)) for entry in entries]
        except OSError as error:
            if not before and isinstance(error, FileNotFoundError | NotADirectoryError):
                break
            raise ConfigError(shorten(folder), "", f"can't be read: {error.strerror}") from error
        for entry, state in states:
            name = f"{before}{entry.name}"
            if stat.S_ISDIR(state.st_mode):
                waiting += [] if entry.name in _SKIPPED else [(entry.path, f"{name}/")]
                continue
            if stat.S_ISLNK(state.st_mode) and leads_out(Path(entry.path), root):
                why = "is a link to something outside of its folder"
                raise ConfigError(shorten(entry.path), "", why)
            size += state.st_size
            found.append((name, state.st_mode, state.st_size, state.st_mtime_ns, state.st_ctime_ns))
            if len(found) > _FILES_MAX or size > _BYTES_MAX:
                most = f"{_FILES_MAX:,} files or {_BYTES_MAX // 1_000_000} MB"
                raise ConfigError(shorten(root), "", f"has more than {most}")
    if not found:
        raise ConfigError(shorten(root), "", "isn't a folder with files in it")
    return tuple(sorted(found))


@lru_cache(maxsize=_REMEMBERED)
def _hash_of(root: Path, files: Files) -> str:
    """Hash the files; once for as long as nothing about them changes."""
    whole = hashlib.sha256()
    for name, mode, *_ in files:
        path = root / name
        try:
            if stat.S_ISLNK(mode):
                data = os.fsencode(path.readlink())
            else:
                data = read_small(path, limit=_BYTES_MAX)[0] if stat.S_ISREG(mode) else b""
        except OSError as error:
            raise ConfigError(shorten(path), "", f"can't be read: {error.strerror}") from error
        runs = bool(mode & stat.S_IXUSR)
        whole.update(json.dumps([name, stat.S_IFMT(mode), runs, len(data)]).encode())
        whole.update(data)
    return whole.hexdigest()


def leads_out(path: Path, root: Path) -> bool:
    """True if a path, with its links followed, is nothing that the hash of a folder is of."""
    real = Path(os.path.realpath(path))
    if real != root and root not in real.parents:
        return True
    return not _SKIPPED.isdisjoint(real.relative_to(root).parts)
