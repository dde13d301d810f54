"""The files of this machine that tell of its sessions: entries of background sessions, locks, and
the newest saved sessions.

A scan reads what has changed since the last one: it looks at each folder, lists those that changed,
and reads no session again whose summary is in the index. Everything here blocks; one thread at a
time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from tui.app import background
from tui.app.background import BackgroundSession
from tui.core.git.branch import branch_of
from tui.core.paths import Folders
from tui.core.process_birth import born
from tui.desk.rows import OpenFile
from tui.session import catalog, index
from tui.session.catalog import SessionFileState, SessionSummary
from tui.session.lock import holder

RECENT: Final = timedelta(days=14)
"""Time for which a saved session is listed."""
MOST_SAVED: Final = 300
"""The number of saved sessions that are listed."""
_LOCK: Final = ".jsonl.lock"
_LOCKS_AGAIN_S: Final = 5.0
"""Seconds until locks are tried again that nobody held."""
_BRANCHES_AGAIN_S: Final = 30.0
_GROWS_S: Final = 30.0
"""Seconds for which a file that was written counts as one that grows."""
_SAME_TICK_NS: Final = 1_000_000_000
"""A folder that was changed so short a time ago may change again without a trace in its time."""


class FilesSeen(msgspec.Struct, frozen=True):
    """The result of a scan, by the ids of the sessions; `branches` by folder."""

    entries: Mapping[str, BackgroundSession] = {}
    locks: Mapping[str, OpenFile] = {}
    saved: Mapping[str, SessionSummary] = {}
    branches: Mapping[str, str] = {}


class _Folder(msgspec.Struct):
    """A folder of sessions as last listed; `locks` are the sessions' files."""

    changed: int = -1
    files: dict[str, SessionFileState] = {}
    locks: list[str] = []


class DeskFiles:
    """The files of one machine's sessions."""

    def __init__(self, home: Folders) -> None:
        self._home = home
        self._folders: dict[str, _Folder] = {}
        self._root_changed = -1
        self._served: set[str] = set()
        self._entries: dict[str, tuple[tuple[int, int], BackgroundSession | None]] = {}
        self._entries_changed = -1
        self._held: dict[str, OpenFile] = {}
        self._locks_at = float("-inf")
        self._chosen: list[SessionFileState] = []
        self._saved: dict[str, SessionSummary] = {}
        self._branches: dict[str, str] = {}
        self._branches_at = float("-inf")

    def scan(self, now: datetime, monotonic: float, served: Collection[str]) -> FilesSeen:
        """Look what has changed. Sessions in `served` tell about themselves: their files are left
        alone."""
        self._leave(served)
        entries = self._read_entries(now, served)
        relisted = self._list_folders()
        self._try_locks(now, monotonic, served, again=relisted)
        if relisted or not self._saved:
            self._summarize(now, served)
        folders = {one.cwd for one in (*entries.values(), *self._saved.values())}
        if monotonic - self._branches_at >= _BRANCHES_AGAIN_S:
            self._branches_at = monotonic
            self._branches.clear()
        for cwd in folders - self._branches.keys():
            self._branches[cwd] = branch_of(Path(cwd)) if cwd else ""
        return FilesSeen(entries, dict(self._held), dict(self._saved), dict(self._branches))

    def _leave(self, served: Collection[str]) -> None:
        """Read again what those say who told about themselves until now."""
        ended, self._served = self._served - set(served), set(served)
        if ended:
            self._entries_changed = -2
            for id_ in ended:
                self._entries.pop(id_, None)
            for folder in self._folders.values():
                if not ended.isdisjoint(folder.files):
                    folder.changed = -2

    # Entries of background sessions

    def _read_entries(self, now: datetime, served: Collection[str]) -> dict[str, BackgroundSession]:
        folder = background.folder_of(self._home)
        changed = _changed(folder)
        if changed != self._entries_changed:
            self._entries_changed = _steady(changed)
            names = {item.name: item for item in _items(folder) if item.name.endswith(".json")}
            for name in self._entries.keys() - {name[:-5] for name in names}:
                del self._entries[name]
            for name, item in names.items():
                self._read_entry(name[:-5], item, served)
        known = {id_: one for id_, (_, one) in self._entries.items() if one is not None}
        if any(_killed(one) for id_, one in known.items() if id_ not in served):
            every = background.sessions(self._home, now)  # notes it in their entries
            known = {one.id: one for one in every}
        return known

    def _read_entry(self, id_: str, item: os.DirEntry[str], served: Collection[str]) -> None:
        before = self._entries.get(id_)
        if before is not None and id_ in served:
            return
        try:
            state = item.stat(follow_symlinks=False)
        except OSError:
            return
        mark = state.st_mtime_ns, state.st_ino
        if before is None or before[0] != mark:
            self._entries[id_] = mark, background.entry(self._home, id_)

    # Folders of sessions

    def _list_folders(self) -> bool:
        """List the folders that have changed. True if there are any."""
        root = self._home.sessions
        changed = _changed(root)
        if changed != self._root_changed:
            self._root_changed = _steady(changed)
            there = {item.path for item in _items(root) if item.is_dir()}
            self._folders = {path: self._folders.get(path) or _Folder() for path in sorted(there)}
        relisted = False
        for path, folder in self._folders.items():
            changed = _changed(Path(path))
            if changed != folder.changed:
                folder.changed = _steady(changed)
                self._list_folder(path, folder)
                relisted = True
        return relisted

    @staticmethod
    def _list_folder(path: str, folder: _Folder) -> None:
        states = catalog.scan_folder(Path(path))
        folder.files = {catalog.id_of(Path(one[1])): one for one in states}
        folder.locks = [
            item.path.removesuffix(".lock")
            for item in _items(Path(path))
            if item.name.endswith(_LOCK) and not item.name.startswith(".")
        ]

    def _try_locks(
        self, now: datetime, monotonic: float, served: Collection[str], *, again: bool
    ) -> None:
        """Find the sessions that some process writes, without those that tell it themselves."""
        if again or monotonic - self._locks_at >= _LOCKS_AGAIN_S:
            self._locks_at = monotonic
            paths: Iterable[str] = (p for one in self._folders.values() for p in one.locks)
        else:
            paths = [one.path for one in self._held.values()]
        held: dict[str, OpenFile] = {}
        for path in paths:
            id_ = catalog.id_of(Path(path))
            if id_ in served or (by := holder(Path(path))) is None:
                continue
            before = self._held.get(id_)
            since = before.since if before is not None else monotonic
            held[id_] = OpenFile(path, by, _grows(path, now), since)
        self._held = held

    def _summarize(self, now: datetime, served: Collection[str]) -> None:
        """Take the newest sessions' summaries from the index."""
        oldest = int((now - RECENT).timestamp() * 1e9)
        every = (one for folder in self._folders.values() for one in folder.files.values())
        chosen = sorted((one for one in every if one[0] >= oldest), reverse=True)[:MOST_SAVED]
        if chosen == self._chosen:
            return
        self._chosen = chosen
        active = {id_ for id_ in (*served, *self._held) if id_ in self._saved}
        wanted = [one for one in chosen if catalog.id_of(Path(one[1])) not in active]
        every_summary = index.entries(self._home.cache, wanted)
        summaries = {catalog.id_of(Path(one.path)): one for one in every_summary}
        self._saved = {id_: self._saved[id_] for id_ in active} | summaries


def _killed(one: BackgroundSession) -> bool:
    return one.running and one.here and born(one.pid) != one.born


def _changed(folder: Path) -> int:
    """The time of change of a folder in nanoseconds, -1 where there is none."""
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return -1


def _steady(changed: int) -> int:
    """The time of change as it is compared the next time: one of just now doesn't count yet."""
    return changed if abs(time.time_ns() - changed) > _SAME_TICK_NS else -2


def _items(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as items:
            return [*items]
    except OSError:
        return []


def _grows(path: str, now: datetime) -> bool:
    try:
        return now.timestamp() - Path(path).stat().st_mtime < _GROWS_S
    except OSError:
        return False
