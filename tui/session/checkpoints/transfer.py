"""Checkpoints on their way to another machine: read from one store, added to another. Everything
blocks.

They travel as `StoredState`s: the first has all paths, each later one what differs from the one
before. Added to a store they become states of its workspace that lie in the past: compared and
restored as its own, under the ids they came with. Behind them stands what the workspace had before,
so that a session of the place sees no change. What comes from elsewhere may be made up: it may name
only paths that the file tools could write, and no permission but the usual nine.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from tui.core.dataclass import dataclass, replace
from tui.core.late_pattern import late_pattern
from tui.core.messages import object_of
from tui.session.checkpoints.entries import COLUMNS, NEVER, Kind, PathEntry, entry_of

_PERMISSIONS: Final = 0o777
_SIZE_MAX: Final = 1 << 62
_ID: Final = late_pattern(r"[0-9a-f]{1,64}-[0-9]{1,12}")


@dataclass(frozen=True, slots=True)
class StoredState:
    """A checkpoint: its id, and the entries that differ from the one before; None is nothing there.
    Paths are bytes below the workspace. The first of a store is `whole`: it has all entries."""

    id: str
    entries: Mapping[bytes, PathEntry | None]
    whole: bool = False

    def to_json(self) -> dict[str, Any]:
        entries = {
            os.fsdecode(path): None
            if entry is None
            else [
                int(entry.kind),
                entry.mode,
                entry.size,
                entry.digest.hex() if entry.digest is not None else None,
                bool(entry.ignored),
            ]
            for path, entry in self.entries.items()
        }
        return {"checkpoint": self.id, "whole": self.whole, "entries": entries}

    @classmethod
    def from_json(cls, value: object) -> StoredState:
        """The state that `to_json` gave. Raises ValueError for anything else."""
        fields = object_of(value)
        match fields.get("checkpoint"), fields.get("whole"), fields.get("entries"):
            case str(id_), bool(whole), dict() if _ID.fullmatch(id_):
                entries = object_of(fields["entries"]).items()
                read = {os.fsencode(name): _read(entry) for name, entry in entries}
                return cls(id_, read, whole)
            case _:
                raise ValueError("no checkpoint")

    def without(self, paths: Collection[bytes]) -> StoredState:
        """Return the state without some paths."""
        if not paths:
            return self
        kept = {path: entry for path, entry in self.entries.items() if path not in paths}
        return replace(self, entries=kept)

    def refused(self, guarded: Collection[str]) -> list[bytes]:
        """The paths that no file tool could write: outside the workspace, in a `guarded` folder. A
        folder of which only that it is there is known, such as a nested `.git`, isn't one."""
        return [
            path
            for path, entry in self.entries.items()
            if not _is_inside(path)
            or (entry is not None and entry.kind is not Kind.OMITTED and _is_in(path, guarded))
        ]


def _read(entry: object) -> PathEntry | None:
    match entry:
        case None:
            return None
        case [int(kind), int(mode), int(size), str() | None as digest, bool(ignored)] if (
            0 <= size < _SIZE_MAX and (digest is None or kind in {Kind.FILE, Kind.LINK})
        ):
            told = None if digest is None else bytes.fromhex(digest)
            return PathEntry(Kind(kind), mode & _PERMISSIONS, size, NEVER, told, ignored)
        case _:
            raise ValueError("no entry")


def _is_inside(path: bytes) -> bool:
    parts = path.split(b"/")
    return all(part not in {b"", b".", b".."} and b"\0" not in part for part in parts)


def _is_in(path: bytes, guarded: Collection[str]) -> bool:
    return any(part.lower() in guarded for part in os.fsdecode(path).split("/"))


def adopted_as(db: sqlite3.Connection, checkpoint: str) -> int | None:
    """The number that a checkpoint from elsewhere has here; None where it isn't here."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'adopted'").fetchone():
        return None
    row = db.execute("SELECT n FROM adopted WHERE id = ?", (checkpoint,)).fetchone()
    return None if row is None else int(row[0])


def states(db: sqlite3.Connection, numbered: Iterable[tuple[int, str]]) -> Iterator[StoredState]:
    """Yield the checkpoints with these numbers and ids, in their order."""
    before: int | None = None
    for n, id_ in sorted(numbered):
        yield StoredState(id_, dict(_differing(db, before, n)), before is None)
        before = n


def _differing(
    db: sqlite3.Connection, before: int | None, n: int
) -> Iterator[tuple[bytes, PathEntry | None]]:
    now = f"SELECT path, {COLUMNS} FROM entry WHERE since <= ?1 AND (until IS NULL OR until > ?1)"  # noqa: S608 - our own column names
    if before is not None:
        now += " AND since > ?2"
        gone = (
            "SELECT path FROM entry WHERE until > ?1 AND until <= ?2 EXCEPT"
            " SELECT path FROM entry WHERE since <= ?2 AND (until IS NULL OR until > ?2)"
        )
        for (path,) in db.execute(gone, (before, n)):
            yield path, None
    for path, *row in db.execute(now, (n,) if before is None else (n, before)):
        yield path, entry_of(row)


def adopt(
    db: sqlite3.Connection,
    moved: Iterable[StoredState],
    is_here: Callable[[str], bool],
    last: int,
    guarded: Collection[str],
) -> int:
    """Add checkpoints from elsewhere behind the `last` one, and the state of that one behind them.
    Returns the number of the last one then. Those that are here already are left out. What the
    workspace has in `guarded` folders, it has in all of them: it isn't theirs to take away."""
    db.execute("CREATE TABLE IF NOT EXISTS adopted (id TEXT PRIMARY KEY, n INTEGER NOT NULL)")
    rows = db.execute(f"SELECT path, {COLUMNS} FROM entry WHERE until IS NULL")  # noqa: S608 - our own column names
    own = {path: entry_of(row) for path, *row in rows}
    kept = {
        path: entry
        for path, entry in own.items()
        if entry.kind is not Kind.OMITTED and _is_in(path, guarded)
    }
    there, state, n = dict(own), dict[bytes, PathEntry](), last
    for one in moved:
        if one.whole:
            state.clear()
        for path, entry in one.entries.items():
            if entry is None:
                state.pop(path, None)
            else:
                state[path] = entry
        if is_here(one.id):
            continue
        n += 1
        _become(db, there, state | kept, n)
        db.execute("INSERT OR REPLACE INTO adopted VALUES (?, ?)", (one.id, n))
    if n > last:
        n += 1
        _become(db, there, own, n)
    return n


def _become(
    db: sqlite3.Connection,
    there: dict[bytes, PathEntry],
    state: Mapping[bytes, PathEntry],
    n: int,
) -> None:
    """Make checkpoint `n`, at which `there` becomes `state`."""
    gone = there.keys() - state.keys()
    new = {path: entry for path, entry in state.items() if there.get(path) != entry}
    db.execute("INSERT INTO checkpoint VALUES (?, ?)", (n, time.time()))
    db.executemany(
        "UPDATE entry SET until = ? WHERE path = ? AND until IS NULL",
        [(n, path) for path in (*gone, *(path for path in new if path in there))],
    )
    db.executemany(
        "INSERT INTO entry VALUES (?, ?, NULL, ?, ?, ?, ?, ?, ?)",
        [(path, n, *entry) for path, entry in new.items()],
    )
    for path in gone:
        del there[path]
    there.update(new)
