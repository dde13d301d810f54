"""First line, ids and links to parents: what each program needs to find the conversation.

pi skips lines that are no JSON, reads nothing unless the first record is a `session` with an id,
and follows `parentId` from the last record without a guard against circles (badlogic/pi-mono,
`packages/coding-agent/src/core/session-manager.ts`: `loadEntriesFromFile`, `buildSessionContext`).
Claude Code follows `parentUuid` from the last record, and Codex needs a `session_meta` with an id:
these two rules were not compared with their source.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from tui.core.messages import object_of
from tui.session.jsonl import JsonObject
from tui.session.rescue.lines import MendedLine, Repairs, encoded, with_value

_KEYS = {"claude_code": ("uuid", "parentUuid"), "pi": ("id", "parentId")}
_SPACE = uuid.UUID("6f2a5e0c-7a55-4a0e-9a0d-2f5f1d1f7c11")
_FIRST = {"pi": "session", "codex": "session_meta"}


def repair(
    found: Literal["claude_code", "codex", "pi"], lines: list[MendedLine], repairs: Repairs
) -> list[MendedLine]:
    """The lines with a first record, ids of their own, and parents without gaps or circles."""
    if found in _FIRST:
        lines = _with_first(found, lines, repairs)
    if found == "codex":
        return lines
    key, parent = _KEYS[found]
    lines = _distinct(lines, key, repairs)
    if found == "claude_code":
        lines = _with_session(lines, repairs)
    return _linked(lines, key, parent, repairs)


def refusals(
    found: Literal["claude_code", "codex", "pi"], values: Sequence[JsonObject]
) -> tuple[str, ...]:
    """Why these records would not open."""
    if not values:
        return ("there is no record",)
    if found in _FIRST and not _is_first(found, values[0]):
        return (f"the first record is no {_FIRST[found]} with an id",)
    if found == "codex":
        return ()
    key, parent = _KEYS[found]
    ids = [value[key] for value in values if isinstance(value.get(key), str)]
    if len(set(ids)) < len(ids):
        return ("two records have one id",)
    parents = {value[key]: value.get(parent) for value in values if isinstance(value.get(key), str)}
    return () if not _unsound(list(parents), parents) else ("a record has no way to the first",)


def _is_first(found: str, value: JsonObject) -> bool:
    payload = object_of(value.get("payload")) if found == "codex" else value
    return value.get("type") == _FIRST[found] and isinstance(payload.get("id"), str)


def _with_first(found: str, lines: list[MendedLine], repairs: Repairs) -> list[MendedLine]:
    if _is_first(found, lines[0].value):
        return lines
    for place, line in enumerate(lines):
        if _is_first(found, line.value):
            repairs.add(line.number, "moved to the start of the file", b"")
            return [line, *lines[:place], *lines[place + 1 :]]
    time = next((t for one in lines if isinstance(t := one.value.get("timestamp"), str)), "")
    time = time or "1970-01-01T00:00:00.000Z"
    own = str(uuid.uuid5(_SPACE, lines[0].raw.hex()))
    header: dict[str, Any] = {"id": own, "timestamp": time, "cwd": "/"}
    if found == "pi":
        tree = any("parentId" in line.value for line in lines)
        value = {"type": "session", **({"version": 3} if tree else {}), **header}
    else:
        header |= {"originator": "codex_cli_rs", "cli_version": "0.0.0", "instructions": None}
        value = {"timestamp": time, "type": "session_meta", "payload": header}
    repairs.add(0, "the first record was missing: one was made, with a new id", b"")
    return [MendedLine(0, encoded(value), value), *lines]


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


def _with_session(lines: list[MendedLine], repairs: Repairs) -> list[MendedLine]:
    ids = Counter(s for line in lines if isinstance(s := line.value.get("sessionId"), str))
    session = ids.most_common(1)[0][0] if ids else str(uuid.uuid5(_SPACE, lines[0].raw.hex()))
    out: list[MendedLine] = []
    for line in lines:
        if "uuid" in line.value and not isinstance(line.value.get("sessionId"), str):
            repairs.add(line.number, "sessionId was missing", line.raw)
            out.append(with_value(line, {**line.value, "sessionId": session}))
        else:
            out.append(line)
    return out


def _linked(lines: list[MendedLine], key: str, parent: str, repairs: Repairs) -> list[MendedLine]:
    owners = {s: line for line in lines if isinstance(s := line.value.get(key), str)}
    parents = {own: line.value.get(parent) for own, line in owners.items()}
    order = [own for own in parents if owners[own].value.get("type") != "session"]
    before: dict[str, str | None] = {}
    last: dict[bool, str] = {}
    for own in order:
        side = owners[own].value.get("isSidechain") is True
        before[own] = last.get(side)
        last[side] = own
    changed: set[str] = set()
    while bad := _unsound(order, parents):
        for own in bad:
            # A link that was mended once and still leads in a circle is cut.
            parents[own] = None if own in changed else before[own]
            changed.add(own)
            break
    out: list[MendedLine] = []
    for line in lines:
        own = line.value.get(key)
        if isinstance(own, str) and own in changed:
            repairs.add(line.number, "its parent was lost: linked to the record before", line.raw)
            out.append(with_value(line, {**line.value, parent: parents[own]}))
        else:
            out.append(line)
    return out


def _unsound(order: Sequence[str], parents: dict[str, Any]) -> list[str]:
    """Those whose own link is missing in the file, or closes a circle."""
    rooted: set[str] = set()
    bad: list[str] = []
    for own in order:
        path: dict[str, None] = {}
        at: Any = own
        while at is not None and at not in rooted:
            if not isinstance(at, str) or at not in parents:
                bad.append(list(path)[-1])
                break
            if at in path:
                circle = list(path)[list(path).index(at) :]
                bad.append(min(circle, key=list(order).index))
                break
            path[at] = None
            at = parents[at]
        rooted.update(path)
    return bad
