"""What has changed in a workspace since it was last looked at.

A known file counts as unchanged while its size, times, inode and mode are the same; only the others
are read. Folders named `.git` and `.holdfast` are passed over wherever they lie, so a nested
repository is plain files. Whether git ignores a path is asked when it is seen for the first time.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Final

from tui.core.git import GitError, git
from tui.core.workspace import PRIVATE_DIR
from tui.session.checkpoints.entries import (
    CheckpointError,
    CheckpointStoppedError,
    Kind,
    PathEntry,
    stamp_of,
)

ENTRIES_MAX: Final = 200_000
"""Above this a folder is no workspace but a disk."""
IGNORED_FILES_MAX: Final = 2_000
"""Of an ignored folder with more files nothing is stored."""
IGNORED_BYTES_MAX: Final = 20_000_000
"""Nor of one with more bytes."""
_PASSED_OVER: Final = frozenset({b".git", PRIVATE_DIR.encode()})
_CACHES: Final = frozenset(
    name.encode()
    for name in ("__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", "node_modules")
)
"""Folders that tools fill again, where git ignores them or isn't asked."""
_KINDS: Final = {stat.S_IFREG: Kind.FILE, stat.S_IFLNK: Kind.LINK, stat.S_IFDIR: Kind.FOLDER}


@dataclass(frozen=True, slots=True)
class ScannedPath:
    """A path that is new or may have changed, as the disk has it. `omitted`: a folder whose content
    isn't stored."""

    kind: Kind
    state: os.stat_result
    ignored: bool
    omitted: bool = False


@dataclass(slots=True)
class Scan:
    """What differs from what was known: paths relative to the workspace, with slashes."""

    found: dict[bytes, ScannedPath] = field(default_factory=dict[bytes, ScannedPath])
    missing: set[bytes] = field(default_factory=set[bytes])


class _Walk:
    """One look at a workspace."""

    def __init__(
        self, root: Path, known: Mapping[bytes, PathEntry], skip: Collection[Path], stop: Event
    ) -> None:
        self._top = os.fsencode(root) + b"/"
        self._root = root
        self._known = known
        self._skip = {os.fsencode(path) for path in skip}
        self._stop = stop
        self._count = 0
        self._seen: list[bytes] = []
        self._new: list[tuple[bytes, os.stat_result]] = []
        self.scan = Scan()

    def run(self) -> Scan:
        self._walk_known()
        if self._new:
            self._walk_new()
        if len(self._seen) != len(self._known):
            self.scan.missing = set(self._known).difference(self._seen)
        return self.scan

    def _entries(self, folder: bytes) -> list[os.DirEntry[bytes]]:
        """What is in a folder, given with its slash. What is known of one that can't be read stays
        so."""
        if self._stop.is_set():
            raise CheckpointStoppedError("The program ends.")
        try:
            with os.scandir(self._top + folder) as entries:
                found = [entry for entry in entries if entry.name not in _PASSED_OVER]
        except PermissionError:
            self._keep(folder[:-1])
            return []
        except OSError:
            return []
        self._count += len(found)
        if self._count > ENTRIES_MAX:
            raise CheckpointError(f"The folder has more than {ENTRIES_MAX:,} files.")
        return found

    def _keep(self, path: bytes, *, itself: bool = False) -> None:
        """Let what is known below a path that can't be read stand, and of the path `itself`."""
        inside = path + b"/"
        self._seen += [one for one in self._known if one.startswith(inside)]
        if itself and path in self._known:
            self._seen.append(path)

    def _walk_known(self) -> None:
        """Go through the folders that are known. This is the loop that has to be fast."""
        known, seen, folders = self._known.get, self._seen.append, [b""]
        is_folder, type_of = stat.S_IFDIR, stat.S_IFMT
        while folders:
            folder = folders.pop()
            for entry in self._entries(folder):
                path = folder + entry.name
                try:
                    state = entry.stat(follow_symlinks=False)
                except PermissionError:
                    self._keep(path, itself=True)
                    continue
                except OSError:
                    continue
                mode, old = state.st_mode, known(path)
                if old is None or (type_of(mode) == is_folder and old.kind < Kind.FOLDER):
                    self._new.append((path, state))
                elif type_of(mode) == is_folder:
                    seen(path)
                    if old.kind is Kind.FOLDER:
                        folders.append(path + b"/")
                        if mode & 0o7777 != old.mode:
                            self.scan.found[path] = ScannedPath(Kind.FOLDER, state, old.ignored)
                elif type_of(mode) in _KINDS:
                    seen(path)
                    if stamp_of(state) != old.stamp:
                        self.scan.found[path] = ScannedPath(
                            _KINDS[type_of(mode)], state, old.ignored
                        )

    def _walk_new(self) -> None:
        """Go into what is new."""
        ignored, asked = _ignored(self._root)
        grown: set[bytes] = set()
        while self._new:
            path, state = self._new.pop()
            kind = _KINDS.get(stat.S_IFMT(state.st_mode))
            if kind is None or self._top + path in self._skip:  # no pipes, sockets, devices
                continue
            above = self._root_of(path)
            skipped = above or (path if path in ignored else b"")
            self._add(path, ScannedPath(kind, state, bool(skipped)))
            if kind is not Kind.FOLDER:
                grown.update({above} if above else ())
                continue
            inner = list(self._entries(path + b"/"))
            is_cache = path.rpartition(b"/")[2] in _CACHES
            if is_cache and (skipped or not asked or self._in_repository(path)):
                self.scan.found[path] = ScannedPath(kind, state, bool(skipped), omitted=True)
                continue
            grown.update({skipped} if skipped else ())
            for entry in inner:
                try:
                    self._new.append((path + b"/" + entry.name, entry.stat(follow_symlinks=False)))
                except OSError:
                    continue
        for folder in grown:
            self._omit_if_large(folder)

    def _add(self, path: bytes, found: ScannedPath) -> None:
        self.scan.found[path] = found
        if path in self._known:
            self._seen.append(path)

    def _root_of(self, path: bytes) -> bytes:
        """The topmost folder above a path that git ignores; b"" where there is none."""
        at = path.find(b"/")
        while at > 0:
            folder = path[:at]
            one = self.scan.found.get(folder) or self._known.get(folder)
            if one is not None and one.ignored:
                return folder
            at = path.find(b"/", at + 1)
        return b""

    def _in_repository(self, path: bytes) -> bool:
        """Whether a path lies in a nested repository, of which git told nothing."""
        parts = path.split(b"/")
        tops = (self._top + b"/".join(parts[:n]) + b"/.git" for n in range(1, len(parts)))
        return any(map(os.path.lexists, tops))

    def _omit_if_large(self, folder: bytes) -> None:
        """Take an ignored folder out that has become too large to be stored."""
        inside = folder + b"/"
        found = {path: one for path, one in self.scan.found.items() if path.startswith(inside)}
        known = {
            path: entry
            for path, entry in self._known.items()
            if path.startswith(inside) and path not in found
        }
        files = len(found) + len(known)
        size = sum(one.state.st_size for one in found.values() if one.kind is Kind.FILE)
        size += sum(entry.size for entry in known.values())
        if files <= IGNORED_FILES_MAX and size <= IGNORED_BYTES_MAX:
            return
        for path in found:
            del self.scan.found[path]
        self._seen = [path for path in self._seen if not path.startswith(inside)]
        try:
            state = os.lstat(self._top + folder)
        except OSError:
            return
        self.scan.found[folder] = ScannedPath(Kind.FOLDER, state, ignored=True, omitted=True)


def scan(root: Path, known: Mapping[bytes, PathEntry], skip: Collection[Path], stop: Event) -> Scan:
    """Compare a workspace with what is known of it; `skip` are folders that don't belong to it.

    Raises CheckpointError for a folder with too many files, CheckpointStoppedError once `stop` is
    set.
    """
    return _Walk(root, known, skip, stop).run()


def _ignored(root: Path) -> tuple[frozenset[bytes], bool]:
    """The files and whole folders that git ignores, and whether it could be asked."""
    try:
        said = git(root, "ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory")
    except GitError:
        return frozenset(), False
    paths = {os.fsencode(path).rstrip(b"/") for path in said.split("\0")}
    return (frozenset(paths - {b""}), True) if b"." not in paths else (frozenset(), True)
