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
from typing import Final

from tui.core.errors import ConfigError
from tui.core.files import read_small
from tui.core.paths import shorten

_FILES_MAX: Final = 3000
_BYTES_MAX: Final = 50_000_000
_SKIPPED: Final = frozenset({".git"})


def fingerprint(root: Path) -> str:
    """The hash of all that is in a folder. Raises ConfigError. Blocks."""
    names: list[tuple[str, int, int, int, int]] = []
    size = 0
    for where, inner, files in os.walk(root):
        inner[:] = sorted(one for one in inner if one not in _SKIPPED)
        links = [one for one in inner if os.path.islink(os.path.join(where, one))]  # noqa: PTH114, PTH118
        for one in sorted((*files, *links)):
            path = Path(where, one)
            try:
                state = path.lstat()
            except OSError as error:
                raise ConfigError(shorten(path), "", f"can't be read: {error.strerror}") from error
            if stat.S_ISLNK(state.st_mode) and leads_out(path, root):
                raise ConfigError(shorten(path), "", "it is a link to what its folder doesn't have")
            size += state.st_size
            name = path.relative_to(root).as_posix()
            names.append((name, state.st_mode, state.st_size, state.st_mtime_ns, state.st_ctime_ns))
            if len(names) > _FILES_MAX or size > _BYTES_MAX:
                most = f"{_FILES_MAX:,} files or {_BYTES_MAX // 1_000_000} MB"
                raise ConfigError(shorten(root), "", f"it has more than {most}")
    if not names:
        raise ConfigError(shorten(root), "", "it is no folder with files in it")
    return _hash_of(root, tuple(names))


@lru_cache(maxsize=64)
def _hash_of(root: Path, names: tuple[tuple[str, int, int, int, int], ...]) -> str:
    """Hash the files; once for as long as nothing about them changes."""
    whole = hashlib.sha256()
    for name, mode, *_ in names:
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
