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
                   `parentUuid`, with the pieces of the same answer and the results that hang on
                   them, after a compaction through the messages that it left as they were; and
                   what the API says against what comes after the last compaction

Over 300 damaged sessions of each, the first two were compared with the programs, offline; for the
third, the messages that the SDK gives were checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
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
    try:
        told = claude_code_messages(data)
    except (TypeError, AttributeError, KeyError) as error:
        return f"fails: {error!r}"
    boundaries = [place for place, one in enumerate(told) if _is_boundary(one)]
    told = told[boundaries[-1] + 1 :] if boundaries else told
    messages: list[Json] = []
    pieces: dict[str, Json] = {}
    for one in told:
        if one["type"] not in ("user", "assistant"):
            continue
        said = one.get("message")
        if not isinstance(said, dict):
            return "a message that is none"
        role, content = cast("Json", said).get("role"), cast("Json", said).get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not isinstance(blocks, list):
            return "content that is none"
        if one["type"] == "user" and not _results(one):
            pieces = {}
        own = _answer_id(one)
        message: dict[str, Json] = pieces.get(own) or (messages[-1] if messages else {})
        if message.get("role") != role:
            messages.append(message := {"role": role, "content": []})
        if own:
            pieces[own] = message
        message["content"] += blocks
    if not messages:
        return "no messages"
    last = f"messages.{len(messages) - 1}"
    wrong = [
        f"{one.code} {one.where}"
        for one in check(cast("list[Message]", messages))
        if one.code not in _NOT_OF_THE_RECORD and (one.code, one.where) != ("B16", last)
    ]
    return ", ".join(wrong)


def claude_code_messages(data: bytes) -> list[Json]:
    """The entries that Claude Code opens, in its order."""
    entries = [
        one
        for one in _entries(data)
        if one.get("type") in ("user", "assistant", "progress", "system", "attachment")
        and isinstance(one.get("uuid"), str)
    ]
    known: dict[str, Json] = {one["uuid"]: {**one} for one in entries}
    for one in known.values():
        if _is_boundary(one):
            _move_preserved(one.get("compactMetadata"), known)
    places = {one["uuid"]: place for place, one in enumerate(entries)}
    ends = [one for one in known.values() if _ends(one)]
    followed = {_parent(one) for one in ends}
    ends = [one for one in ends if one["uuid"] not in followed]
    at: Json = None
    for end in sorted(ends, key=lambda one: -places[one["uuid"]]):
        at = next((one for one in _up(end, known) if one["type"] in ("user", "assistant")), None)
        if at is not None:
            break
    way = [*reversed(list(_up(at, known)))]
    return _with_parallel_calls(known, way)


def _is_boundary(entry: Json) -> bool:
    return entry["type"] == "system" and entry.get("subtype") == "compact_boundary"


def _move_preserved(metadata: Json, known: dict[str, Json]) -> None:
    """What a compaction left as it was follows its anchor, and what followed that follows it."""
    given: dict[str, Json] = cast("Json", metadata) if isinstance(metadata, dict) else {}
    messages, segment = given.get("preservedMessages"), given.get("preservedSegment")
    if messages:
        uuids: list[str] = messages["uuids"]
        anchor: Json = messages.get("anchorUuid")
        if not uuids or any(one not in known for one in uuids):
            return
        before: Json = anchor
        for one in uuids:
            known[one]["parentUuid"] = before
            before = one
        first, last = uuids[0], uuids[-1]
    elif segment:
        first, anchor, last = (segment.get(f"{one}Uuid") for one in ("head", "anchor", "tail"))
        if first in known:
            known[first]["parentUuid"] = anchor
    else:
        return
    for one in known.values():
        if one.get("parentUuid") == anchor and one["uuid"] != first:
            one["parentUuid"] = last


def _ends(entry: Json) -> bool:
    attached = entry.get("attachment")
    kind = cast("Json", attached).get("type") if isinstance(attached, dict) else None
    outside = entry.get("isSidechain") or entry.get("teamName") or kind == "fork_briefing"
    return not outside and entry["type"] != "progress"


def _parent(entry: Json) -> str:
    own = entry.get("parentUuid")
    return own if isinstance(own, str) else ""


def _up(entry: Json, known: dict[str, Json]) -> Iterator[Json]:
    seen = set[str]()
    while entry is not None and entry["uuid"] not in seen:
        seen.add(entry["uuid"])
        yield entry
        entry = known.get(_parent(entry))


def _with_parallel_calls(known: dict[str, Json], way: list[Json]) -> list[Json]:
    pieces: dict[str, list[Json]] = {}
    for one in known.values():
        pieces.setdefault(_answer_id(one), []).append(one)
    makers = _makers(known)
    hanging = _hanging(known, makers)
    shown = {one["uuid"] for one in way}
    on_way = {call for one in way for call in _results(one)}
    after: dict[str, list[Json]] = {}
    for answer in dict.fromkeys(_answer_id(one) for one in way if _answer_id(one)):
        same = [one["uuid"] for one in pieces[answer]]
        more = [one for one in pieces[answer] if one["uuid"] not in shown]
        loose = [o for one in same for o in hanging.get(one, []) if o["uuid"] not in shown]
        results = [one for one in loose if one["parentUuid"] in same]
        answered = on_way | {call for one in results for call in _results(one)}
        for one in known.values():
            made = [makers.get(call) for call in _results(one) if call not in answered]
            here = any(each and each["uuid"] in same for each in made)
            if here and one in loose and one not in results:
                results.append(one)
                answered |= set(_results(one))
        beside = [*sorted(more, key=_time), *sorted(results, key=_time)]
        last = next(one for one in reversed(way) if _answer_id(one) == answer)
        after[last["uuid"]] = list({one["uuid"]: one for one in beside}.values())
        shown |= {one["uuid"] for one in beside}
    told = [each for one in way for each in (one, *after.get(one["uuid"], []))]
    return [one for one in told if not one.get("isSidechain")]


def _makers(known: dict[str, Json]) -> dict[str, Json]:
    """The entry that made each call, None where two answers have it."""
    makers: dict[str, Json] = {}
    for one in known.values():
        own = _answer_id(one)
        for call in _ids(one, "tool_use", "id") if own else ():
            twice = call in makers and (makers[call] is None or _answer_id(makers[call]) != own)
            makers[call] = None if twice else one
    return makers


def _hanging(known: dict[str, Json], makers: dict[str, Json]) -> dict[str, list[Json]]:
    """The results that hang on an entry: by parent, by source, or by their call."""
    found: dict[str, list[Json]] = {}
    for one in known.values():
        if not _results(one) or not one.get("parentUuid"):
            continue
        near = [known.get(str(one.get("sourceToolAssistantUUID"))), *map(makers.get, _results(one))]
        sources = [each["uuid"] for each in near if each and _side(each) == _side(one)]
        for source in dict.fromkeys([str(one["parentUuid"]), *sources]):
            found.setdefault(source, []).append(one)
    return found


def _results(entry: Json) -> list[str]:
    return _ids(entry, "tool_result", "tool_use_id") if entry["type"] == "user" else []


def _time(entry: Json) -> str:
    return str(entry.get("timestamp") or "")


def _side(entry: Json) -> tuple[bool, Json]:
    return bool(entry.get("isSidechain")), entry.get("agentId")


def _answer_id(entry: Json) -> str:
    own = _said(entry).get("id")
    return own if isinstance(own, str) and entry["type"] == "assistant" else ""


def _ids(entry: Json, kind: str, key: str) -> list[str]:
    content = _said(entry).get("content")
    blocks = cast("list[Json]", content) if isinstance(content, list) else []
    objects = [cast("dict[str, Json]", one) for one in blocks if isinstance(one, dict)]
    calls = [one for one in objects if one.get("type") == kind]
    return [own for one in calls if isinstance(own := one.get(key), str)]


def _said(entry: Json) -> dict[str, Json]:
    message = entry.get("message")
    return cast("dict[str, Json]", message) if isinstance(message, dict) else {}
