"""First line, ids and links to parents: what each program needs to find the conversation.

pi skips lines that are no JSON, reads nothing unless the first record is a `session` with an id,
reads a role from every `message`, and follows `parentId` from the last record without a guard
against circles (badlogic/pi-mono, `packages/coding-agent/src/core/session-manager.ts`:
`loadEntriesFromFile`, `buildSessionContext`). Codex refuses a file that isn't UTF-8 or doesn't
begin with a `session_meta` whose id is a UUID, and skips other lines that it can't read; that was
tried with version 0.171. Claude Code follows `parentUuid` from the last record.
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from typing import Any, Literal, cast

from tui.core.messages import object_of
from tui.session.jsonl import JsonObject
from tui.session.rescue import calls
from tui.session.rescue.lines import MendedLine, Repairs, encoded, with_value
from tui.session.rescue.opened import is_boundary, is_in_tree, preserved

_KEYS = {"claude_code": ("uuid", "parentUuid"), "pi": ("id", "parentId")}
_SPACE = uuid.UUID("6f2a5e0c-7a55-4a0e-9a0d-2f5f1d1f7c11")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_TEXTS = ("timestamp", "cwd", "originator", "cli_version")
"""What Codex reads of its `session_meta` in any case."""
_FIRST = {"pi": "session", "codex": "session_meta"}


def repair(
    found: Literal["claude_code", "codex", "pi"],
    lines: list[MendedLine],
    repairs: Repairs,
    name: str = "",
) -> list[MendedLine]:
    """The lines with a first record, ids of their own, and parents without gaps or circles. A
    session that has lost its id gets the one in the `name` of its file, or else a new one."""
    own = _UUID.search(name)
    id_ = own[0] if own else str(uuid.uuid5(_SPACE, lines[0].raw.hex()))
    if found == "pi":
        lines = _speaking(lines, repairs)
    if found in _FIRST:
        lines = _with_first(found, lines, repairs, id_)
    if found == "codex":
        return lines
    key, parent = _KEYS[found]
    lines = _distinct(lines, key, repairs)
    if found == "claude_code":
        lines = _with_session(lines, repairs, id_)
        lines = _with_sides(_with_preserved(lines, repairs), repairs)
    return _linked(lines, key, parent, repairs)


def _is_first(found: str, value: JsonObject) -> bool:
    payload = object_of(value.get("payload")) if found == "codex" else value
    if value.get("type") != _FIRST[found]:
        return False
    own = payload.get("id")
    if found == "pi" or not isinstance(own, str):
        return isinstance(own, str)
    texts = [value.get("timestamp"), *(payload.get(name) for name in _TEXTS)]
    return _UUID.fullmatch(own) is not None and all(isinstance(one, str) for one in texts)


def _with_first(
    found: str, lines: list[MendedLine], repairs: Repairs, own: str
) -> list[MendedLine]:
    if _is_first(found, lines[0].value):
        return lines
    for place, line in enumerate(lines):
        if _is_first(found, line.value):
            repairs.add(line.number, "moved to the start of the file", b"")
            return [line, *lines[:place], *lines[place + 1 :]]
    time = _any_text(lines, "timestamp") or "1970-01-01T00:00:00.000Z"
    header: dict[str, Any] = {"id": own, "timestamp": time, "cwd": _any_text(lines, "cwd") or "/"}
    broken = next((one for one in lines if one.value.get("type") == _FIRST[found]), None)
    known = object_of(broken.value.get("payload")) if broken and found == "codex" else {}
    known = {name: one for name, one in known.items() if isinstance(one, str)}
    if found == "pi":
        tree = any("parentId" in line.value for line in lines)
        known = broken.value if broken else {"version": 3} if tree else {}
        value = {**known, "type": "session", **header}
    else:
        made_by = {"originator": "codex_cli_rs", "cli_version": "0.0.0", "instructions": None}
        own = known["id"] if _UUID.fullmatch(known.get("id", "")) else own
        payload = made_by | header | known | {"id": own}
        value = {"timestamp": time, "type": "session_meta", "payload": payload}
    if broken:
        repairs.add(
            broken.number,
            "the first record lacked what the program reads of it: it was made again",
            broken.raw,
        )
    else:
        repairs.add(0, "the first record was missing: one was made", b"")
    return [MendedLine(0, encoded(value), value), *(one for one in lines if one is not broken)]


def _any_text(lines: list[MendedLine], name: str) -> str:
    """The first text in a field of a record, or of its payload; "" where there is none."""
    for line in lines:
        for value in (line.value, object_of(line.value.get("payload"))):
            if isinstance(found := value.get(name), str) and found:
                return found
    return ""


def _speaking(lines: list[MendedLine], repairs: Repairs) -> list[MendedLine]:
    """The lines without messages that nobody says: pi fails on one without a role."""
    out: list[MendedLine] = []
    for line in lines:
        role = object_of(line.value.get("message")).get("role")
        if line.value.get("type") == "message" and not isinstance(role, str):
            repairs.add(line.number, "a message without a role: set aside", line.raw)
        else:
            out.append(line)
    return out


def _distinct(lines: list[MendedLine], key: str, repairs: Repairs) -> list[MendedLine]:
    seen: dict[str, JsonObject] = {}
    out: list[MendedLine] = []
    for line in lines:
        own = line.value.get(key)
        if not isinstance(own, str):
            out.append(line)
        elif own not in seen:
            seen[own] = line.value
            out.append(line)
        elif seen[own] == line.value:
            repairs.add(line.number, "a copy of an earlier record: set aside", line.raw)
        else:
            new = str(uuid.uuid5(_SPACE, f"{own} {line.number} {len(out)}"))
            repairs.add(line.number, "its id was taken: it has a new one", line.raw)
            seen[new] = line.value
            out.append(with_value(line, {**line.value, key: new}))
    return out


def _with_session(lines: list[MendedLine], repairs: Repairs, own: str) -> list[MendedLine]:
    ids = Counter(s for line in lines if isinstance(s := line.value.get("sessionId"), str))
    session = ids.most_common(1)[0][0] if ids else own
    out: list[MendedLine] = []
    for line in lines:
        if "uuid" in line.value and not isinstance(line.value.get("sessionId"), str):
            repairs.add(line.number, "sessionId was missing", line.raw)
            out.append(with_value(line, {**line.value, "sessionId": session}))
        else:
            out.append(line)
    return out


def _with_preserved(lines: list[MendedLine], repairs: Repairs) -> list[MendedLine]:
    """The lines with compactions that name only records that are there as what they left as it was:
    the program fails on other names, or forgets all of them."""
    known = {str(line.value["uuid"]) for line in lines if is_in_tree(line.value)}
    out: list[MendedLine] = []
    for line in lines:
        metadata = line.value.get("compactMetadata")
        if not is_boundary(line.value) or not isinstance(metadata, dict):
            out.append(line)
            continue
        sound = {**cast("JsonObject", metadata)}
        own, kept = line.value.get("uuid"), preserved(line.value)
        anchor, uuids = kept.get("anchorUuid"), kept.get("uuids")
        named = cast("list[Any]", uuids) if isinstance(uuids, list) else []
        names = [one for one in named if isinstance(one, str) and one in known - {own, anchor}]
        anchor = anchor if isinstance(anchor, str) and anchor in known else own
        segment = object_of(sound.get("preservedSegment"))
        ends = [segment.get(name) for name in ("headUuid", "anchorUuid", "tailUuid")]
        if names:
            sound["preservedMessages"] = {
                **kept,
                "uuids": list(dict.fromkeys(names)),
                "anchorUuid": anchor,
            }
        elif not all(isinstance(one, str) and one in known for one in ends):
            sound.pop("preservedSegment", None)
        if not names:
            sound.pop("preservedMessages", None)
        if sound == metadata:
            out.append(line)
        else:
            repairs.add(
                line.number, "named records that are lost as what its compaction left", line.raw
            )
            out.append(with_value(line, {**line.value, "compactMetadata": sound}))
    return out


def _with_sides(lines: list[MendedLine], repairs: Repairs) -> list[MendedLine]:
    """The lines without marks of a side chain on what the conversation itself goes on from: the
    program leaves it out, or looks elsewhere for its end."""
    followed: set[str | None] = set()
    for line in reversed(lines):
        side = line.value.get("isSidechain") is True and _text_in(line, "uuid") not in followed
        if not side and is_in_tree(line.value):
            followed.add(_text_in(line, "parentUuid"))
    out: list[MendedLine] = []
    for line in lines:
        own = _text_in(line, "uuid")
        if own is not None and line.value.get("isSidechain") is True and own in followed:
            repairs.add(line.number, "was marked as a side chain, but isn't one", line.raw)
            out.append(with_value(line, {**line.value, "isSidechain": False}))
        else:
            out.append(line)
    return out


def _text_in(line: MendedLine, key: str) -> str | None:
    value = line.value.get(key)
    return value if isinstance(value, str) else None


def _linked(lines: list[MendedLine], key: str, parent: str, repairs: Repairs) -> list[MendedLine]:
    """The lines, each with a way to the first: what leads nowhere or in a circle is linked to the
    record before it, but for a compaction and its summary, which become roots. In one pass."""
    roots = {
        _text_in(line, key)
        for line in lines
        if is_boundary(line.value) or line.value.get("isCompactSummary") is True
    }
    parents: dict[str, Any] = {}
    sides: dict[str, bool] = {}
    for line in lines:
        in_tree = is_in_tree(line.value) if key == "uuid" else line.value.get("type") != "session"
        if isinstance(own := line.value.get(key), str) and in_tree:
            parents[own] = line.value.get(parent)
            if parents[own] is None and parents.keys() != {own} and calls.needs_parent(line.value):
                parents[own] = ""  # as if it was lost
            sides[own] = line.value.get("isSidechain") is True
    rooted: set[str] = set()
    last: dict[bool, str] = {}
    changed: set[str] = set()
    for start in parents:
        path: dict[str, None] = {}
        at: Any = start
        while at is not None and not (isinstance(at, str) and at in rooted):
            if isinstance(at, str) and at in parents and at not in path:
                path[at] = None
                at = parents[at]
                continue
            lost = next(reversed(path))  # its parent is not there, or closes a circle
            elsewhere = isinstance(at, str) and at not in path and at
            if elsewhere and (sides[lost] or sides[lost] not in last):
                break  # what it goes on from is in another file
            parents[lost] = None if lost in roots else last.get(sides[lost])
            changed.add(lost)
            at = parents[lost]
        rooted.update(path)
        last[sides[start]] = start
    out: list[MendedLine] = []
    for line in lines:
        own = line.value.get(key)
        if isinstance(own, str) and own in changed:
            what = "linked to the record before" if parents[own] else "a new beginning"
            repairs.add(line.number, f"its parent was lost: {what}", line.raw)
            out.append(with_value(line, {**line.value, parent: parents[own]}))
        else:
            out.append(line)
    return out
