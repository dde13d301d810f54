"""An index of the bills of all sessions, kept in the cache folder. Blocks.

A session file is read again when its size or its time of change differs. Of each file only the
lines with a bill are decoded, as long as it is one of ours without damage; any other is read as
`tui.session.reader` reads it. The shares of tools, files and so on take the whole record and are
made when they are asked for.

A fork begins with the records of another session: what these cost is counted once. What a
sub-agent cost is in the record of its parent; one whose end was never recorded counts by itself.
"""

from __future__ import annotations

import os
import sqlite3
import time as system_time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from tui.context.usage.bills import BILLED, Bill, bills_of
from tui.core.config import Price, ProfilePrices
from tui.core.dataclass import dataclass
from tui.core.errors import SessionError
from tui.core.facts import DEFAULT_PROFILE
from tui.core.gc_pause import gc_pause
from tui.core.messages import string_of
from tui.core.paths import Folders
from tui.core.two_processes import in_two
from tui.session.cache_database import CacheDatabase, key_of, transaction
from tui.session.catalog import (
    ReadProgress,
    SessionFileState,
    id_of,
    parent_of,
    scan,
    scan_children,
)
from tui.session.jsonl import split
from tui.session.lock import lock_of
from tui.session.reader import LoadedSession, open_session, read
from tui.session.records import SUB_AGENT, Record, is_prompt, title_of

if TYPE_CHECKING:
    from tui.context.usage.attribution import Attribution

FileState: TypeAlias = Literal["", "damaged", "empty", "unreadable"]
"""How far a file could be read: "" for all of it."""

FileChoice: TypeAlias = Callable[[SessionFileState], bool]
"""True for a file that is to be looked into."""

_DATABASE: Final = CacheDatabase(
    "usage.sqlite3",
    4,
    """
CREATE TABLE session(
    path BLOB PRIMARY KEY, changed INTEGER, size INTEGER, bills BLOB
) WITHOUT ROWID;
CREATE TABLE shares(
    path BLOB PRIMARY KEY, changed INTEGER, size INTEGER, asked BLOB, rows BLOB
) WITHOUT ROWID
""",
)
_START: Final = b'{"type":"'
_BILLED: Final = b'"usage":{'
_ALONE: Final = 4_000_000
"""Bytes of sessions that are read before a second process is worth its start."""
_BATCH: Final = 100
"""Files read between two commits, so that a long build is not in vain."""


class SessionBills(msgspec.Struct, array_like=True):
    """The bills of a session. `counted` are the sub-agents' sessions whose bills are among them,
    `profile` is the one of the last request, "" for none."""

    id: str = ""
    cwd: str = ""
    created: str = ""
    origin: str = ""
    title: str = ""
    state: FileState = ""
    problem: str = ""
    bills: list[Bill] = []
    counted: list[str] = []
    profile: str = ""


@dataclass(frozen=True, slots=True)
class BilledSession:
    """A session file with what it was billed for, without what another one has too. `skipped` are
    the records that these bills are in. `running`: a program may be writing it."""

    file: SessionFileState
    about: SessionBills
    bills: Sequence[Bill]
    skipped: frozenset[str] = frozenset()

    @property
    def path(self) -> Path:
        return Path(self.file[1])

    @property
    def running(self) -> bool:
        from tui.session.lock import holder  # noqa: PLC0415 - of those that have a lock file

        return lock_of(self.path).exists() and holder(self.path) is not None


def _nobody(done: int, of: int) -> None:
    """For callers that do not want to know the progress."""


def _every(file: SessionFileState) -> bool:  # noqa: ARG001 - one that chooses has it
    """For callers that want all files."""
    return True


def bills_in(
    home: Folders, progress: ReadProgress = _nobody, *, among: FileChoice = _every
) -> list[BilledSession]:
    """The bills of all sessions, the one changed last first; each bill once. `among` chooses the
    files that are looked into."""
    with gc_pause():
        own = _known(home.cache, [*filter(among, scan(home))], progress)
        left = [*_not_counted(filter(among, scan_children(home)), own)]
        children = _known(home.cache, left, _nobody, prune=False)
        return [*_once_each(own), *_of_parents(children, own)]


def _not_counted(
    children: Iterable[SessionFileState], own: Iterable[tuple[SessionFileState, SessionBills]]
) -> Iterator[SessionFileState]:
    """Yield the sub-agents' sessions whose bills are not in the record of the session that they
    worked for; where that is gone or damaged, its forks have it, too."""
    parents = {file[1]: about for file, about in own}
    in_forks: dict[str, set[str]] = {}
    for about in parents.values():
        in_forks.setdefault(about.origin, set()).update(about.counted)
    for file in children:
        path = Path(file[1])
        above = parent_of(path)
        parent = parents.get(str(above))
        counted = set(parent.counted if parent else ())
        if parent is None or parent.state:
            counted |= in_forks.get(id_of(above), set())
        if id_of(path) not in counted:
            yield file


def _of_parents(
    children: Iterable[tuple[SessionFileState, SessionBills]],
    own: Iterable[tuple[SessionFileState, SessionBills]],
) -> Iterator[BilledSession]:
    """Sub-agents that no parent's record has counted, under the names of their parents."""
    parents = {file[1]: about for file, about in own}
    for file, about in children:
        parent = parents.get(str(parent_of(Path(file[1]))))
        name = about.title or "sub-agent"
        bills = [bill._replace(purpose="sub-agents", agent=name) for bill in about.bills]
        if parent is not None:
            about.cwd = about.cwd or parent.cwd
        yield BilledSession(file, about, bills)


def _once_each(
    found: Sequence[tuple[SessionFileState, SessionBills]],
) -> Iterator[BilledSession]:
    """Leave out of a fork what another session of its family has too."""
    origins = {about.origin for _, about in found if about.origin}
    family = sorted(
        (about.created, file[1])
        for file, about in found
        if about.origin or (origins and about.id in origins)
    )
    skipped: dict[str, frozenset[str]] = {}
    seen: set[str] = set()
    by_path = {file[1]: about for file, about in found} if family else {}
    for _, path in family:
        ids = {bill.record for bill in by_path[path].bills}
        skipped[path] = frozenset(ids & seen)
        seen |= ids
    for file, about in found:
        out = skipped.get(file[1]) or frozenset[str]()
        bills = [one for one in about.bills if one.record not in out] if out else about.bills
        yield BilledSession(file, about, bills, out)


# The index of bills


def _known(
    cache: Path,
    files: Sequence[SessionFileState],
    progress: ReadProgress,
    *,
    prune: bool = True,
) -> list[tuple[SessionFileState, SessionBills]]:
    known: dict[str, SessionBills] = {}
    if files or prune:
        kept = _DATABASE.use(cache, lambda database: _cached(database, files, prune=prune))
        known = kept or {}
    stale = [file for file in files if file[1] not in known]
    worth = sum(size for _, _, size in stale) > _ALONE
    made = in_two(_described, stale, worth=worth)
    rows: list[tuple[bytes, int, int, bytes]] = []
    for done, (file, data) in enumerate(zip(stale, made, strict=True)):
        changed, path, size = file
        progress(done, len(stale))
        known[path] = _DECODER.decode(data) if data else describe(Path(path))
        with suppress(UnicodeEncodeError):
            rows += [(key_of(path), changed, size, data)] if data else []
        if len(rows) >= _BATCH:
            _keep_bills(cache, rows)
            rows = []
    if stale:
        _keep_bills(cache, rows)
        progress(len(stale), len(stale))
    return [(file, known[file[1]]) for file in files]


def _described(file: SessionFileState) -> bytes:
    """The bills of a file, encoded; nothing where a text in them can't be."""
    with suppress(UnicodeEncodeError):
        return _ENCODER.encode(describe(Path(file[1])))
    return b""


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(SessionBills)


def _cached(
    database: sqlite3.Connection, files: Sequence[SessionFileState], *, prune: bool
) -> dict[str, SessionBills]:
    wanted = {path: (changed, size) for changed, path, size in files}
    kept: dict[str, SessionBills] = {}
    gone: list[tuple[bytes]] = []
    for key, changed, size, data in database.execute("SELECT * FROM session"):
        path = os.fsdecode(key)
        if wanted.get(path) == (changed, size):
            with suppress(msgspec.DecodeError):
                kept[path] = _DECODER.decode(data)
        elif prune and path not in wanted and not os.path.lexists(path):
            gone.append((key,))
    if gone:
        with suppress(sqlite3.OperationalError), transaction(database):
            database.executemany("DELETE FROM session WHERE path = ?", gone)
            database.executemany("DELETE FROM shares WHERE path = ?", gone)
    return kept


def _keep_bills(cache: Path, rows: Sequence[tuple[bytes, int, int, bytes]]) -> None:
    _keep(cache, "INSERT OR REPLACE INTO session VALUES (?, ?, ?, ?)", rows)


def _keep(cache: Path, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
    def keep(database: sqlite3.Connection) -> None:
        with suppress(sqlite3.OperationalError), transaction(database):
            database.executemany(statement, rows)

    if rows:
        _DATABASE.use(cache, keep)


# Reading the bills of a file


class _Line(msgspec.Struct):
    """The fields of a line that are looked at; the others are passed over."""

    type: str
    id: str
    time: str
    model: Any = None
    usage: Any = None
    batch: Any = None
    spent: Any = None
    session: Any = None
    agent: Any = None
    description: Any = None
    title: Any = None


class _UserLine(msgspec.Struct):
    type: str
    id: str
    time: str
    text: Any = None
    content: Any = None
    by: Any = None


class _HeaderLine(msgspec.Struct):
    type: str
    id: str
    created: str
    cwd: str
    origin: Any = None
    profile: Any = None


class _ProfileLine(msgspec.Struct):
    type: str
    name: Any = None


_LINE: Final = msgspec.json.Decoder(_Line)
_USER_LINE: Final = msgspec.json.Decoder(_UserLine)
_HEADER_LINE: Final = msgspec.json.Decoder(_HeaderLine)
_PROFILE_LINE: Final = msgspec.json.Decoder(_ProfileLine)
_DECODED: Final = frozenset(kind.encode() for kind in BILLED)


class _OddError(Exception):
    """A line is not as the program writes it: the file is to be read with care."""


def describe(path: Path) -> SessionBills:
    """The bills of one file. Never raises for what is in it."""
    try:
        try:
            return _scanned(path)
        except (_OddError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return _of_loaded(read(path))
    except (SessionError, OSError) as error:
        said = error.message if isinstance(error, SessionError) else str(error)
        return SessionBills(id_of(path), state="unreadable", problem=said)


def _scanned(path: Path) -> SessionBills:
    """Read only the lines with a bill. Raises _OddError or DecodeError where there is damage."""
    about = SessionBills()
    with open_session(path) as file:
        for line in split(file.read):
            data = line.data
            if data is None or not data.startswith(_START) or not line.ended:
                raise _OddError
            kind = data[len(_START) : data.index(b'"', len(_START))]
            if kind in _DECODED:
                _take(about, _LINE.decode(data))
            elif kind == b"session":
                if about.id:
                    raise _OddError
                header = _HEADER_LINE.decode(data)
                about.id, about.cwd = header.id, header.cwd
                about.created, about.origin = header.created, _own_origin(header.origin)
                about.profile = string_of(header.profile)
            elif kind == b"profile":
                about.profile = _profile_of(_PROFILE_LINE.decode(data).name)
            elif kind == b"user" and not about.title:
                _take_user(about, _USER_LINE.decode(data))
            elif _BILLED in data:  # behind a line that was cut short
                raise _OddError
    if not about.id:
        raise _OddError
    _check_ids(about)
    return about


def _take(about: SessionBills, line: _Line) -> None:
    fields = {"model": line.model, "usage": line.usage, "batch": line.batch}
    if line.type != "assistant":
        fields = {name: getattr(line, name) for name in line.__struct_fields__[3:]}
    record = Record(line.type, line.id, None, line.time, fields, payer=about.profile)
    _add(about, record)


def _take_user(about: SessionBills, line: _UserLine) -> None:
    data = {"text": line.text, "content": line.content, "by": line.by}
    record = Record(line.type, line.id, None, line.time, data)
    if is_prompt(record):
        about.title = title_of(data)


def _add(about: SessionBills, record: Record) -> None:
    if record.type == "title" and (title := string_of(record.data.get("title"))):
        about.title = title
    if record.type == "profile":
        about.profile = _profile_of(record.data.get("name"))
    for bill in bills_of(record):
        about.bills.append(bill)
    if record.type == SUB_AGENT and record.data.get("spent"):
        about.counted.append(string_of(record.data.get("session")))


def _profile_of(name: object) -> str:
    return "" if name == DEFAULT_PROFILE else string_of(name)


def _own_origin(origin: object) -> str:
    """The session that one was forked from, "" for one of another program."""
    name = string_of(origin)
    return "" if ":" in name else name


def _check_ids(about: SessionBills) -> None:
    """Raise _OddError if two records have the same id: one may be a copy."""
    ids = [bill.record for bill in about.bills if not bill.agent]
    if len(set(ids)) != len(ids):
        raise _OddError


def _of_loaded(loaded: LoadedSession) -> SessionBills:
    """The bills of a session that was read with care."""
    header, findings = loaded.header, loaded.findings
    about = SessionBills(
        header.id, header.cwd, header.created, _own_origin(header.origin), "", "damaged"
    )
    about.profile = header.profile
    for record in loaded.records:
        if is_prompt(record) and not about.title:
            about.title = title_of(record.data)
        _add(about, record)
    if not loaded.records:
        about.state = "empty"
    elif not findings:
        about.state = ""
    about.problem = findings[0].action if findings and about.state == "damaged" else ""
    return about


# The shares of each session


def rows_in(
    home: Folders,
    sessions: Sequence[BilledSession],
    prices: Mapping[str, Mapping[str, Price]],
    progress: ReadProgress = _nobody,
) -> Iterator[tuple[BilledSession, Attribution]]:
    """Yield the sessions with the shares of their bills (`Attribution`). `prices` are by profile,
    those of "" for all that have none."""
    from tui.context.usage.attribution import Attribution  # noqa: PLC0415 - only where asked for

    asked = _asked(prices)
    query = "SELECT rows FROM shares WHERE path = ? AND changed = ? AND size = ? AND asked = ?"

    def key(one: BilledSession) -> tuple[bytes, int, int, bytes]:
        changed, path, size = one.file
        return key_of(path), changed, size, asked + _hash(one.skipped)

    def fetch(database: sqlite3.Connection) -> dict[str, bytes]:
        kept: dict[str, bytes] = {}
        for one in sessions:
            if row := database.execute(query, key(one)).fetchone():
                kept[one.file[1]] = row[0]
        return kept

    def encoded(one: BilledSession) -> bytes:
        return _attributed(one, prices).to_bytes()

    kept = _DATABASE.use(home.cache, fetch) or {}
    stale = [one for one in sessions if one.file[1] not in kept]
    made = in_two(encoded, stale, worth=sum(one.file[2] for one in stale) > _ALONE)
    fresh: list[tuple[bytes, int, int, bytes, bytes]] = []
    done = 0
    for one in sessions:
        if (data := kept.get(one.file[1])) is None:
            progress(done, len(stale))
            done += 1
            data = next(made)
            fresh.append((*key(one), data))
        try:
            found = Attribution.of_bytes(data)
        except (AttributeError, LookupError, TypeError, ValueError):
            found = _attributed(one, prices)  # the index is damaged
            fresh.append((*key(one), found.to_bytes()))
        if len(fresh) >= _BATCH:
            _keep(home.cache, _KEEP_SHARES, fresh)
            fresh = []
        yield one, found
    if stale:
        progress(len(stale), len(stale))
    _keep(home.cache, _KEEP_SHARES, fresh)


_KEEP_SHARES: Final = "INSERT OR REPLACE INTO shares VALUES (?, ?, ?, ?, ?)"


def _attributed(session: BilledSession, prices: Mapping[str, Mapping[str, Price]]) -> Attribution:
    from tui.context.usage.attribution import Attribution, attribute  # noqa: PLC0415 - as above

    try:
        loaded = read(session.path)
    except (SessionError, OSError):
        return Attribution()
    usual = prices.get("", {})
    return attribute(
        loaded.records,
        ProfilePrices(usual, "", usual, prices),
        cwd=loaded.header.cwd,
        skip=session.skipped,
    )


def _asked(prices: Mapping[str, Mapping[str, Price]]) -> bytes:
    """Hash what the shares depend on besides the files: the prices, and where days begin."""
    from tui.provider.prices import shipped  # noqa: PLC0415 - as above

    zone = [*system_time.tzname, system_time.timezone, os.environ.get("TZ", "")]
    given = msgspec.json.encode([shipped(), dict(prices), zone, _SHARES_VERSION])
    return blake2b(given, digest_size=16).digest()


_SHARES_VERSION: Final = 6


def _hash(ids: Collection[str]) -> bytes:
    return blake2b("".join(sorted(ids)).encode(), digest_size=8).digest() if ids else b""
