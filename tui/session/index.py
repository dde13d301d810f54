"""The index: a cache of what lists show of the session files, in SQLite.

It holds nothing that is not in the files. A file is read again when its size or its time of
change differs; an index that is missing, of another version, or broken is rebuilt. If it cannot
be used at all (no SQLite, a disk that cannot be written), everything still works, but slower.
Everything blocks. Texts are searched by `tui.session.search`.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tui.core.paths import Folders
from tui.session.cache_database import CacheDatabase, emptied, key_of, sound, transaction
from tui.session.catalog import ReadProgress, SessionFileState, SessionSummary, describe, scan

NAME: Final = "sessions.sqlite3"

_BATCH = 200  # files read between two commits, so that a long build is not in vain

_DATABASE: Final = CacheDatabase(
    NAME,
    4,
    """
CREATE TABLE session(
    path BLOB PRIMARY KEY, changed INTEGER, size INTEGER, id TEXT, title TEXT, cwd TEXT,
    created TEXT, updated TEXT, messages INTEGER, tokens INTEGER, state TEXT, problems TEXT,
    profile TEXT
) WITHOUT ROWID
""",
)
_ENTRY = "id, path, title, cwd, created, updated, messages, tokens, state, problems, profile"
_PUT = "INSERT OR REPLACE INTO session VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"


def list_sessions(
    folders: Folders, workspace: Path | None = None, *, progress: ReadProgress | None = None
) -> list[SessionSummary]:
    """The sessions of a workspace, or all of them, the one used last first."""
    return entries(folders.cache, scan(folders, workspace), progress)


def entries(
    cache: Path, found: Sequence[SessionFileState], progress: ReadProgress | None = None
) -> list[SessionSummary]:
    """The summaries of these files, in their order. `cache` is the folder of the index."""
    tell = progress or _nobody
    indexed = _DATABASE.use(cache, lambda index: _entries(index, found, tell))
    if indexed is not None:
        return indexed
    return [describe(Path(path)) for path in _counted(found, tell)]


def titles(cache: Path, found: Sequence[SessionFileState]) -> dict[str, str]:
    """The titles of these files by their paths; other files in the index are left alone."""

    def known(index: sqlite3.Connection) -> dict[str, str]:
        query = "SELECT title FROM session WHERE path = ? AND changed = ? AND size = ?"
        shown: dict[str, str] = {}
        fresh: list[tuple[object, ...]] = []
        for one in found:
            changed, path, size = one
            row = index.execute(query, (key_of(path), changed, size)).fetchone()
            if row is None:
                entry = describe(Path(path))
                row = (entry.title,)
                fresh += [_row(one, entry)] if entry.state != "unreadable" else []
            shown[path] = row[0]
        if fresh:
            with suppress(sqlite3.OperationalError), transaction(index):
                index.executemany(_PUT, fresh)
        return shown

    indexed = _DATABASE.use(cache, known)
    return (
        {path: describe(Path(path)).title for _, path, _ in found} if indexed is None else indexed
    )


def forget(cache: Path, paths: Sequence[str]) -> None:
    """Leave these files out of the index, and nothing of them in its file."""

    def without(index: sqlite3.Connection) -> bool:
        with transaction(index):
            keys = [(key_of(path),) for path in paths]
            index.executemany("DELETE FROM session WHERE path = ?", keys)
        emptied(index)
        return True

    if (cache / NAME).exists() and not _DATABASE.use(cache, without):
        _DATABASE.remove(cache)


def _entries(
    index: sqlite3.Connection, found: Sequence[SessionFileState], progress: ReadProgress
) -> list[SessionSummary]:
    known: dict[str, tuple[int, int]] = {}
    shown: dict[str, SessionSummary] = {}
    for changed, size, id_, key, *row, problems, profile in index.execute(
        f"SELECT changed, size, {_ENTRY} FROM session"  # noqa: S608 - our own column names
    ):
        path = os.fsdecode(key)
        known[path] = changed, size
        codes = tuple(json.loads(problems)) if problems else ()
        shown[path] = SessionSummary(id_, path, *row, problems=codes, profile=profile)
    stale = [one for one in found if known.get(one[1]) != (one[0], one[2])]
    for batch in _batches(stale, progress):
        fresh = [(one, describe(Path(one[1]))) for one in batch]
        shown |= {one[1]: entry for one, entry in fresh}
        kept = [_row(one, entry) for one, entry in fresh if entry.state != "unreadable"]
        with suppress(sqlite3.OperationalError), transaction(index):
            index.executemany(_PUT, kept)
    if deleted := _gone(known, found):
        with suppress(sqlite3.OperationalError), transaction(index):
            index.executemany("DELETE FROM session WHERE path = ?", deleted)
    return [shown[path] for _, path, _ in found]


def _row(one: SessionFileState, entry: SessionSummary) -> tuple[object, ...]:
    changed, path, size = one
    problems = json.dumps(entry.problems) if entry.problems else ""
    return (
        key_of(path), changed, size, sound(entry.id), sound(entry.title), sound(entry.cwd),
        sound(entry.created), sound(entry.updated), entry.messages, entry.tokens, entry.state,
        problems, sound(entry.profile),
    )  # fmt: skip


def _gone(
    known: dict[str, tuple[int, int]], found: Sequence[SessionFileState]
) -> list[tuple[bytes]]:
    """The indexed files that do not exist any more."""
    there = {path for _, path, _ in found}
    deleted = [path for path in known if path not in there and not Path(path).exists()]
    return [(key_of(path),) for path in deleted]


def _batches(
    stale: list[SessionFileState], progress: ReadProgress
) -> Iterator[list[SessionFileState]]:
    for start in range(0, len(stale), _BATCH):
        progress(start, len(stale))
        yield stale[start : start + _BATCH]
    if stale:
        progress(len(stale), len(stale))


def _counted(found: Sequence[SessionFileState], progress: ReadProgress) -> Iterator[str]:
    for number, (_, path, _) in enumerate(found):
        progress(number, len(found))
        yield path
    progress(len(found), len(found))


def _nobody(done: int, of: int) -> None:
    """For callers that do not want to know the progress."""
