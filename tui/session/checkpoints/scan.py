"""Find what has changed in a workspace since the last scan.

A known file counts as unchanged while its size, times, inode and mode are the same; only the others
are read. Folders named `.git` and `.holdfast` are passed over wherever they lie, so a nested
repository is plain files; that it has a `.git` is known, and nothing else of it. Git is asked
whether it ignores a path when the path is first seen.

Folders are opened from the handle of the workspace and no link is followed: a command may exchange
one at any moment.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Final

from tui.core.dataclass import dataclass, field
from tui.core.git.checkout import Checkout
from tui.core.git.door import GitError
from tui.core.real_folders import NOT_THERE, RealFolders
from tui.core.workspace import PRIVATE_DIR
from tui.session.checkpoints.entries import (
    CheckpointStoppedError,
    Kind,
    PathEntry,
    WorkspaceTooLargeError,
    stamp_of,
)
from tui.session.checkpoints.known import KnownPaths

ENTRIES_MAX: Final = 200_000
"""Above this a folder is no workspace but a disk."""
IGNORED_FILES_MAX: Final = 2_000
"""Number of files above which nothing of an ignored folder is stored."""
IGNORED_BYTES_MAX: Final = 20_000_000
"""Nor of one with more bytes."""
_GIT: Final = ".git"
_PASSED_OVER: Final = frozenset({_GIT, PRIVATE_DIR})
_CACHES: Final = frozenset(
    name.encode()
    for name in ("__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", "node_modules")
)
"""Folders that tools fill again, where git ignores them or isn't asked."""
_LIST_IGNORED: Final = ("ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory")
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
    """The differences from what was known: paths relative to the workspace, with slashes."""

    found: dict[bytes, ScannedPath] = field(default_factory=dict[bytes, ScannedPath])
    missing: set[bytes] = field(default_factory=set[bytes])


class _Walk:
    """One look at a workspace."""

    def __init__(self, root: Path, known: KnownPaths, skip: Collection[Path], stop: Event) -> None:
        self._top = os.fsencode(root) + b"/"
        self._root = root
        self._folders = RealFolders(root)
        self._known = known
        self._skip = {os.fsencode(path) for path in skip}
        self._stop = stop
        self._count = 0
        self._new: list[tuple[bytes, os.stat_result]] = []
        self.scan = Scan()

    def run(self) -> Scan:
        with self._folders:
            folders = [b""]
            while folders:
                folders += self._walk_known(folders.pop())
            if self._new:
                self._walk_new()
        return self.scan

    def _counted(self, number: int) -> None:
        """Raises where the walk has to end."""
        if self._stop.is_set():
            raise CheckpointStoppedError("The program ends.")
        self._count += number
        if self._count > ENTRIES_MAX:
            raise WorkspaceTooLargeError(f"The folder has more than {ENTRIES_MAX:,} files.")

    def _forget(self, path: bytes) -> None:
        """Note that a path that may be known is gone, with all below it."""
        if self._known.get(path) is not None:
            self.scan.missing.add(path)
        self.scan.missing.update(inner for inner, _ in self._known.below(path))

    def _walk_known(self, folder: bytes) -> list[bytes]:
        """Look at the contents of a known folder, given with its slash. Returns the folders in
        it that are known. What is known of one that can't be read stands."""
        inner: list[bytes] = []
        try:
            at = self._folders.open(folder[:-1], os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            if error.errno in NOT_THERE:
                self._forget(folder[:-1])
            return inner
        try:
            names = os.listdir(at)  # noqa: PTH208 - of an open folder
            self._counted(len(names))
            there = self._walk_names(folder, names, at, inner)
        finally:
            os.close(at)
        known = self._known.within(folder)
        if there < len(known):
            for name in known.keys() - set(names):
                self._forget(folder + os.fsencode(name))
        return inner

    def _walk_names(self, folder: bytes, names: list[str], at: int, inner: list[bytes]) -> int:
        """Look at names in an open folder; known folders are added to `inner`. Returns how many are
        known. This is the loop that has to be fast."""
        known, there = self._known.within(folder).get, 0
        for name in names:
            old = known(name)
            there += old is not None
            try:
                state = os.stat(name, dir_fd=at, follow_symlinks=False)
            except FileNotFoundError:
                self._forget(folder + os.fsencode(name))
                continue
            except OSError:
                continue
            if old is not None and old.stamp == stamp_of(state):
                continue
            if name in _PASSED_OVER:
                if old is None and folder and name == _GIT:
                    self._new.append((folder + os.fsencode(name), state))
            elif self._differs(folder + os.fsencode(name), old, state):
                inner.append(folder + os.fsencode(name) + b"/")
        return there

    def _differs(self, path: bytes, old: PathEntry | None, state: os.stat_result) -> bool:
        """Note a path that isn't a file as it was. Returns whether it is a folder that is known."""
        kind = _KINDS.get(stat.S_IFMT(state.st_mode))
        if old is None or (kind is Kind.FOLDER and old.kind < Kind.FOLDER):
            self._new.append((path, state))
            return False
        if kind is None:
            self._forget(path)
            return False
        if kind is not Kind.FOLDER:
            self.scan.missing.update(inner for inner, _ in self._known.below(path))
            self.scan.found[path] = ScannedPath(kind, state, old.ignored)
            return False
        if old.kind is Kind.FOLDER and state.st_mode & 0o7777 != old.mode:
            self.scan.found[path] = ScannedPath(kind, state, old.ignored)
        return old.kind is Kind.FOLDER

    def _walk_new(self) -> None:
        """Go into what is new."""
        ignored, answered = _ignored(self._root)
        grown: set[bytes] = set()
        while self._new:
            path, state = self._new.pop()
            kind = _KINDS.get(stat.S_IFMT(state.st_mode))
            if kind is None or self._top + path in self._skip:  # no pipes, sockets, devices
                self._forget(path)
                continue
            if path.rpartition(b"/")[2] == os.fsencode(_GIT):
                self.scan.found[path] = ScannedPath(Kind.FOLDER, state, ignored=True, omitted=True)
                continue
            above = self._root_of(path)
            skipped = above or (path if path in ignored else b"")
            self.scan.found[path] = ScannedPath(kind, state, bool(skipped))
            if kind is not Kind.FOLDER:
                grown.update({above} if above else ())
                continue
            inner = self._new_in(path)
            is_cache = path.rpartition(b"/")[2] in _CACHES
            if is_cache and (skipped or not answered or self._in_repository(path)):
                self.scan.found[path] = ScannedPath(kind, state, bool(skipped), omitted=True)
                continue
            grown.update({skipped} if skipped else ())
            self._new += inner
        for folder in grown:
            self._omit_if_large(folder)

    def _new_in(self, path: bytes) -> list[tuple[bytes, os.stat_result]]:
        """List a new folder, as far as it can be read."""
        entries: list[tuple[bytes, os.stat_result]] = []
        try:
            at = self._folders.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            return entries
        try:
            for name in os.listdir(at):  # noqa: PTH208 - of an open folder
                if name in _PASSED_OVER and name != _GIT:
                    continue
                with suppress(OSError):
                    state = os.stat(name, dir_fd=at, follow_symlinks=False)
                    entries.append((path + b"/" + os.fsencode(name), state))
        finally:
            os.close(at)
        self._counted(len(entries))
        return entries

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
        """True if a path lies in a nested repository, of which git reported nothing."""
        parts = path.split(b"/")
        tops = (b"/".join(parts[:n]) + b"/.git" for n in range(1, len(parts)))
        return any(map(self._folders.holds, tops))

    def _omit_if_large(self, folder: bytes) -> None:
        """Take an ignored folder out that has become too large to be stored."""
        inside = folder + b"/"
        inside_now = {path: one for path, one in self.scan.found.items() if path.startswith(inside)}
        known = {path: one for path, one in self._known.below(folder) if path not in inside_now}
        files = len(inside_now) + len(known)
        size = sum(one.state.st_size for one in inside_now.values() if one.kind is Kind.FILE)
        size += sum(entry.size for entry in known.values())
        if files <= IGNORED_FILES_MAX and size <= IGNORED_BYTES_MAX:
            return
        for path in inside_now:
            del self.scan.found[path]
        self.scan.missing.update(path for path, _ in self._known.below(folder))
        try:
            state = self._folders.stat(folder)
        except OSError:
            return
        self.scan.found[folder] = ScannedPath(Kind.FOLDER, state, ignored=True, omitted=True)


def scan(root: Path, known: KnownPaths, skip: Collection[Path], stop: Event) -> Scan:
    """Compare a workspace with what is known of it; `skip` are folders that don't belong to it.

    Raises WorkspaceTooLargeError for a folder with too many files, CheckpointStoppedError once
    `stop` is set.
    """
    return _Walk(root, known, skip, stop).run()


def _ignored(root: Path) -> tuple[frozenset[bytes], bool]:
    """The files and whole folders that git ignores, and whether it could be asked."""
    try:
        output = Checkout.of(root).git(*_LIST_IGNORED, folder=root)
    except GitError:
        return frozenset(), False
    paths = {os.fsencode(path).rstrip(b"/") for path in output.split("\0")}
    return (frozenset(paths - {b""}), True) if b"." not in paths else (frozenset(), True)
