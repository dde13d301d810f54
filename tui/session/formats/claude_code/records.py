"""Records of Claude Code, the lines of `~/.claude/projects/{folder}/{session}.jsonl`, and the ones
it opens, in the order in which it sends them.

As its SDK reads them (version 0.3, `getSessionMessages`): from the last record that is neither of a
sub-agent nor about progress, along `parentUuid`, and from a compaction on through the messages that
it left as they were; with the pieces of each answer that lie outside this path, and their results.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, cast

from tui.core.dataclass import dataclass, field
from tui.core.messages import object_of
from tui.session.jsonl import JsonObject

Records = Mapping[str, JsonObject]
"""The records of a session by their uuid, in the order of the file."""
ROLES = ("user", "assistant")
_KINDS = frozenset({*ROLES, "progress", "system", "attachment"})
_MARKS = frozenset({"parentUuid", "sessionId", "isSidechain", "leafUuid", "isSnapshotUpdate"})


def matches(value: JsonObject) -> bool:
    """True if an object is a record of this format."""
    kind = value.get("type")
    if not isinstance(kind, str) or "payload" in value:
        return False
    if kind == "queue-operation":
        return True
    if not _MARKS.isdisjoint(value):
        return True
    return kind in ROLES and "uuid" in value and "message" in value


def is_in_tree(record: JsonObject) -> bool:
    """True if the program follows links to the record: it passes over kinds it doesn't know."""
    return isinstance(record.get("uuid"), str) and record.get("type") in _KINDS


def is_boundary(record: JsonObject) -> bool:
    """True for the record of a compaction."""
    return record.get("type") == "system" and record.get("subtype") == "compact_boundary"


def needs_parent(record: JsonObject) -> bool:
    """True if a record can't be the first of a conversation: an answer, or the result of a call."""
    called = record.get("type") == "user" and bool(ids(record, "tool_result"))
    return called or record.get("type") == "assistant"


def blocks(record: JsonObject) -> Iterator[JsonObject]:
    """The blocks of a message that has some."""
    content = object_of(record.get("message")).get("content")
    if isinstance(content, list):
        for block in cast("list[Any]", content):
            if isinstance(block, dict):
                yield cast("JsonObject", block)


def ids(record: JsonObject, kind: str) -> list[str]:
    """The ids of its calls (`tool_use`), or of the calls that its results are for
    (`tool_result`)."""
    if "message" not in record:
        return []
    key = "id" if kind == "tool_use" else "tool_use_id"
    values = [block.get(key) for block in blocks(record) if block.get("type") == kind]
    return [own for own in values if isinstance(own, str)]


def answer_id(record: JsonObject) -> str:
    """Return the id that the pieces of one answer share; "" where it is no answer."""
    if record.get("type") != "assistant":
        return ""
    own = object_of(record.get("message")).get("id")
    return own if isinstance(own, str) else ""


def preserved(boundary: JsonObject) -> JsonObject:
    """The messages that a compaction left as they were: the `uuids`, and the `anchorUuid` of the
    record that they follow. Empty where there are none."""
    metadata = object_of(boundary.get("compactMetadata"))
    return object_of(metadata.get("preservedMessages")) if is_boundary(boundary) else {}


def text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


# The branch


def branch(records: Records) -> list[JsonObject]:
    """The messages of the conversation, and the records between. Empty where nobody speaks."""
    parents = _parents(records)
    path: list[str] = []
    at = _leaf(records, parents)
    seen = set[str]()
    while at is not None and at in records and at not in seen:
        seen.add(at)
        path.append(at)
        at = parents[at]
    path.reverse()
    parallel = _parallel_records(records, path)
    order = [records[own] for one in path for own in (one, *parallel.get(one, ()))]
    return list(_with_pieces_together(order))


def _parents(records: Records) -> dict[str, str | None]:
    """The record before each, after compactions that left messages as they were."""
    parents = {own: text_or_none(record.get("parentUuid")) for own, record in records.items()}
    for record in records.values():
        if not is_boundary(record):
            continue
        segment = object_of(object_of(record.get("compactMetadata")).get("preservedSegment"))
        if preserved_part := preserved(record):
            # one form lists each message that a compaction left
            uuids = [
                one
                for one in cast("list[Any]", preserved_part.get("uuids") or [])
                if one in records
            ]
            if uuids != preserved_part.get("uuids") or not uuids:
                continue
            anchor, first, last = (
                text_or_none(preserved_part.get("anchorUuid")),
                uuids[0],
                uuids[-1],
            )
            parents.update(zip(uuids, [anchor, *uuids], strict=False))
        elif segment:
            # the other names only the first and the last
            first, anchor, last = (
                text_or_none(segment.get(name)) for name in ("headUuid", "anchorUuid", "tailUuid")
            )
            if first in parents:
                parents[first] = anchor
        else:
            continue
        # whatever followed the anchor follows the messages that were left
        for own, parent in parents.items():
            if parent == anchor and own != first:
                parents[own] = last
    return parents


def _leaf(records: Records, parents: Mapping[str, str | None]) -> str | None:
    main = [own for own, record in records.items() if _can_be_last(record)]
    followed = {parents[own] for own in main}
    seen = set[str]()
    for own in reversed(main):
        at = None if own in followed else own
        while at is not None and at in records and at not in seen:
            if records[at].get("type") in ROLES:
                return at
            seen.add(at)
            at = parents[at]
    return None


def _can_be_last(record: JsonObject) -> bool:
    briefing = object_of(record.get("attachment")).get("type") == "fork_briefing"
    elsewhere = record.get("isSidechain") or record.get("teamName") or briefing
    return not elsewhere and record.get("type") != "progress"


@dataclass(slots=True)
class _Answers:
    """The pieces of answers by the answer's id, and of what stands beside the way: the results that
    hang on a piece, and the piece of each call, where a result may hang on another's."""

    pieces: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    results: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    callers: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    """None where two answers claim the call."""


def _answers(records: Records, way: Container[str]) -> _Answers:
    answers = _Answers()
    strays: list[str] = []
    for own, record in records.items():
        if answer := answer_id(record):
            answers.pieces.setdefault(answer, []).append(own)
        elif own not in way and (parent := text_or_none(record.get("parentUuid"))):
            calls = _results(record)
            if calls:
                answers.results.setdefault(parent, []).append(own)
            if not set(calls) <= set(ids(records.get(parent, {}), "tool_use")):
                strays.append(own)
    if strays:
        answers.callers = _callers(records)
    for own in strays:
        record = records[own]
        source = text_or_none(record.get("sourceToolAssistantUUID"))
        near = [source, *(answers.callers.get(call) for call in _results(record))]
        for piece in dict.fromkeys(one for one in near if one != record["parentUuid"]):
            if piece is not None and piece in records and _same_side(record, records[piece]):
                answers.results.setdefault(piece, []).append(own)
    return answers


def _callers(records: Records) -> dict[str, str | None]:
    callers: dict[str, str | None] = {}
    for own, record in records.items():
        answer = answer_id(record)
        for call in ids(record, "tool_use") if answer else ():
            before = callers.setdefault(call, own)
            if before is None or answer_id(records[before]) != answer:
                callers[call] = None
    return callers


def _results(record: JsonObject) -> list[str]:
    return ids(record, "tool_result") if record.get("type") == "user" else []


def _same_side(one: JsonObject, other: JsonObject) -> bool:
    sides = [(bool(each.get("isSidechain")), each.get("agentId")) for each in (one, other)]
    return sides[0] == sides[1]


def _parallel_records(records: Records, way: list[str]) -> dict[str, list[str]]:
    """Map the last piece of each answer on the path to its other pieces, then their results, that
    lie outside the path."""
    taken = set(way)
    answers = _answers(records, taken)
    places = {own: place for place, own in enumerate(records)} if answers.callers else {}
    answered = {call for own in way if answers.callers for call in _results(records[own])}
    last = {answer: own for own in way if (answer := answer_id(records[own]))}

    def by_time(own: str) -> str:
        return text_or_none(records[own].get("timestamp")) or ""

    parallel: dict[str, list[str]] = {}
    for answer in dict.fromkeys(answer_id(records[own]) for own in way):
        pieces = answers.pieces.get(answer, ())
        others = [own for own in pieces if own not in taken]
        hanging = dict.fromkeys(own for one in pieces for own in answers.results.get(one, ()))
        free = [own for own in hanging if own not in taken]
        results = [own for own in free if records[own]["parentUuid"] in pieces]
        known = {call for own in results for call in _results(records[own])}
        # a result outside the pieces counts only for a call that has no other result
        for own in sorted(set(free) - set(results), key=lambda own: places[own]):
            calls = _results(records[own])
            fresh = [call for call in calls if call not in answered and call not in known]
            if any(answers.callers.get(call) in pieces for call in fresh):
                known.update(calls)
                results.append(own)
        if others or results:
            parallel[last[answer]] = [*sorted(others, key=by_time), *sorted(results, key=by_time)]
            taken.update(parallel[last[answer]])
    return parallel


def _with_pieces_together(order: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """The records, each piece of an answer right after the one before it: between prompts, the
    program sends them as one message before their results."""
    groups: list[list[JsonObject]] = []
    turn: dict[str, list[JsonObject]] = {}
    for record in order:
        answer = answer_id(record)
        if record.get("type") == "user" and not ids(record, "tool_result"):
            turn = {}
        if answer in turn:
            turn[answer].append(record)
            continue
        groups.append([record])
        if answer:
            turn[answer] = groups[-1]
    return (record for group in groups for record in group)
