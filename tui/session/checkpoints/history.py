"""The states that one path had in the checkpoints of a workspace. Blocks."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from typing import Final

from tui.core.dataclass import dataclass, field
from tui.session.checkpoints.entries import COLUMNS, Kind, PathEntry, entry_of

_GONE_MAX: Final = 200
"""Paths that went with one checkpoint, of which more would be no rename."""


@dataclass(frozen=True, slots=True)
class PathHistory:
    """The states of a path by the numbers of the checkpoints from which on it had them; None where
    it was gone. `store` begins the ids of its checkpoints, `first` is the oldest that is kept, and
    `adopted` are those of other machines, by their ids. `times` are in seconds since the epoch,
    `last` is that of the newest checkpoint, which holds the path or not; 0 for none."""

    store: str = ""
    first: int = 0
    states: Mapping[int, PathEntry | None] = field(default_factory=dict[int, PathEntry | None])
    times: Mapping[int, float] = field(default_factory=dict[int, float])
    adopted: Mapping[str, int] = field(default_factory=dict[str, int])
    last: float = 0.0
    """When the newest of all checkpoints was taken, which may be without the path; 0 for none."""

    def number(self, checkpoint: str) -> int | None:
        """The number that a checkpoint has here, whether it is kept or not; None for another
        store's."""
        store, _, n = checkpoint.rpartition("-")
        if store == self.store and n.isdecimal():
            return int(n[:12])
        return self.adopted.get(checkpoint)


def path_history(db: sqlite3.Connection, path: str) -> PathHistory:
    """Read the history of a path below the workspace."""
    store, first = db.execute("SELECT id, first FROM about").fetchone()
    rows = db.execute(
        f"SELECT since, until, {COLUMNS} FROM entry WHERE path = ? ORDER BY since",  # noqa: S608 - our own column names
        (os.fsencode(path),),
    ).fetchall()
    states: dict[int, PathEntry | None] = {}
    for since, until, *row in rows:
        states[since] = entry_of(row)
        if until is not None:
            states[until] = None
    # the end of one state is the begin of the next, which was put last or comes again here
    for since, _, *row in rows:
        states[since] = entry_of(row)
    times = dict(db.execute("SELECT n, time FROM checkpoint").fetchall()) if states else {}
    adopted: dict[str, int] = {}
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'adopted'").fetchone():
        adopted = dict(db.execute("SELECT id, n FROM adopted").fetchall())
    (last,) = db.execute("SELECT max(time) FROM checkpoint").fetchone()
    return PathHistory(store, first, dict(sorted(states.items())), times, adopted, last or 0.0)


def newest_files(db: sqlite3.Connection) -> list[tuple[str, PathEntry]]:
    """The files of the newest checkpoint."""
    rows = db.execute(
        f"SELECT path, {COLUMNS} FROM entry WHERE until IS NULL AND kind = ?",  # noqa: S608 - our own column names
        (int(Kind.FILE),),
    )
    return [(os.fsdecode(path), entry_of(row)) for path, *row in rows]


def gone_with(db: sqlite3.Connection, n: int) -> list[tuple[str, PathEntry]]:
    """The files that were there before a checkpoint and not in it."""
    rows = db.execute(
        f"SELECT path, {COLUMNS} FROM entry AS old WHERE until = ?1 AND kind = ?2"  # noqa: S608 - our own column names
        " AND NOT EXISTS (SELECT 1 FROM entry WHERE path = old.path AND since = ?1) LIMIT ?3",
        (n, int(Kind.FILE), _GONE_MAX),
    )
    return [(os.fsdecode(path), entry_of(row)) for path, *row in rows]
