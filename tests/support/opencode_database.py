"""opencode's database, made by code; damage to it; and when the program refuses a session in it.

`refusal` is what `opencode export` of version 1.18 does, tried offline over damaged databases: it
reads the JSON of each message and part of a session, and says that there is no such session where
one can't be read. What must be in a message or a part besides is what the program's screen reads.
"""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

SESSION = "ses_1111111111111111111111111a"
_SCHEMA = """
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, slug text NOT NULL,
    directory text NOT NULL, title text NOT NULL, version text NOT NULL, metadata text,
    permission text, model text, time_created integer NOT NULL, time_updated integer NOT NULL);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
    time_updated integer NOT NULL, data text NOT NULL,
    FOREIGN KEY (session_id) REFERENCES session(id) ON DELETE CASCADE);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
    time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL,
    FOREIGN KEY (message_id) REFERENCES message(id) ON DELETE CASCADE);
CREATE INDEX part_session_idx ON part (session_id);
CREATE TABLE credential (id text PRIMARY KEY, value text NOT NULL);
"""
_TOKENS = {"input": 1, "output": 2, "reasoning": 0, "cache": {"read": 0, "write": 0}}


def make(path: Path, turns: int = 8) -> None:
    """A session of so many turns, each with a call, and somebody signed in."""
    with closing(sqlite3.connect(path)) as db:
        db.executescript(_SCHEMA)
        row = (SESSION, "global", "fine-fox", "/w", "A title", "1.18.33", "{}", None, None, 1, 1)
        db.execute(f"INSERT INTO session VALUES ({', '.join('?' * 11)})", row)
        db.execute("INSERT INTO credential VALUES ('one', 'a secret')")
        for n in range(turns):
            asked, answered = f"msg_{n:03}a", f"msg_{n:03}b"
            time = {"created": 1_767_225_600_000 + n}
            model = {"providerID": "anthropic", "modelID": "claude-sonnet-5-5"}
            _message(db, asked, {"role": "user", "time": time, "agent": "build", "model": model})
            _part(db, f"prt_{n:03}a", asked, {"type": "text", "text": f"prompt {n} é"})
            answer: dict[str, Any] = {
                "role": "assistant", "time": time, "parentID": asked, **model, "mode": "build",
                "agent": "build", "path": {"cwd": "/w", "root": "/w"}, "cost": 0.1,
                "tokens": _TOKENS, "finish": "stop",
            }  # fmt: skip
            _message(db, answered, answer)
            state = {
                "status": "completed",
                "input": {"command": "ls"},
                "output": "a",
                "title": "ls",
            }
            call = {"type": "tool", "callID": f"c{n}", "tool": "bash", "state": state}
            _part(db, f"prt_{n:03}b", answered, {"type": "step-start"})
            _part(db, f"prt_{n:03}c", answered, call)
            _part(db, f"prt_{n:03}d", answered, {"type": "text", "text": f"answer {n} é"})
        db.commit()


def _message(db: sqlite3.Connection, id_: str, data: dict[str, Any]) -> None:
    db.execute("INSERT INTO message VALUES (?, ?, 1, 1, ?)", (id_, SESSION, json.dumps(data)))


def _part(db: sqlite3.Connection, id_: str, message: str, data: dict[str, Any]) -> None:
    row = (id_, message, SESSION, json.dumps(data, ensure_ascii=False))
    db.execute("INSERT INTO part VALUES (?, ?, ?, 1, 1, ?)", row)


def damage(path: Path, dice: random.Random) -> None:
    """One to four damages to rows, and to the JSON in them."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA foreign_keys = OFF")
        for _ in range(dice.randint(1, 4)):
            table = dice.choice(["message", "part", "part"])
            id_, data = dice.choice(db.execute(f"SELECT id, data FROM {table}").fetchall())
            text = data if isinstance(data, str) else ""
            made: list[Any] = [
                text[: len(text) // 2], "", dice.randbytes(20), "[1]", "{}", "\0" * 50, f"{text}x",
                text.replace("role", "rule").replace("text", "test"),
            ]  # fmt: skip
            if dice.random() < 0.15:
                db.execute(f"DELETE FROM {table} WHERE id = ?", (id_,))
            else:
                db.execute(f"UPDATE {table} SET data = ? WHERE id = ?", (dice.choice(made), id_))
        if dice.random() < 0.2:
            db.execute("UPDATE session SET metadata = '{'")
        db.commit()


def refusal(path: Path) -> str:
    """Why the program opens the session not, or shows less than it should; "" where it opens it."""
    with closing(sqlite3.connect(path)) as db:
        messages = db.execute("SELECT id, data FROM message").fetchall()
        parts = db.execute("SELECT message_id, data FROM part").fetchall()
        (metadata,) = db.execute("SELECT metadata FROM session").fetchone()
    try:
        read = {id_: json.loads(data) for id_, data in messages}
        read_parts = [(message, json.loads(data)) for message, data in parts]
        json.loads(metadata or "{}")
    except (ValueError, TypeError):
        return "Session not found"
    if not all(isinstance(one, dict) and "role" in one for one in read.values()):
        return "a message without a role"
    if not all(isinstance(one, dict) and "type" in one for _, one in read_parts):
        return "a part without a type"
    if not all(message in read for message, _ in read_parts):
        return "a part without its message"
    return "" if read else "no messages"
