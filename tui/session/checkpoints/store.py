"""The store of checkpoints: one SQLite file for each workspace, in the program's own data folder.

A name is stored once for each state that it had, with the numbers of the checkpoints between which
it had it; so a checkpoint costs what has changed, and two are compared by their numbers. Content is
stored once for all names, by its SHA-256. It is safe to open the same file in several programs.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
import time
import zlib
from collections.abc import Collection, Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from stat import S_IMODE
from threading import Event, Lock
from typing import Final

from tui.core.files import read_small
from tui.core.paths import Folders, workspace_slug
from tui.core.real_folders import NOT_THERE, RealFolders
from tui.session.checkpoints import transfer
from tui.session.checkpoints.entries import (
    COLUMNS,
    FILE_BYTES_MAX,
    NEVER,
    RACY_NS,
    Change,
    Checkpoint,
    CheckpointError,
    CheckpointsDamagedError,
    CheckpointStoppedError,
    Kind,
    PathEntry,
    entry_of,
    stamp_of,
)
from tui.session.checkpoints.history import PathHistory, gone_with, newest_files, path_history
from tui.session.checkpoints.known import KnownPaths
from tui.session.checkpoints.scan import ScannedPath, scan
from tui.session.checkpoints.transfer import StoredState

IGNORED_FILE_BYTES_MAX: Final = 1_000_000
"""Nor that of a larger one that git ignores."""
FREE_BYTES_MIN: Final = 100_000_000
"""Room that is left on the disk for sessions and for the person's own work. Without it, no contents
are stored."""
_BUSY_S: Final = 60.0
_DAY_S: Final = 86_400.0
_VERSION: Final = 1
_TABLES: Final = """
CREATE TABLE about (id TEXT NOT NULL, first INTEGER NOT NULL, pruned REAL NOT NULL);
CREATE TABLE checkpoint (n INTEGER PRIMARY KEY, time REAL NOT NULL);
CREATE TABLE entry (
    path BLOB NOT NULL, since INTEGER NOT NULL, until INTEGER, kind INTEGER NOT NULL,
    mode INTEGER NOT NULL, size INTEGER NOT NULL, stamp INTEGER NOT NULL, digest BLOB,
    ignored INTEGER NOT NULL
);
CREATE UNIQUE INDEX entry_at ON entry (path, since);
CREATE INDEX entry_since ON entry (since);
CREATE INDEX entry_until ON entry (until);
CREATE TABLE content (digest BLOB PRIMARY KEY, packed INTEGER NOT NULL, data BLOB NOT NULL)
"""
_NAMED: Final = 50
"""Paths that a checkpoint names."""


class CheckpointStore:
    """The checkpoints of one workspace. Safe to use from several threads; everything blocks."""

    def __init__(
        self,
        file: Path,
        root: Path,
        *,
        skip: Collection[Path] = (),
        keep_days: int = 30,
        keep_bytes: int = 2 * 1024**3,
    ) -> None:
        """`file` is made with the first checkpoint. `skip` are folders in the workspace that are
        none of it: the program's own. `prune` goes by `keep_days` and `keep_bytes`."""
        self._file = file
        self._root = root
        self._skip = skip
        self._keep_days = keep_days
        self._keep_bytes = keep_bytes
        self._stop = Event()
        self._lock = Lock()
        self._db: sqlite3.Connection | None = None
        self._known = KnownPaths()
        self._id: str = ""
        self._n = 0

    @property
    def root(self) -> Path:
        return self._root

    def take(self) -> Checkpoint:
        """Store the state of the workspace now. Raises CheckpointError."""
        with self._transaction(write=True) as db:
            self._sync(db)
            entries, missing, touched, skipped = self._read_changes(db)
            checkpoint = replace(self._put(db, entries, missing), skipped=skipped)
            db.executemany(
                "UPDATE entry SET stamp = ? WHERE path = ? AND until IS NULL",
                [(entry.stamp, path) for path, entry in touched.items()],
            )
        # Only what is committed counts.
        for path, entry in (entries | touched).items():
            self._known.put(path, entry)
        for path in missing:
            self._known.drop(path)
        self._n = _number(checkpoint.id)
        return checkpoint

    def difference(self, first: str, second: str) -> list[Change]:
        """List the differences between two checkpoints, by path. Raises CheckpointError where one
        of them isn't stored any more."""
        with self._transaction() as db:
            a, b = self._stored(db, first), self._stored(db, second)
            low, high = min(a, b), max(a, b)
            paths = db.execute(
                "SELECT path FROM entry WHERE since > ?1 AND since <= ?2"
                " UNION SELECT path FROM entry WHERE until > ?1 AND until <= ?2",
                (low, high),
            ).fetchall()
            states = ((path, _at(db, path, a), _at(db, path, b)) for (path,) in sorted(paths))
            return [
                Change(self._root / os.fsdecode(path), old, new)
                for path, old, new in states
                if not (new.same(old) if new else old is None)
            ]

    def omitted(self) -> list[Path]:
        """The folders of the newest state whose files aren't stored, and the files that aren't."""
        with self._transaction() as db:
            self._sync(db)
            return [
                self._root / os.fsdecode(path)
                for path, entry in sorted(self._known.below(b""))
                if not entry.stored
            ]

    def content(self, digest: bytes) -> bytes:
        """The content that has a digest. Raises CheckpointError where it is gone or damaged."""
        with self._transaction() as db:
            row = db.execute(
                "SELECT packed, data FROM content WHERE digest = ?", (digest,)
            ).fetchone()
        with suppress(zlib.error):
            data = b"" if row is None else zlib.decompress(row[1]) if row[0] else row[1]
            if sha256(data).digest() == digest:
                return data
        raise CheckpointError("The stored copy is damaged or gone.")

    def states(self, checkpoints: Iterable[str]) -> list[StoredState]:
        """Return those of these checkpoints that are stored, oldest first, to be added to the store
        of another machine. Raises CheckpointError where there is no store, or a damaged one."""
        with self._transaction() as db:
            numbered: dict[int, str] = {}
            for id_ in checkpoints:
                with suppress(CheckpointError):
                    numbered.setdefault(self._stored(db, id_), id_)
            return list(transfer.states(db, numbered.items()))

    def history(self, path: str) -> PathHistory:
        """The states that a path below the workspace had. Raises CheckpointError where there is no
        store, or a damaged one."""
        with self._transaction() as db:
            return path_history(db, path)

    def newest_files(self) -> list[tuple[str, PathEntry]]:
        """The files of the newest checkpoint, by their paths. Raises CheckpointError."""
        with self._transaction() as db:
            return newest_files(db)

    def gone_with(self, n: int) -> list[tuple[str, PathEntry]]:
        """The files, by their paths, that were gone with the checkpoint of a number. Raises
        CheckpointError."""
        with self._transaction() as db:
            return gone_with(db, n)

    def holds(self, checkpoints: Iterable[str]) -> set[str]:
        """Return the checkpoints among these that are stored. Raises CheckpointError where there is
        no store, or a damaged one."""
        with self._transaction() as db:
            return {id_ for id_ in checkpoints if self._is_stored(db, id_)}

    def adopt(
        self, moved: Iterable[StoredState], contents: Iterable[bytes], guarded: Collection[str]
    ) -> str:
        """Add checkpoints of another machine as past states of this workspace; `contents` are of
        their files and links. What is in `guarded` folders here stays as it is. Returns the id of
        the state of the workspace now. Raises CheckpointError; then none is added."""
        self.take()
        with self._transaction(write=True) as db:
            self._sync(db)
            for data in contents:
                _store(db, data)
            here = partial(self._is_stored, db)
            last = transfer.adopt(db, moved, here, self._last(db), guarded)
            return f"{self._id}-{last}"

    def prune(self) -> None:
        """Drop checkpoints that are too old or too many, once a day. Raises CheckpointError."""
        with self._transaction(write=True) as db:
            pruned, first = db.execute("SELECT pruned, first FROM about").fetchone()
            now, last = time.time(), self._last(db)
            size = _bytes(db)
            if now - pruned < _DAY_S and size <= self._keep_bytes:
                return
            limit = now - self._keep_days * _DAY_S
            (old,) = db.execute("SELECT max(n) FROM checkpoint WHERE time < ?", (limit,)).fetchone()
            first = max(first, min(old or 0, last))
            _drop_before(db, first)
            while _bytes(db) > self._keep_bytes and first < last:
                first += max(1, (last - first) // 4)
                _drop_before(db, first)
            db.execute("UPDATE about SET pruned = ?, first = ?", (now, first))
        with self._transaction() as db:
            db.execute("PRAGMA incremental_vacuum").fetchall()

    def stop(self) -> None:
        """Let a checkpoint that is being made end without one."""
        self._stop.set()

    def close(self) -> None:
        self.stop()
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    @contextmanager
    def _transaction(self, *, write: bool = False) -> Generator[sqlite3.Connection]:
        """The open file. What is wrong with it is a CheckpointError; a damaged one is put aside."""
        with self._lock:
            if not write and self._db is None and not self._file.exists():
                raise CheckpointError("Its checkpoint isn't stored any more.")
            try:
                db = self._db = self._db or _opened(self._file)
                db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                try:
                    yield db
                except BaseException:
                    with suppress(sqlite3.Error):
                        db.execute("ROLLBACK")
                        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()  # gives room back
                    raise
                db.execute("COMMIT")
            except sqlite3.OperationalError as error:
                raise CheckpointError(f"Can't use {self._file}: {error}.") from error
            except sqlite3.DatabaseError as error:
                self._put_aside()
                raise CheckpointsDamagedError(
                    f"The checkpoints in {self._file} are damaged ({error}); a new file is begun."
                ) from error
            except OSError as error:
                raise CheckpointError(f"Can't use {self._file}: {error.strerror}.") from error

    def _put_aside(self) -> None:
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()
        self._db, self._known, self._id, self._n = None, KnownPaths(), "", 0
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                Path(f"{self._file}{suffix}").rename(f"{self._file}.damaged{suffix}")

    def _sync(self, db: sqlite3.Connection) -> None:
        """Learn what other programs have stored meanwhile."""
        (id_,) = db.execute("SELECT id FROM about").fetchone()
        if id_ != self._id:
            self._id, self._n, self._known = id_, 0, KnownPaths()
        last = self._last(db)
        if last == self._n:
            return
        for (path,) in db.execute("SELECT path FROM entry WHERE until > ?", (self._n,)):
            self._known.drop(path)
        new = f"SELECT path, {COLUMNS} FROM entry WHERE since > ? AND until IS NULL"  # noqa: S608 - our own column names
        for path, *row in db.execute(new, (self._n,)):
            self._known.put(path, entry_of(row))
        self._n = last

    def _read_changes(
        self, db: sqlite3.Connection
    ) -> tuple[dict[bytes, PathEntry], set[bytes], dict[bytes, PathEntry], int]:
        """Return new or changed entries, missing paths, entries of which only the times differ, and
        the number of files there was no room for. Contents are stored along the way, the small ones
        first: where the disk is almost full, the most files are."""
        room, skipped = self._room(), 0
        result = scan(self._root, self._known, self._skip, self._stop)
        entries: dict[bytes, PathEntry] = {}
        touched: dict[bytes, PathEntry] = {}
        with RealFolders(self._root) as folders:
            for path, scanned in sorted(result.found.items(), key=_small_first):
                if self._stop.is_set():
                    raise CheckpointStoppedError("The program ends.")
                old = self._known.get(path)
                entry = self._read(db, folders, path, scanned, room)
                if entry is not None and entry.digest is not None:
                    room -= entry.size
                elif entry is not None and scanned.kind is Kind.FILE and entry.stamp == NEVER:
                    skipped += 1
                if entry is None:
                    result.missing.update({path} if old else ())
                elif old is not None and old.same(entry):
                    touched[path] = entry
                else:
                    entries[path] = entry
        return entries, result.missing, touched, skipped

    def _room(self) -> int:
        """Return how many bytes may be stored now: each is written twice, to the log and to the
        file."""
        return max(0, shutil.disk_usage(self._file.parent).free - FREE_BYTES_MIN) // 2

    def _read(
        self,
        db: sqlite3.Connection,
        folders: RealFolders,
        path: bytes,
        found: ScannedPath,
        room: int,
    ) -> PathEntry | None:
        """Make the entry of a path and store its content if there is `room`; None where the path is
        gone by now."""
        state, kind, data = found.state, found.kind, b""
        if kind is Kind.FOLDER:
            kind = Kind.OMITTED if found.omitted else kind
            return PathEntry(kind, S_IMODE(state.st_mode), 0, 0, None, found.ignored)
        most = IGNORED_FILE_BYTES_MAX if found.ignored else FILE_BYTES_MAX
        stored = state.st_size <= min(most, room)
        try:
            if kind is Kind.LINK:
                data = folders.target(path)
            elif stored:
                opened = folders.open(path, os.O_RDONLY | os.O_NONBLOCK)
                data, state = read_small(Path(os.fsdecode(path)), limit=most, opened=opened)
        except OSError as error:
            if error.errno in NOT_THERE:
                return None
            stored = False  # not readable, or growing
        digest = _store(db, data) if stored else None
        changed = max(state.st_mtime_ns, state.st_ctime_ns)
        racy = stored and changed > time.time_ns() - RACY_NS
        again = racy or room < state.st_size <= most
        stamp = NEVER if again else stamp_of(state)
        return PathEntry(kind, S_IMODE(state.st_mode), state.st_size, stamp, digest, found.ignored)

    def _put(
        self, db: sqlite3.Connection, entries: dict[bytes, PathEntry], gone: Iterable[bytes]
    ) -> Checkpoint:
        """Store what differs; where nothing does, the last checkpoint is this one, too."""
        gone = list(gone)
        if not entries and not gone and self._n:
            return Checkpoint(f"{self._id}-{self._n}")
        n = self._n + 1
        db.execute("INSERT INTO checkpoint VALUES (?, ?)", (n, time.time()))
        db.executemany(
            "UPDATE entry SET until = ? WHERE path = ? AND until IS NULL",
            [(n, path) for path in (*gone, *(path for path in entries if self._known.get(path)))],
        )
        db.executemany(
            "INSERT INTO entry VALUES (?, ?, NULL, ?, ?, ?, ?, ?, ?)",
            [(path, n, *entry) for path, entry in entries.items()],
        )
        counted = [path for path, entry in entries.items() if _counts(entry)]
        counted += [path for path in gone if (old := self._known.get(path)) and _counts(old)]
        first = not self._n
        named = () if first else tuple(map(os.fsdecode, sorted(counted)[:_NAMED]))
        return Checkpoint(f"{self._id}-{n}", 0 if first else len(counted), named)

    def _stored(self, db: sqlite3.Connection, checkpoint: str) -> int:
        """The number of a checkpoint that is here."""
        id_, first = db.execute("SELECT id, first FROM about").fetchone()
        store, _, n = checkpoint.rpartition("-")
        here = (
            int(n[:12]) if store == id_ and n.isdecimal() else transfer.adopted_as(db, checkpoint)
        )
        if here is not None and first <= here <= self._last(db):
            return here
        raise CheckpointError("Its checkpoint isn't stored any more.")

    def _is_stored(self, db: sqlite3.Connection, checkpoint: str) -> bool:
        try:
            return self._stored(db, checkpoint) > 0
        except CheckpointError:
            return False

    @staticmethod
    def _last(db: sqlite3.Connection) -> int:
        (n,) = db.execute("SELECT coalesce(max(n), 0) FROM checkpoint").fetchone()
        return n


def _small_first(one: tuple[bytes, ScannedPath]) -> tuple[int, bytes]:
    """The order in which files are read: by size, of about the same size by folder."""
    path, scanned = one
    return scanned.state.st_size.bit_length(), path


def store_of(
    folders: Folders, root: Path, *, keep_days: int = 30, keep_bytes: int = 2 * 1024**3
) -> CheckpointStore:
    """The checkpoints of a workspace."""
    file = folders.checkpoints / f"{workspace_slug(root)}.sqlite3"
    own = (folders.data, folders.cache, folders.log)
    return CheckpointStore(file, root, skip=own, keep_days=keep_days, keep_bytes=keep_bytes)


def _opened(file: Path) -> sqlite3.Connection:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(file, os.O_CREAT | os.O_EXCL, 0o600))
    db = sqlite3.connect(file, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        if db.execute("PRAGMA user_version").fetchone()[0] == 0:
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA journal_size_limit = 20000000")
        db.execute("BEGIN IMMEDIATE")
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            for statement in _TABLES.split(";"):
                db.execute(statement)
            db.execute("INSERT INTO about VALUES (?, 1, ?)", (secrets.token_hex(4), time.time()))
            db.execute(f"PRAGMA user_version = {_VERSION}")
        db.execute("COMMIT")
    except BaseException:
        db.close()
        raise
    if version not in {0, _VERSION}:
        db.close()
        raise sqlite3.OperationalError(f"it is of another version ({version})")
    return db


def _store(db: sqlite3.Connection, data: bytes) -> bytes:
    """Store a content once; its digest."""
    digest = sha256(data).digest()
    if db.execute("SELECT 1 FROM content WHERE digest = ?", (digest,)).fetchone() is None:
        packed = zlib.compress(data, 1) if len(data) > 64 else data
        smaller = len(packed) < len(data)
        row = (digest, smaller, packed if smaller else data)
        db.execute("INSERT INTO content VALUES (?, ?, ?)", row)
    return digest


def _at(db: sqlite3.Connection, path: bytes, n: int) -> PathEntry | None:
    """Return the entry that a path had in a checkpoint."""
    row = db.execute(
        f"SELECT {COLUMNS}, until FROM entry WHERE path = ? AND since <= ?"  # noqa: S608 - our own column names
        " ORDER BY since DESC LIMIT 1",
        (path, n),
    ).fetchone()
    if row is None or (row[-1] is not None and row[-1] <= n):
        return None
    return entry_of(row[:-1])


def _counts(entry: PathEntry) -> bool:
    return entry.kind in {Kind.FILE, Kind.LINK} and not entry.ignored


def _number(checkpoint: str) -> int:
    return int(checkpoint.rpartition("-")[2])


def _bytes(db: sqlite3.Connection) -> int:
    """Count the bytes that the file holds, without free pages."""
    pages, free, size = (
        db.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def _drop_before(db: sqlite3.Connection, first: int) -> None:
    """Drop what only checkpoints before a number need."""
    db.execute("DELETE FROM checkpoint WHERE n < ?", (first,))
    db.execute("DELETE FROM entry WHERE until <= ?", (first,))
    db.execute(
        "DELETE FROM content WHERE digest NOT IN"
        " (SELECT digest FROM entry WHERE digest IS NOT NULL)"
    )
