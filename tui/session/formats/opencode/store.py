"""Sessions of opencode: in a SQLite database, or in the file that `opencode export` writes. A
session of a database has the address `…/opencode.db/ses_…`.

Only read, never written. What is damaged costs a message or a part, and becomes a finding; a
message whose own row is lost is made up for the parts that are left.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from tui.core.dataclass import dataclass
from tui.core.errors import SessionError
from tui.core.formatting import plural
from tui.core.messages import object_of, string_of
from tui.session.jsonl import Findings, JsonObject
from tui.session.reader import open_session
from tui.session.records import LEFT_OUT

MAGIC: Final = b"SQLite format 3\0"
"""The first bytes of a database."""
_TABLES = frozenset({"session", "message", "part"})
_EXPORT = re.compile(rb'\s*\{\s*"info"\s*:\s*\{[^{}]{0,200}"ses_')
_INFO = re.compile(r'\{\s*"info"\s*:\s*')
"""The beginning of a session in an export, or of a message in it."""
_TEXTS = ("directory", "title", "version")
_OF_THE_MODEL: Final = frozenset(
    {"tool", "reasoning", "step-start", "step-finish", "patch", "snapshot"}
)
"""Parts that only an answer has."""
_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None)
_SPACE = re.compile(r"\s*")
_LISTED: Final = 20
"""Sessions of a database that a message names."""


class StoredMessage(NamedTuple):
    """A message, and its parts in their order."""

    id: str
    info: JsonObject
    parts: list[JsonObject]


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session as opencode has it: its description, and its messages in their order."""

    info: JsonObject
    messages: list[StoredMessage]


@dataclass(frozen=True, slots=True)
class DatabaseSession:
    """A line of a list of sessions in a database. `changed` is in milliseconds since 1970, `size`
    in bytes of JSON."""

    path: Path
    title: str
    directory: str
    changed: int
    size: int


def is_opencode(path: Path) -> bool:
    """True if a path is a session of opencode's, or a database that has some. Raises SessionError
    where it cannot be read."""
    database, _ = _address(path)
    with open_session(database) as file:
        head = file.read(1024)
    if not head.startswith(MAGIC):
        return _EXPORT.match(head) is not None
    with suppress(sqlite3.Error), _opened(database) as db:
        return has_its_tables(db)
    return False


def has_its_tables(db: sqlite3.Connection) -> bool:
    """True if a database is opencode's. Raises sqlite3.Error."""
    rows = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {text_of_column(name) for (name,) in rows} >= _TABLES


def read(path: Path, findings: Findings) -> StoredSession:
    """The session at a path. Of a database without the id of a session, the only one in it.

    Raises SessionError where it cannot be read, or where the database has several.
    """
    database, id_ = _address(path)
    with open_session(database) as file:
        head = file.read(len(MAGIC))
        data = b"" if head == MAGIC else head + file.read()
    if data:
        return _exported(data.decode("utf-8", "replace"), findings)
    try:
        with _opened(database) as db:
            return _stored(db, id_ or _only_session(database, db), findings)
    except sqlite3.Error as error:
        raise SessionError(
            f"Can't read {database}: {error}.",
            hint=f"Mend a copy of it first: holdfast rescue {database}",
        ) from error


def sessions(database: Path) -> list[DatabaseSession]:
    """The sessions of a database that no other session started, the newest first; [] where it can't
    be read."""
    if not database.is_file():
        return []
    with suppress(sqlite3.Error), _opened(database) as db:
        return [
            DatabaseSession(database / id_, title, directory, changed, _size(db, id_))
            for id_, title, directory, changed in _top_sessions(db)
        ]
    return []


def text_of_column(value: object) -> str:
    """A column's text, whatever is in it."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def readable_rows(
    db: sqlite3.Connection, query: str, values: Sequence[object] = ()
) -> Iterator[tuple[Any, ...] | None]:
    """The rows up to the first that can't be read; None after the last, if it gets there."""
    with suppress(sqlite3.DatabaseError):
        yield from db.execute(query, values)
        yield None


def _address(path: Path) -> tuple[Path, str]:
    """The file, and the id of a session in it; "" where it names none."""
    return (path.parent, path.name) if path.parent.is_file() else (path, "")


@contextmanager
def _opened(database: Path) -> Generator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as db:
        db.text_factory = bytes
        yield db


def _top_sessions(db: sqlite3.Connection) -> list[tuple[str, str, str, int]]:
    columns = {text_of_column(row[1]) for row in db.execute("PRAGMA table_info(session)")}
    top = " WHERE parent_id IS NULL" if "parent_id" in columns else ""
    rows = readable_rows(
        db,
        f"SELECT id, title, directory, time_updated FROM session{top} ORDER BY time_updated DESC",  # noqa: S608 - of the line above
    )
    return [
        (text_of_column(id_), text_of_column(title), text_of_column(directory), int(changed or 0))
        for id_, title, directory, changed in filter(None, rows)
    ]


def _size(db: sqlite3.Connection, id_: str) -> int:
    with suppress(sqlite3.Error):
        (size,) = db.execute(
            "SELECT total(length(data)) FROM part WHERE session_id = ?", (id_,)
        ).fetchone()
        return int(size)
    return 0


def _only_session(database: Path, db: sqlite3.Connection) -> str:
    sessions = _top_sessions(db)
    if len(sessions) == 1:
        return sessions[0][0]
    named = [f"{database / id_}  {title}" for id_, title, *_ in sessions[:_LISTED]]
    more = [f"and {len(sessions) - _LISTED:,} older ones"] if len(sessions) > _LISTED else []
    raise SessionError(
        f"{database} has {len(sessions):,} sessions.",
        hint="\n".join(["Name one:", *named, *more]) if sessions else "",
    )


def _stored(db: sqlite3.Connection, id_: str, findings: Findings) -> StoredSession:
    rows = db.execute("SELECT * FROM session WHERE id = ?", (id_,))
    names = [text_of_column(column[0]) for column in rows.description]
    row = rows.fetchone()
    if row is None:
        raise SessionError(f"Session not found: {id_}.", hint="Name the database to see its ids.")
    columns = dict(zip(names, row, strict=True))
    texts = {name: text_of_column(columns.get(name) or b"") for name in _TEXTS}
    revert = _json_of_column(columns.get("revert"))
    times = {"created": columns.get("time_created")}
    info: JsonObject = {**texts, "id": id_, "time": times, "revert": revert}
    if "parent_id" in names:
        query = "SELECT count(*) FROM session WHERE parent_id = ?"
        (count,) = db.execute(query, (id_,)).fetchone()
        if count:
            what = f"left out: {plural(count, 'session')} of sub-agents; name one to import it"
            findings.add(LEFT_OUT, f"session {id_}", what)
    infos = {
        text_of_column(own): _object(raw, f"message {text_of_column(own)}", findings)
        for own, raw in _rows(db, "message", "id, data", id_, findings)
    }
    parts: dict[str, dict[str, JsonObject]] = {}
    for own, raw, message in _rows(db, "part", "id, data, message_id", id_, findings):
        if part := _object(raw, f"part {text_of_column(own)}", findings):
            parts.setdefault(text_of_column(message), {})[text_of_column(own)] = part
    messages = [
        _message(own, infos.get(own, {}), [part for _, part in sorted(parts.get(own, {}).items())])
        for own in sorted({*infos, *parts})  # ids begin with the time
    ]
    return StoredSession(info, [one for one in messages if one.info])


def _rows(
    db: sqlite3.Connection, table: str, columns: str, session: str, findings: Findings
) -> Iterable[tuple[Any, ...]]:
    """The rows of a session: of damaged pages, those before and behind them."""
    rows: dict[object, tuple[Any, ...]] = {}
    for where in ("session_id = ?", "+session_id = ?", "+session_id = ? ORDER BY rowid DESC"):
        query = f"SELECT {columns} FROM {table} WHERE {where}"  # noqa: S608 - names of ours
        for row in readable_rows(db, query, (session,)):
            if row is None:
                return rows.values()
            rows[row[0]] = row
    findings.add("B52", f"table {table}", "rows that can't be read left out")
    return rows.values()


def _object(raw: object, where: str, findings: Findings) -> JsonObject:
    value = _json_of_column(raw)
    if not isinstance(value, dict):
        findings.add("B56", where, "skipped: not readable")
    return object_of(cast("object", value))


def _json_of_column(raw: object) -> object:
    """The JSON of a column, None where it is none."""
    if not isinstance(raw, bytes):
        return None
    try:
        return _DECODER.decode(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _message(id_: str, info: JsonObject, parts: list[JsonObject]) -> StoredMessage:
    """A message; one whose own fields are lost is made up for the parts that are left."""
    if not info and parts:
        info = {"role": role_of(parts)}
    return StoredMessage(id_, info, parts)


def role_of(parts: Iterable[JsonObject]) -> str:
    """Tell by its parts whether a message is the user's or the model's."""
    kinds = {string_of(part.get("type")) for part in parts}
    return "user" if kinds.isdisjoint(_OF_THE_MODEL) else "assistant"


def _exported(text: str, findings: Findings) -> StoredSession:
    """The session in a file of `opencode export`; of a damaged one, the messages that are whole."""
    if whole := _decoded(text, 0):
        info, messages = object_of(whole[0].get("info")), objects_of(whole[0].get("messages"))
    else:
        findings.add("B52", "file", "read as far as its messages are whole")
        start = _INFO.match(text)
        first = _decoded(text, start.end()) if start else None
        info, messages = first[0] if first else {}, list(_whole_messages(text))
    made: list[StoredMessage] = []
    for number, one in enumerate(messages, start=1):
        own = object_of(one.get("info"))
        id_ = string_of(own.get("id")) or f"message-{number}"
        made.append(_message(id_, own, objects_of(one.get("parts"))))
    return StoredSession(info, [one for one in made if one.info])


def objects_of(value: object) -> list[JsonObject]:
    """The objects in a list of JSON; [] where it is none."""
    listed = cast("list[object]", value) if isinstance(value, list) else []
    return [one for one in map(object_of, listed) if one]


def _whole_messages(text: str) -> Iterator[JsonObject]:
    end = 0
    for match in islice(_INFO.finditer(text), 1, None):
        start = match.start()
        if start >= end and (decoded := _decoded(text, start)):
            message, end = decoded
            yield message


def _decoded(text: str, start: int) -> tuple[JsonObject, int] | None:
    """The object that begins at a place, and where it ends."""
    space = _SPACE.match(text, start)
    try:
        value, end = _DECODER.raw_decode(text, space.end() if space else start)
    except (ValueError, RecursionError):
        return None
    return (cast("JsonObject", value), end) if isinstance(value, dict) else None
