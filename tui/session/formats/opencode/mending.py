"""opencode's database, mended in a copy: its sessions, messages and parts are JSON in SQLite.

opencode (tried with 1.18) opens none of a session, and says that there is no such session, where
the JSON of one of its messages or parts can't be read. A row that can't be mended is set aside; a
message whose parts are left gets the fields of another one in its session.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, cast

from tui.core.dataclass import dataclass, field
from tui.core.formatting import plural
from tui.core.messages import object_of
from tui.session.formats.lines import Repairs, encoded, strict_json
from tui.session.formats.opencode.store import (
    has_its_tables,
    readable_rows,
    role_of,
    text_of_column,
)
from tui.session.jsonl import JsonObject

_NULLABLE = ("metadata", "permission", "model", "revert", "summary_diffs")
"""JSON that a session's row may lack."""
_NEEDED = {"text": ("text",), "reasoning": ("text",), "tool": ("callID", "tool")}
"""Texts that a part of a type has in any case."""


@dataclass(slots=True)
class RescuedDatabase:
    """The repairs made to a database, with the ids of the sessions concerned. `set_aside` holds the
    rows as they were, one a line."""

    repairs: Repairs = field(default_factory=Repairs)
    sessions: set[str] = field(default_factory=set[str])

    @property
    def set_aside(self) -> bytes:
        return b"".join(self.repairs.set_aside)


def rescue_database(source: Path, copy: Path) -> RescuedDatabase | None:
    """Mend a database in a copy, which must not exist and only its owner can read. Without repairs
    there is no copy. None where it isn't opencode's; raises OSError and sqlite3.Error. Blocks."""
    with closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)) as old:
        old.text_factory = bytes
        if not has_its_tables(old):
            return None
        os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        rescued = RescuedDatabase()
        try:
            with closing(sqlite3.connect(copy)) as new:
                _copied(old, new, rescued.repairs)
                new.text_factory = bytes
                _repair(new, rescued)
                new.commit()
        except BaseException:
            copy.unlink()
            raise
    if not rescued.repairs.said:
        copy.unlink()
    return rescued


def _copied(old: sqlite3.Connection, new: sqlite3.Connection, repairs: Repairs) -> None:
    """Copy all of it; of damaged pages, the rows that can still be read."""
    if _is_whole(old):
        old.backup(new)
        return
    lost = 0
    schema = old.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE"
        " 'sqlite_%' ORDER BY type = 'table' DESC, rowid"
    ).fetchall()
    for kind, name, sql in schema:
        new.execute(bytes(sql).decode())
        if kind == b"table":
            lost += _copied_rows(old, new, bytes(name).decode())
    where = f"; {plural(lost, 'table')} could only be read in part" if lost else ""
    repairs.add(0, f"the database was damaged: its readable rows were copied{where}", b"")


def _is_whole(db: sqlite3.Connection) -> bool:
    with suppress(sqlite3.DatabaseError):
        (answer,) = db.execute("PRAGMA quick_check(1)").fetchone()
        return answer == b"ok"
    return False


def _copied_rows(old: sqlite3.Connection, new: sqlite3.Connection, table: str) -> bool:
    """Copy the rows of a table, from its start and, past what can't be read, from its end. Returns
    whether some could not be read."""
    name = '"{}"'.format(table.replace('"', '""'))
    for order in ("", " ORDER BY rowid DESC"):
        rows = readable_rows(old, f"SELECT * FROM {name}{order}")  # noqa: S608 - quoted
        for row in rows:
            if row is None:
                return order != ""
            marks = ", ".join("?" * len(row))
            values = [_text(one) for one in row]
            new.execute(f"INSERT OR IGNORE INTO {name} VALUES ({marks})", values)  # noqa: S608
    return True


def _text(value: Any) -> Any:
    """A text as such where it is one; bytes that are none stay bytes."""
    if isinstance(value, bytes):
        with suppress(UnicodeDecodeError):
            return value.decode()
    return value


def _repair(db: sqlite3.Connection, rescued: RescuedDatabase) -> None:
    db.execute("PRAGMA foreign_keys = OFF")
    _repair_sessions(db, rescued)
    for table, id_, session, raw in _broken(db, "part", _is_sound_part):
        _set_aside(rescued, table, id_, session, raw)
        db.execute("DELETE FROM part WHERE id = ?", (id_,))
    for table, id_, session, raw in _broken(db, "message", _is_sound_message):
        _set_aside(rescued, table, id_, session, raw)
        if made := _message(db, id_, session):
            rescued.repairs.said[-1] = f"message {id_}: it was made again for the parts that it has"
            db.execute("UPDATE message SET data = ? WHERE id = ?", (made, id_))
        else:
            db.execute("DELETE FROM message WHERE id = ?", (id_,))
    orphans = db.execute(
        "SELECT id, session_id, data FROM part WHERE message_id NOT IN (SELECT id FROM message)"
    ).fetchall()
    for id_, session, raw in orphans:
        _set_aside(rescued, "part", text_of_column(id_), text_of_column(session), raw)
        db.execute("DELETE FROM part WHERE id = ?", (text_of_column(id_),))


def _repair_sessions(db: sqlite3.Connection, rescued: RescuedDatabase) -> None:
    known = {bytes(row[1]).decode() for row in db.execute("PRAGMA table_info(session)")}
    for column in known.intersection(_NULLABLE):
        rows = db.execute(f"SELECT id, {column} FROM session WHERE {column} IS NOT NULL").fetchall()  # noqa: S608 - of the list above
        for id_, raw in rows:
            if _value(raw) is None:
                own = text_of_column(id_)
                _set_aside(rescued, f"session ({column})", own, own, raw)
                db.execute(f"UPDATE session SET {column} = NULL WHERE id = ?", (own,))  # noqa: S608


def _broken(
    db: sqlite3.Connection, table: str, is_sound: Callable[[JsonObject], bool]
) -> list[tuple[str, str, str, Any]]:
    """The rows of a table whose JSON isn't sound, each with the table, its id and its session."""
    rows: list[tuple[str, str, str, Any]] = []
    for id_, session, raw in db.execute(f"SELECT id, session_id, data FROM {table}"):  # noqa: S608 - a name of ours
        value = _value(raw)
        if not isinstance(value, dict) or not is_sound(cast("JsonObject", value)):
            rows.append((table, text_of_column(id_), text_of_column(session), raw))
    return rows


def _value(raw: Any) -> object:
    """The JSON of a column, None where it is none."""
    if not isinstance(raw, bytes):
        return None
    try:
        return strict_json(raw)
    except (ValueError, RecursionError):
        return None


def _is_sound_part(value: JsonObject) -> bool:
    kind = value.get("type")
    if not isinstance(kind, str) or not all(
        isinstance(value.get(name), str) for name in _NEEDED.get(kind, ())
    ):
        return False
    return kind != "tool" or isinstance(object_of(value.get("state")).get("status"), str)


def _is_sound_message(value: JsonObject) -> bool:
    created = object_of(value.get("time")).get("created")
    return value.get("role") in ("user", "assistant") and isinstance(created, int | float)


def _message(db: sqlite3.Connection, id_: str, session: str) -> str:
    """The JSON of a message that is lost, by its parts and another message; "" where none is
    left."""
    parts = db.execute("SELECT data FROM part WHERE message_id = ? ORDER BY id", (id_,)).fetchall()
    if not parts:
        return ""
    role = role_of(object_of(_value(raw)) for (raw,) in parts)
    others = db.execute(
        "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created", (session,)
    ).fetchall()
    like = [(text_of_column(own), object_of(_value(raw))) for own, raw in others]
    alike = [one for _, one in like if one.get("role") == role]
    sample = alike[0] if alike else JsonObject()
    (created,) = db.execute("SELECT time_created FROM message WHERE id = ?", (id_,)).fetchone()
    made = {"agent": "build", **sample, "role": role, "time": {"created": created}}
    if role == "assistant":
        before = [own for own, one in like if own < id_ and one.get("role") == "user"]
        tokens = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
        made |= {"parentID": before[-1] if before else id_, "cost": 0, "tokens": tokens}
        made.pop("error", None)
    made.pop("summary", None)
    return json.dumps(made, ensure_ascii=False)


def _set_aside(rescued: RescuedDatabase, table: str, id_: str, session: str, raw: Any) -> None:
    """Note a row that is changed or taken out, as it was."""
    rescued.sessions.add(session)
    row = {"table": table, "id": id_, "session": session, "data": text_of_column(raw)}
    rescued.repairs.add(0, f"{table} {id_}: not readable, set aside", encoded(row))
