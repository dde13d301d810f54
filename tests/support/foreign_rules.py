"""Why other agents' programs refuse a session, or lose of it what they should open: as read from
the programs themselves. Shares nothing with `tui.session.rescue`.

    pi             `core/session-manager.js`, version 0.73: `loadEntriesFromFile` passes over lines
                   that are no JSON and opens nothing unless the first entry is a `session` with an
                   id (and then writes an empty session over it); `buildSessionContext` follows
                   `parentId` from the last entry without a guard against circles, and reads the
                   role of each `message`
    Codex          `thread/resume` of its app server, version 0.171: the file must be UTF-8, and its
                   first line a `session_meta` with a UUID; other lines that it can't read are
                   passed over
    Claude Code    `getSessionMessages` of its SDK, version 0.3: from the last message along
                   `parentUuid`, past entries that say nothing, with the pieces of the same answer
                   and the results that hang on them; and what the API says against it

Over 300 damaged sessions of each, the first two were compared with the programs, offline; for the
third, the messages that the SDK gives were checked.
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

from tui.context.validate import check
from tui.core.messages import Message

Json = Any
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NOT_OF_THE_RECORD = frozenset({"B06", "B15", "B27"})
"""Findings about what the program itself sees to with each request: the order of results, its last
message, and fields that it leaves out."""


def refusal(name: str, data: bytes) -> str:
    """Why the program `name` does not open it, "" where it does."""
    return {"pi": pi, "codex": codex, "claude_code": claude_code}[name](data)


def _entries(data: bytes) -> list[Json]:
    found: list[Json] = []
    for line in data.decode("utf-8", "replace").strip("\ufeff \r\n\t").split("\n"):
        try:
            value = json.loads(line) if line.strip() else None
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def pi(data: bytes) -> str:
    entries = _entries(data)
    if not entries or entries[0].get("type") != "session":
        return "no session first"
    if not isinstance(entries[0].get("id"), str):
        return "no id"
    rest = entries[1:]
    if entries[0].get("version") in (1, None) or not rest:
        way = rest
    else:
        known = {one["id"]: one for one in rest if isinstance(one.get("id"), str)}
        way, at, seen = list[Json](), rest[-1], set[int]()
        while at is not None:
            if id(at) in seen:
                return "hangs"
            seen.add(id(at))
            way.append(at)
            parent = at.get("parentId")
            at = known.get(parent) if isinstance(parent, str) else None
    messages = [one.get("message") for one in way if one.get("type") == "message"]
    if None in messages:
        return "a message that is none"
    return "" if messages else "no messages"


def codex(data: bytes) -> str:
    try:
        first = json.loads(data.decode().split("\n", 1)[0])
    except ValueError:
        return "the first line can't be read"
    if not isinstance(first, dict) or cast("Json", first).get("type") != "session_meta":
        return "no session_meta first"
    meta = cast("Json", first).get("payload")
    own = cast("Json", meta).get("id") if isinstance(meta, dict) else None
    return "" if isinstance(own, str) and _UUID.fullmatch(own) else "no UUID"


def claude_code(data: bytes) -> str:
    records: dict[str, Json] = {
        one["uuid"]: one
        for one in _entries(data)
        if isinstance(one.get("uuid"), str) and isinstance(one.get("type"), str)
    }
    spoken = [one for one in records.values() if one["type"] in ("user", "assistant")]
    main = [one for one in spoken if not one.get("isSidechain")]
    way: list[Json] = []
    at: Json = main[-1] if main else None
    while at is not None and at not in way:
        way.insert(0, at)
        at = _before(at, records)
    told: list[Json] = []
    for place, one in enumerate(way):
        told.append(one)
        same = _answer_id(one)
        if same and not any(_answer_id(later) == same for later in way[place + 1 :]):
            told += [o for o in main if o not in way and _answer_id(o) == same]
        beside = {id(o) for o in told if same and _answer_id(o) == same} | {id(one)}
        for other in main:
            fresh = other not in told and other not in way and other["type"] == "user"
            if fresh and id(_before(other, records)) in beside and "tool_result" in str(other):
                told.append(other)
    messages: list[Json] = []
    for one in told:
        said = one.get("message")
        if not isinstance(said, dict):
            return "a message that is none"
        role, content = cast("Json", said).get("role"), cast("Json", said).get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if messages and messages[-1]["role"] == role and isinstance(blocks, list):
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    if not messages:
        return "no messages"
    last = f"messages.{len(messages) - 1}"
    wrong = [
        f"{one.code} {one.where}"
        for one in check(cast("list[Message]", messages))
        if one.code not in _NOT_OF_THE_RECORD and (one.code, one.where) != ("B16", last)
    ]
    return ", ".join(wrong)


def _before(record: Json, records: dict[str, Json]) -> Json:
    at, seen = record.get("parentUuid"), set[str]()
    while isinstance(at, str) and at in records and at not in seen:
        if records[at]["type"] in ("user", "assistant"):
            return records[at]
        seen.add(at)
        at = records[at].get("parentUuid")
    return None


def _answer_id(record: Json) -> str:
    said = record.get("message")
    own = cast("Json", said).get("id") if isinstance(said, dict) else None
    return own if isinstance(own, str) and record["type"] == "assistant" else ""
