"""A folder of our own that becomes one state of a workspace after the other.

Only the differences are written: what stays is known by its times, and what a command changed in
between is put back. Everything blocks.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from tui.core.dataclass import dataclass, field
from tui.session.checkpoints.entries import CheckpointError, Kind, PathEntry, stamp_of

State = Mapping[bytes, PathEntry]
"""The entries of all paths of a workspace, by their bytes below it."""
_OWN: Final = stat.S_IRWXU
_PERMISSIONS: Final = 0o777
_WRITE: Final = os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = _WRITE | os.O_CREAT | os.O_EXCL


def differing(old: State, new: State) -> dict[bytes, tuple[PathEntry | None, PathEntry | None]]:
    """The paths that two states have differently, each with both entries."""
    found: dict[bytes, tuple[PathEntry | None, PathEntry | None]] = {}
    for path, entry in new.items():
        before = old.get(path)
        if before is not entry and not entry.same(before):
            found[path] = before, entry
    found |= {path: (old[path], None) for path in old.keys() - new.keys()}
    return dict(sorted(found.items()))


def folders_above(path: bytes) -> Iterator[bytes]:
    """The folders that a path is in, from the nearest."""
    while b"/" in path:
        path = path.rpartition(b"/")[0]
        yield path


class FileSource(Protocol):
    """The source of what is in the files."""

    def content(self, digest: bytes) -> bytes:
        """The content with a SHA-256. Raises CheckpointError."""
        ...

    def lent(self, path: bytes) -> Path | None:
        """The target of a link in the place of a path whose content isn't kept; None where nothing
        stands in for it."""
        ...


@dataclass(slots=True)
class ScratchTree:
    """A folder that nobody else writes to, but for commands that have ended."""

    folder: Path
    source: FileSource
    _entries: dict[bytes, PathEntry] = field(default_factory=dict[bytes, PathEntry])
    _stamps: dict[bytes, int] = field(default_factory=dict[bytes, int])
    """What stands there as we left it: folders have none."""

    def become(self, state: State) -> list[bytes]:
        """Give the folder a state. Returns the paths that somebody had changed since the last one.
        Raises OSError, CheckpointError."""
        changed = self._changed()
        new = differing(self._entries, state)
        stale = sorted({*changed, *new})
        _check(stale, state)
        # Files that are as we left them are written over, which costs the least.
        over = {
            path
            for path, pair in new.items()
            if path not in changed and all(one and _is_writable(one) for one in pair)
        }
        # Folders come before what is in them: a command may have put a link in the place of one.
        for path in stale:
            if path not in over:
                self._remove(path, state.get(path))
        self._entries = dict(state)
        for path in stale:
            if path in state:
                self._make(path, state[path], over=path in over)
        return sorted(changed)

    @property
    def missing(self) -> list[bytes]:
        """The paths of the state that aren't there, as their contents are neither kept nor lent."""
        return sorted(
            path
            for path, entry in self._entries.items()
            if not (entry.stored or path in self._stamps)
        )

    @property
    def lent(self) -> list[bytes]:
        """The paths that are links in the place of what the state has without its content."""
        return sorted(path for path in self._stamps if self._entries[path].digest is None)

    def _where(self, path: bytes) -> Path:
        return self.folder / os.fsdecode(path)

    def _changed(self) -> set[bytes]:
        """Find what isn't as we left it: changed, new or gone."""
        seen: set[bytes] = set()
        changed: set[bytes] = set()
        waiting = [b""]
        while waiting:
            folder = waiting.pop()
            for one in _listed(self._where(folder)):
                path = folder + os.fsencode(one.name)
                seen.add(path)
                state = one.stat(follow_symlinks=False)
                if not stat.S_ISDIR(state.st_mode):
                    if self._stamps.get(path) != stamp_of(state):
                        changed.add(path)
                    continue
                entry = self._entries.get(path)
                if entry is not None and _is_folder(entry):
                    waiting.append(path + b"/")
                    if stat.S_IMODE(state.st_mode) == _folder_mode(entry):
                        continue
                changed.add(path)
        folders = (path for path, entry in self._entries.items() if _is_folder(entry))
        return changed | {path for path in (*self._stamps, *folders) if path not in seen}

    def _remove(self, path: bytes, wanted: PathEntry | None) -> None:
        """Remove what stands at a path, except for a folder of ours that stays one."""
        self._stamps.pop(path, None)
        place = self._where(path)
        try:
            is_folder = stat.S_ISDIR(place.lstat().st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return
        if not is_folder:
            place.unlink()
        elif not (_is_folder(wanted) and _is_folder(self._entries.get(path))):
            remove_tree(place)

    def _make(self, path: bytes, entry: PathEntry, *, over: bool) -> None:
        place = f"{self.folder}/{os.fsdecode(path)}"
        if entry.kind is Kind.FILE and entry.digest is not None:
            self._stamps[path] = _write(
                place, self.source.content(entry.digest), entry.mode, over=over
            )
            return
        if entry.kind is Kind.FOLDER:
            Path(place).mkdir(exist_ok=True)
            Path(place).chmod(_folder_mode(entry))
            return
        target = self.source.lent(path)
        if entry.digest is not None:
            target = Path(os.fsdecode(self.source.content(entry.digest)))
        if target is not None:
            Path(place).symlink_to(target)
            self._stamps[path] = stamp_of(os.lstat(place))


def _write(place: str, data: bytes, mode: int, *, over: bool) -> int:
    """Write a file, a new one or over one that is there. Returns its stamp."""
    file = os.open(place, _WRITE if over else _NEW, 0o600)
    try:
        if over:
            os.ftruncate(file, 0)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]
        os.fchmod(file, mode & _PERMISSIONS)
        return stamp_of(os.fstat(file))
    finally:
        os.close(file)


def _check(paths: Iterable[bytes], state: State) -> None:
    """Refuse a state, which may come from elsewhere, that has something below what is no folder:
    through a link it would be made outside."""
    for path in paths:
        above = path.rpartition(b"/")[0]
        if path in state and above and not _is_folder(state.get(above)):
            raise CheckpointError(f"{os.fsdecode(above)} is no folder, and has files.")


def _folder_mode(entry: PathEntry) -> int:
    """The mode of a folder here: we have to get into each."""
    return entry.mode & _PERMISSIONS | _OWN


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    """List a folder, also one that a command has closed."""
    try:
        with os.scandir(folder) as found:
            return list(found)
    except PermissionError:
        folder.chmod(_OWN)
        with os.scandir(folder) as found:
            return list(found)


def remove_tree(folder: Path) -> None:
    """Remove a folder of ours with all that is in it, also where a command took the permission
    away. Of a link in its place, only the link is removed. Raises OSError."""
    if folder.is_symlink():
        folder.unlink()
        return
    with suppress(FileNotFoundError):
        folder.chmod(_OWN)
        for place, names, _ in os.walk(folder):  # follows no link below it
            for name in names:
                inner = Path(place, name)
                if not inner.is_symlink():
                    inner.chmod(_OWN)  # before it is listed
        shutil.rmtree(folder)


def _is_folder(entry: PathEntry | None) -> bool:
    return entry is not None and entry.kind is Kind.FOLDER


def _is_writable(entry: PathEntry) -> bool:
    """True for a file whose content is there and that its owner may write."""
    return entry.kind is Kind.FILE and entry.stored and bool(entry.mode & stat.S_IWUSR)
