"""Putting files back as a checkpoint has them: content, permissions, links, folders.

No path is followed through a symbolic link, and a file is replaced as a whole, except where
something is mounted over it. What has changed since the newer of the two checkpoints is left alone.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from tui.core.dataclass import dataclass, field
from tui.core.files import read_small, real_folder
from tui.core.real_folders import NOT_THERE
from tui.session.checkpoints.entries import (
    FILE_BYTES_MAX,
    Change,
    CheckpointError,
    Kind,
    Outcome,
    PathEntry,
    RestoredFile,
)
from tui.session.checkpoints.store import CheckpointStore

_FOLDERS = frozenset({Kind.FOLDER, Kind.OMITTED})
_OWN = stat.S_IRWXU


def restore(changes: Iterable[Change], store: CheckpointStore) -> list[RestoredFile]:
    """Give each path its `old` state back, where it still has its `new` one. Blocks.

    Never raises for a single path: its outcome says what went wrong.
    """
    return _Restoring(store).run(list(changes))


@dataclass(slots=True)
class _Restoring:
    store: CheckpointStore
    done: dict[Path, RestoredFile] = field(default_factory=dict[Path, RestoredFile])
    modes: dict[Path, int] = field(default_factory=dict[Path, int])
    """Modes of folders, to be set once everything is in its place."""

    def run(self, changes: list[Change]) -> list[RestoredFile]:
        changes = sorted(changes, key=lambda change: len(change.path.parts))
        for change in changes:  # a folder that can't be entered hides what is in it
            if change.old and change.new and change.old.kind is change.new.kind is Kind.FOLDER:
                self._attempt(change, self._put)
        ready = [
            change for change in changes if change.path not in self.done and self._ready(change)
        ]
        for change in reversed(ready):
            if change.new is not None and (change.old is None or self._other_kind(change)):
                self._attempt(change, self._remove)
        for change in ready:
            if change.old is not None and change.path not in self.done:
                self._attempt(change, self._put)
        for path in sorted(self.modes, key=lambda path: len(path.parts), reverse=True):
            with suppress(OSError), _inside(path) as folder:
                _set_mode(path.name, self.modes[path], folder)
        return [self.done[change.path] for change in changes]

    def _other_kind(self, change: Change) -> bool:
        """True if what is there now must go before the old can come back."""
        assert change.old
        assert change.new
        return (change.old.kind in _FOLDERS) != (change.new.kind in _FOLDERS)

    def _ready(self, change: Change) -> bool:
        """Check that it can be done at all; if not, report that as its outcome."""
        if change.old is not None and not change.old.stored:
            omitted = change.old.kind is Kind.OMITTED
            why = "its files aren't kept" if omitted else "it was too large, or the disk was full"
            return self._say(change, "lost", f"no copy: {why}")
        if change.new is not None and change.new.kind is Kind.OMITTED:
            return self._say(change, "failed", "a folder whose files aren't kept is there now")
        try:
            if not _matches(change.path, change.new):
                whole = _matches(change.path, change.old)
                return self._say(change, "unchanged" if whole else "changed since")
        except OSError as error:
            return self._say(change, "failed", error.strerror or str(error))
        return True

    def _say(self, change: Change, outcome: Outcome, detail: str = "") -> bool:
        self.done[change.path] = RestoredFile(change.path, outcome, detail=detail)
        return False

    def _attempt(self, change: Change, step: Callable[[Change], object]) -> None:
        try:
            step(change)
        except CheckpointError as error:
            self._say(change, "lost", error.message)
        except OSError as error:
            self._say(change, "failed", error.strerror or str(error))

    def _remove(self, change: Change) -> None:
        assert change.new
        with self._writable(change.path) as folder:
            if change.new.kind is Kind.FOLDER:
                try:
                    os.rmdir(change.path.name, dir_fd=folder)
                except OSError as error:
                    if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                        raise
                    self._say(change, "failed", "it holds files that aren't in a checkpoint")
                    return
            else:
                os.unlink(change.path.name, dir_fd=folder)
        if change.old is None:
            self._say(change, "deleted")

    def _put(self, change: Change) -> None:
        old, new, path = change.old, change.new, change.path
        assert old
        with self._writable(path) as folder:
            if old.kind is Kind.FOLDER:
                if new is None or new.kind is not Kind.FOLDER:
                    os.mkdir(path.name, _OWN, dir_fd=folder)
                _set_mode(path.name, old.mode | _OWN, folder)
                self.modes[path] = old.mode
            elif new is not None and (new.kind, new.digest) == (old.kind, old.digest):
                _set_mode(path.name, old.mode, folder)
            else:
                self._replace(path, old, folder)
        self._say(change, "restored")

    def _replace(self, path: Path, old: PathEntry, folder: int) -> None:
        """Put a file or a link in the place of what is there; a file that something is mounted over
        gets the content."""
        assert old.digest is not None
        data = self.store.content(old.digest)
        try:
            self._rename(path.name, old, data, folder)
        except OSError as error:
            if error.errno != errno.EBUSY or old.kind is not Kind.FILE:
                raise
            from tui.core.in_place import put  # noqa: PLC0415 - seldom needed

            present, state = read_small(path, limit=FILE_BYTES_MAX, real=True)
            put(path, data, old=present, like=state, mode=old.mode, check=lambda: None)
            _set_mode(path.name, old.mode, folder)

    def _rename(self, name: str, old: PathEntry, data: bytes, folder: int) -> None:
        temporary = f".holdfast-{secrets.token_hex(8)}.tmp"
        try:
            if old.kind is Kind.LINK:
                os.symlink(data, os.fsencode(temporary), dir_fd=folder)
            else:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                descriptor = os.open(temporary, flags, 0o600, dir_fd=folder)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                    file.flush()
                    with suppress(OSError):
                        state = os.stat(name, dir_fd=folder, follow_symlinks=False)
                        os.fchown(descriptor, state.st_uid, state.st_gid)
                    os.fchmod(descriptor, old.mode)
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            raise

    @contextmanager
    def _writable(self, path: Path) -> Generator[int]:
        """The folder that a path lies in, with the right to change it; its own permissions come
        back at the end."""
        with _inside(path) as folder:
            mode = stat.S_IMODE(os.fstat(folder).st_mode)
            if mode & _OWN != _OWN:
                self.modes.setdefault(path.parent, mode)
                with _inside(path.parent) as above:
                    _set_mode(path.parent.name, mode | _OWN, above)
            yield folder


@contextmanager
def _inside(path: Path) -> Generator[int]:
    folder = real_folder(path.parent)
    try:
        yield folder
    finally:
        os.close(folder)


def _matches(path: Path, entry: PathEntry | None) -> bool:
    """True if a path has the kind and content that a checkpoint recorded."""
    try:
        with _inside(path) as folder:
            state = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
            return entry is not None and _is_entry(path, folder, state, entry)
    except OSError as error:
        if error.errno in NOT_THERE:
            return entry is None
        raise


def _is_entry(path: Path, folder: int, stands: os.stat_result, entry: PathEntry) -> bool:
    if stat.S_ISDIR(stands.st_mode):
        return entry.kind is Kind.FOLDER
    if stat.S_ISLNK(stands.st_mode):
        target = os.fsencode(os.readlink(path.name, dir_fd=folder))
        return entry.kind is Kind.LINK and sha256(target).digest() == entry.digest
    if entry.kind is not Kind.FILE or not stat.S_ISREG(stands.st_mode):
        return False
    if entry.digest is None:
        return stands.st_size == entry.size
    if stands.st_size > FILE_BYTES_MAX:
        return False
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    opened = os.open(path.name, flags, dir_fd=folder)
    data, _ = read_small(path, limit=FILE_BYTES_MAX, opened=opened)
    return sha256(data).digest() == entry.digest


def _set_mode(name: str, mode: int, folder: int) -> None:
    """Set the permissions of what is in a folder, unless it is a link."""
    if not hasattr(os, "O_PATH"):
        os.chmod(name, mode, dir_fd=folder, follow_symlinks=False)
        return
    descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        if not stat.S_ISLNK(os.fstat(descriptor).st_mode):
            Path(f"/proc/self/fd/{descriptor}").chmod(mode)
    finally:
        os.close(descriptor)
