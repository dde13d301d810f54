"""The full tool outputs of a workspace on disk: the sessions that refer to them, and their removal.

The folder also holds `index.jsonl`. It has one line for each file that names the session it belongs
to, written before any record refers to the file, and one line for each file that was removed, with
the date and the reason.

A file is removed if it is too old, or among the oldest while all together are too large, and no
session refers to it: neither the one of its line, while that session exists, nor any other of the
workspace (their files are searched for its name). A session in the trash does not count. Programs
hold a shared lock on the index while they run; removing takes an exclusive lock, so nothing is
removed while another program may be about to refer to it.

Everything here blocks: call it in a thread.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from itertools import chain
from pathlib import Path
from threading import Event, Lock
from typing import Any, cast

from tui.core.dataclass import dataclass, replace
from tui.core.errors import HoldfastError
from tui.core.files import open_real
from tui.core.late_pattern import late_pattern
from tui.core.paths import folders, workspace_slug
from tui.core.private_files import private_dir
from tui.core.workspace import PRIVATE_DIR, TOOL_RESULTS, checkout_of

INDEX = "index.jsonl"
DAY_S = 86_400
FRESH_S = 3600
"""Seconds. A file younger than this is never removed: its record may not be written yet."""

_INDEX_BYTES = 64 << 20
_REMOVED_LINES = 10_000
_CHUNK = 1 << 20
_NAME = late_pattern(rb"tool-results\\?/([A-Za-z0-9_-]{1,80}\.txt)")
_OUTPUT = late_pattern(r"[A-Za-z0-9_-]{1,80}\.txt")
_NAME_BYTES = 128


@dataclass(frozen=True, slots=True)
class Retention:
    """Days for which files are kept, and bytes in all. `sessions` is the folder of the workspace's
    session files."""

    sessions: Path
    days: int = 30
    bytes: int = 10 * 1024**3


@dataclass(frozen=True, slots=True)
class _File:
    name: str
    bytes: int
    changed: float


class OutputStore:
    """The full outputs of one workspace, as one agent uses them. Safe to use from threads."""

    def __init__(self, folder: Path, *, session: Path | None, retention: Retention) -> None:
        """`folder` is the workspace's `tool_results`; `session` the file of the session that will
        refer to them, None if nothing is recorded."""
        self._folder = folder
        self._session = session
        self._retention = retention
        self._lock = Lock()
        self._index: int | None = None

    def of_session(self, session: Path | None) -> OutputStore:
        """Return the same folder, as another session uses it."""
        return OutputStore(self._folder, session=session, retention=self._retention)

    def unpacked(self) -> Iterator[OutputStore]:
        """Yield the outputs that were unpacked with sessions of other machines, to be swept: no
        workspace has them, and the session that names one may be of any."""
        retention = replace(self._retention, sessions=folders().sessions)
        for folder in folders().outputs.glob(f"{TOOL_RESULTS}-*/{TOOL_RESULTS}"):
            yield OutputStore(folder, session=None, retention=retention)

    def note(self, path: Path) -> None:
        """Note in the index that this session refers to a file.

        Never raises: for a file without a line, `sweep` searches the sessions.
        """
        if self._session is None or path.parent != self._folder:
            return
        line = b"\n" + _line(name=path.name, session=str(self._session))  # after a torn one
        with self._lock, suppress(OSError, HoldfastError):
            os.write(self._hold(), line)

    def sweep(self, now: datetime, stop: Event) -> int:
        """Remove the files that are due. Returns how many. Ends early once `stop` is set.

        Does nothing while another program has the index open, or if there is no folder.
        """
        if not self._folder.is_dir():
            return 0
        with self._lock, suppress(OSError, HoldfastError):
            index = self._hold(alone=True)
            try:
                fcntl.flock(index, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                fcntl.flock(index, fcntl.LOCK_SH)
                return 0
            try:
                return self._sweep(index, now, stop)
            finally:
                fcntl.flock(index, fcntl.LOCK_SH)
        return 0

    def close(self) -> None:
        """Close the index, so that other programs may remove files."""
        with self._lock:
            if self._index is not None:
                os.close(self._index)
                self._index = None

    def _hold(self, *, alone: bool = False) -> int:
        """Return the open index. It is locked as shared from its first use on, unless the caller is
        about to lock it `alone`."""
        if self._index is None:
            folder = private_dir(self._folder)
            try:
                flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                index = os.open(INDEX, flags, 0o600, dir_fd=folder)
            finally:
                os.close(folder)
            self._index = index
            if not alone:
                with suppress(OSError):  # a file system without locks
                    fcntl.flock(index, fcntl.LOCK_SH)
        return self._index

    def _sweep(self, index: int, now: datetime, stop: Event) -> int:
        folder = private_dir(self._folder)
        try:
            files = sorted(_files(folder), key=lambda file: file.changed)
            due = dict(self._due(files, now.timestamp()))
            if not due:
                return 0
            # First by the index, which is quick; then by searching the sessions for what is left.
            lines = list(_entries(index))
            owners: dict[str, set[Path]] = {}
            for line in lines:
                if isinstance(line.get("session"), str):
                    owners.setdefault(str(line.get("name")), set()).add(Path(line["session"]))
            alive = {path for paths in owners.values() for path in paths if path.exists()}
            for name in [n for n in due if owners.get(n, set()) & alive]:
                del due[name]
            sessions = chain(alive, self._retention.sessions.rglob("*.jsonl"))
            for name in _named_in(sessions, due, stop):
                due.pop(name, None)
            removed: list[dict[str, Any]] = []
            for name, why in due.items():
                if stop.is_set():
                    break
                with suppress(OSError):
                    os.unlink(name, dir_fd=folder)
                    removed.append({"name": name, "removed": now.date().isoformat(), "why": why})
            if removed:
                gone = {str(line["name"]) for line in removed}
                _rewrite(index, [*(e for e in lines if e.get("name") not in gone), *removed])
            return len(removed)
        finally:
            os.close(folder)

    def _due(self, found: list[_File], now: float) -> Iterator[tuple[str, str]]:
        """Yield the files that are to be removed if no session refers to them, each with the
        reason."""
        keep = self._retention
        too_much = sum(file.bytes for file in found) - keep.bytes
        for file in found:
            age = now - file.changed
            if age > keep.days * DAY_S:
                yield file.name, f"after {keep.days} days"
            elif too_much > 0 and age > FRESH_S:
                yield file.name, "to make room for newer ones"
            else:
                continue
            too_much -= file.bytes


class OutsideError(OSError):
    """A record names a full copy of an output that is outside the folders of outputs."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.EPERM, "not opened: outside the folder of results", str(path))


def open_full_copy(path: Path, results: Path) -> int:
    """Open the full output that a record names, to be read; the caller closes it. Blocks.

    A session may have been written by somebody else, so a record is believed only within the folder
    `results`, that of a worktree of ours of the same repository, and those of workspaces that take
    none; and no link is followed. Where it isn't there, it is looked for among those that were
    unpacked with a session from another machine. Raises OSError, OutsideError if it names another
    place.
    """
    trusted = _is_result(path, results)
    places = [path] if trusted else []
    if _OUTPUT.fullmatch(path.name):
        places.append(unpacked_copy(path))
    for place in places:
        try:
            return open_real(place, os.O_RDONLY | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except ValueError:  # a NUL or half a character: no file has such a name
            raise OutsideError(path) from None
    if not trusted:
        raise OutsideError(path)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


def unpacked_copy(path: Path) -> Path:
    """The place of a full output that another machine recorded at `path`, and that was unpacked
    here."""
    return folders().outputs / workspace_slug(path.parent) / TOOL_RESULTS / path.name


def _is_result(path: Path, results: Path) -> bool:
    """True if a path names a file in a folder of results that belongs together with `results`."""
    folder = path.parent
    if ".." in path.parts or path.name in {"", INDEX}:
        return False
    if folder == results:
        return True
    if folder.name != TOOL_RESULTS or len(folder.parents) < 2 or len(results.parents) < 2:
        return False
    if folder.parent.parent == folders().outputs:
        return True
    private = {folder.parent.name, results.parent.name} == {PRIVATE_DIR}
    return private and checkout_of(folder.parents[1]) == checkout_of(results.parents[1])


def why_missing(path: Path) -> str:
    """Explain why a full output does not exist, in a sentence for the person and for the model."""
    removed: dict[str, Any] = {}
    with suppress(OSError, HoldfastError):
        folder = private_dir(path.parent, create=False)
        try:
            index = os.open(INDEX, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        finally:
            os.close(folder)
        try:
            for line in _entries(index):
                if line.get("name") == path.name:
                    removed = line if "removed" in line else {}
        finally:
            os.close(index)
    if not removed:
        return "The full copy is gone."
    return f"The full copy was removed {removed.get('why')}, on {removed.get('removed')}."


def _line(**entry: str) -> bytes:
    return json.dumps(entry, ensure_ascii=True).encode() + b"\n"


def _entries(index: int) -> Iterator[dict[str, Any]]:
    """Yield the valid lines of an index; a torn one is skipped."""
    data = os.pread(index, _INDEX_BYTES, 0)
    for line in data.split(b"\n"):
        with suppress(ValueError, RecursionError):
            entry: object = json.loads(line)
            if isinstance(entry, dict):
                yield cast("dict[str, Any]", entry)


def _rewrite(index: int, lines: list[dict[str, Any]]) -> None:
    """Replace the lines in place: the file is held by its descriptor, not by its name."""
    old = [n for n, line in enumerate(lines) if "removed" in line][:-_REMOVED_LINES]
    dropped = set(old)
    data = b"".join(_line(**line) for n, line in enumerate(lines) if n not in dropped)
    os.ftruncate(index, 0)
    os.write(index, data)


def _files(folder: int) -> Iterator[_File]:
    """Yield the outputs in a folder: regular files only, links are not followed."""
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                state = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(state.st_mode) and entry.name.endswith(".txt"):
                    used = min(state.st_size, state.st_blocks * 512)
                    yield _File(entry.name, used, state.st_mtime)


def _named_in(paths: Iterable[Path], names: dict[str, str], stop: Event) -> set[str]:
    """Return the names that occur in the files. An unreadable file may refer to any."""
    named: set[str] = set()
    for path in paths:
        if len(named) == len(names):
            break
        try:
            with path.open("rb") as file:
                tail = b""
                while not stop.is_set() and (chunk := file.read(_CHUNK)):
                    data = tail + chunk
                    named.update(
                        name for m in _NAME.finditer(data) if (name := m[1].decode()) in names
                    )
                    tail = data[-_NAME_BYTES:]
        except FileNotFoundError:
            continue
        except OSError:
            return set(names)
    return set(names) if stop.is_set() else named
