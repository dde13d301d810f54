"""A SQLite database in the cache folder: private, of one version, made again where it is broken.

It holds nothing that cannot be read again from the session files, so it may be deleted at any
time, and whoever uses one must do without it. Everything blocks.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from tui.core.dataclass import dataclass
from tui.session.writer import make_private

BUSY_S = 0.5
"""Seconds to wait while another program writes."""

_IN_USE = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
    }
)
"""Errors of a database that is not broken: it is locked, or the disk is full."""

_Result = TypeVar("_Result")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CacheDatabase:
    """A database by its file's name, the version of its tables, and the SQL that makes them."""

    name: str
    version: int
    tables: str

    @contextmanager
    def opened(self, cache: Path) -> Generator[sqlite3.Connection]:
        """The database in a folder, with its tables. Raises sqlite3.Error or OSError."""
        make_private(cache)
        file = os.open(cache / self.name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            with suppress(OSError):
                os.fchmod(file, 0o600)
        finally:
            os.close(file)
        with closing(
            sqlite3.connect(cache / self.name, timeout=BUSY_S, isolation_level=None)
        ) as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute("PRAGMA secure_delete = ON")  # what is forgotten is overwritten
            version = database.execute("PRAGMA user_version").fetchone()[0]
            if version not in {0, self.version}:
                raise sqlite3.DatabaseError(f"version {version} is not {self.version}")
            if version == 0:
                self._create(database)
            yield database

    def remove(self, cache: Path) -> None:
        """Delete the database's files, if there are any."""
        for suffix in ("", "-wal", "-shm", "-journal"):
            with suppress(OSError):
                (cache / (self.name + suffix)).unlink()

    def use(self, cache: Path, work: Callable[[sqlite3.Connection], _Result]) -> _Result | None:
        """Do work with the database; if that is broken, once more with a new one. None where it
        can't be used."""
        for last in (False, True):
            try:
                with self.opened(cache) as database:
                    return work(database)
            except sqlite3.DatabaseError as error:
                log.info("%s can't be used: %s", self.name, error)
                if last or not is_broken(error):
                    break
                self.remove(cache)
            except OSError as error:
                log.info("there is no %s: %s", self.name, error)
                break
            except (TypeError, ValueError, LookupError):  # rows that nobody wrote like that
                log.exception("%s is damaged", self.name)
                if last:
                    break
                self.remove(cache)
        return None

    def _create(self, database: sqlite3.Connection) -> None:
        with transaction(database):
            if database.execute("PRAGMA user_version").fetchone()[0] == self.version:
                return  # another program was faster
            for statement in self.tables.split(";"):
                database.execute(statement)
            database.execute(f"PRAGMA user_version = {self.version}")


def is_broken(error: sqlite3.DatabaseError) -> bool:
    """True where only a new database helps; False where it is locked, or the disk is full."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF not in _IN_USE


@contextmanager
def transaction(database: sqlite3.Connection) -> Generator[None]:
    """Write all that is done within, or nothing."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def emptied(database: sqlite3.Connection) -> None:
    """Empty the journal too, which still holds what was overwritten."""
    with suppress(sqlite3.Error):
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def sound(text: str) -> str:
    """Text that SQLite takes: without lone surrogates."""
    return text.encode("utf-8", "replace").decode()


def key_of(path: str) -> bytes:
    """A path as a database holds it: the bytes of its name, which need not be UTF-8."""
    return os.fsencode(path)
