"""The contents of folders, read again only if a folder has changed since.

A folder's time of change cannot be set by anybody, so an unchanged one means the same names.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

_SETTLED_NS = 2_000_000_000
"""A change this recent may be followed by another one that does not show in the time."""
_Stamp: TypeAlias = tuple[int, int, int]


class Listing(NamedTuple):
    """The names in a folder: folders and links, and the wanted files."""

    folders: tuple[str, ...]
    links: tuple[str, ...]
    files: tuple[str, ...]


_NOTHING = Listing((), (), ())


class FolderLists:
    """Lists folders; `wanted` selects the files that count, by the names of folder and file.

    Folders that are not asked for between two calls of `begin` are forgotten.
    """

    def __init__(self, wanted: Callable[[str, str], bool]) -> None:
        self._wanted = wanted
        self._known: dict[str, tuple[_Stamp, Listing]] = {}
        self._before = self._known

    def begin(self) -> None:
        self._before, self._known = self._known, {}

    def of(self, folder: str) -> Listing:
        """List a folder; nothing if it is none, or cannot be read. No link is followed."""
        try:
            status = os.lstat(folder)
        except OSError:
            return _NOTHING
        if not stat.S_ISDIR(status.st_mode):
            return _NOTHING
        stamp = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
        known = self._known.get(folder) or self._before.get(folder)
        if known is None or known[0] != stamp:
            known = (stamp, self._read(folder))
        if max(stamp[1:]) < time.time_ns() - _SETTLED_NS:
            self._known[folder] = known
        return known[1]

    def _read(self, folder: str) -> Listing:
        folders: list[str] = []
        links: list[str] = []
        files: list[str] = []
        parent = os.path.basename(folder)  # noqa: PTH119 - much faster
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        links.append(entry.name)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.name)
                    elif self._wanted(parent, entry.name):
                        files.append(entry.name)
        except OSError:
            return _NOTHING
        return Listing(tuple(sorted(folders)), tuple(links), tuple(files))
