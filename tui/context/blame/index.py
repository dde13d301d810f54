"""The steps of sessions and the answers about files, kept in the cache folder. Blocks.

A session file is read again when its size or its time of change differs, and a file's answer is
made again when any source of it does; then what it was made of, the maps between its states, is
there. Without the cache everything is made again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from tui.context.blame.steps import SessionSteps, decoded, encoded, steps_of
from tui.core.dataclass import replace
from tui.core.errors import SessionError
from tui.session.cache_database import CacheDatabase, key_of, transaction
from tui.session.catalog import ReadProgress, SessionFileState, id_of
from tui.session.reader import read

_DATABASE: Final = CacheDatabase(
    "blame.sqlite3",
    8,
    """
CREATE TABLE session(
    path BLOB PRIMARY KEY, changed INTEGER, size INTEGER, steps BLOB
) WITHOUT ROWID;
CREATE TABLE answer(file BLOB PRIMARY KEY, asked BLOB, blame BLOB, maps BLOB) WITHOUT ROWID
""",
)


def steps_in(
    cache: Path, files: Sequence[SessionFileState], progress: ReadProgress
) -> list[tuple[Path, SessionSteps | None]]:
    """The steps of session files, in their order; None for one that can't be read."""
    kept = _DATABASE.use(cache, lambda database: _cached(database, files)) or {}
    found: list[tuple[Path, SessionSteps | None]] = []
    fresh: list[tuple[bytes, int, int, bytes]] = []
    stale = sum(path not in kept for _, path, _ in files)
    for changed, path, size in files:
        steps = kept.get(path)
        if steps is None:
            progress(len(fresh), stale)
            with suppress(SessionError, OSError):
                loaded = read(Path(path))
                named = replace(loaded.header, id=id_of(Path(path)))  # whatever it says it is
                steps = steps_of(replace(loaded, header=named))
                with suppress(UnicodeEncodeError):  # odd bytes in a path: read again next time
                    data = encoded(steps)
                    steps = decoded(data)
                    fresh.append((key_of(path), changed, size, data))
        found.append((Path(path), steps))
    if fresh:
        progress(stale, stale)
        _DATABASE.use(cache, lambda database: _keep(database, fresh))
    return found


def _cached(
    database: sqlite3.Connection, files: Sequence[SessionFileState]
) -> dict[str, SessionSteps]:
    query = "SELECT steps FROM session WHERE path = ? AND changed = ? AND size = ?"
    kept: dict[str, SessionSteps] = {}
    for changed, path, size in files:
        row = database.execute(query, (key_of(path), changed, size)).fetchone()
        if row is not None:
            kept[path] = decoded(row[0])
    return kept


def _keep(database: sqlite3.Connection, fresh: Sequence[tuple[bytes, int, int, bytes]]) -> None:
    with suppress(sqlite3.OperationalError), transaction(database):
        database.executemany("INSERT OR REPLACE INTO session VALUES (?, ?, ?, ?)", fresh)


class CachedAnswer(NamedTuple):
    """The hash of all that a file's answer was made of; the answer, and the maps between the
    states."""

    asked: bytes
    blame: bytes
    maps: bytes


def known_answer(cache: Path, file: str) -> CachedAnswer | None:
    """The answer that was kept for a file."""

    def fetch(database: sqlite3.Connection) -> CachedAnswer | None:
        query = "SELECT asked, blame, maps FROM answer WHERE file = ?"
        row = database.execute(query, (key_of(file),)).fetchone()
        return None if row is None else CachedAnswer(*map(bytes, row))

    return _DATABASE.use(cache, fetch)


def keep_answer(cache: Path, file: str, answer: CachedAnswer) -> None:
    """Keep the newest answer for a file."""

    def put(database: sqlite3.Connection) -> None:
        with suppress(sqlite3.OperationalError), transaction(database):
            row = (key_of(file), *answer)
            database.execute("INSERT OR REPLACE INTO answer VALUES (?, ?, ?, ?)", row)

    _DATABASE.use(cache, put)
