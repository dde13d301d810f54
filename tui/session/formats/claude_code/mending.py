"""Claude Code's sessions mended: messages as the API takes them again, links to parents, and a
result for every call.

The program follows `parentUuid` from the last record. Only the conversation that it opens is paired
(`branch`): other branches stay as they are.
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import Any, Literal, cast

from tui.core.dataclass import dataclass, field
from tui.core.messages import object_of
from tui.session.formats.claude_code.records import (
    ROLES,
    Records,
    blocks,
    branch,
    ids,
    is_boundary,
    is_in_tree,
    needs_parent,
    preserved,
    text_or_none,
)
from tui.session.formats.lines import MendedLine, Repairs, encoded
from tui.session.formats.links import distinct, linked, session_id
from tui.session.jsonl import JsonObject

_SPACE = uuid.UUID("0d0a6a8e-0f4c-4b6e-8a53-4b6b1d6cf0a2")
_LOST = "[The result of this call is lost]"
_NO_START = "[The beginning of this conversation is lost]"
_NO_SUMMARY = "[The summary of the conversation before this is lost]"
_NAME = re.compile(r"[A-Za-z0-9_-]+")
"""Pattern of what the API takes as an id, a tool's name or a type."""
_ONLY_USER = frozenset({"tool_result"})
_ONLY_ASSISTANT = frozenset({"tool_use", "thinking", "redacted_thinking", "server_tool_use"})


def repair_lines(lines: list[MendedLine], repairs: Repairs, name: str) -> list[MendedLine]:
    """The lines, so that Claude Code opens the conversation. `name` is that of the file."""
    lines = _sound_messages(lines, repairs)
    own = session_id(name, lines)
    lines = _with_session(distinct(lines, "uuid", repairs), repairs, own)
    lines = _with_sides(_with_preserved(lines, repairs), repairs)
    roots = {
        text_or_none(line.value.get("uuid"))
        for line in lines
        if is_boundary(line.value) or line.value.get("isCompactSummary") is True
    }
    keys = ("uuid", "parentUuid")
    lines = linked(lines, keys, repairs, is_in_tree, needs_parent=needs_parent, roots=roots)
    return _paired(lines, repairs)


def _sound_messages(lines: list[MendedLine], repairs: Repairs) -> list[MendedLine]:
    """The lines with messages that a request may have. What is no message is set aside."""
    out: list[MendedLine] = []
    for read in lines:
        line, kind = read, read.value.get("type")
        if "uuid" in line.value and not isinstance(kind, str):
            repairs.add(line.number, "a record without a type: set aside", line.raw)
            continue
        if not isinstance(line.value.get("isSidechain", False), bool):
            what = "isSidechain was neither true nor false"
            line = repairs.changed(line, what, {"isSidechain": False})
        if kind not in ROLES:
            out.append(line)
            continue
        message = object_of(line.value.get("message"))
        content = message.get("content")
        if message.get("role") != kind or not content or not isinstance(content, str | list):
            repairs.add(line.number, "a message without a role or content: set aside", line.raw)
            continue
        items = cast("list[Any]", content) if isinstance(content, list) else []
        objects = [cast("JsonObject", one) for one in items if isinstance(one, dict)]
        sound = [block for block in objects if _is_sound(block, kind)]
        if items and not sound:
            repairs.add(line.number, "a message that no request may have: set aside", line.raw)
            continue
        out.append(_with_blocks(line, sound, repairs) if len(sound) < len(items) else line)
    return out


def _is_sound(block: JsonObject, role: str) -> bool:
    kind = block.get("type")
    if not _is_name(kind):
        return False
    if kind in (_ONLY_USER if role == "assistant" else _ONLY_ASSISTANT):
        return False
    match kind:
        case "text":
            text = block.get("text")  # the program itself leaves out blank lines of its answers
            return isinstance(text, str) and bool(text if role == "assistant" else text.strip())
        case "thinking":
            given = (block.get("signature"), block.get("thinking"))
            return all(isinstance(one, str) for one in given) and bool(given[0])
        case "tool_use":
            named = _is_name(block.get("id")) and _is_name(block.get("name"))
            return named and isinstance(block.get("input"), dict)
        case "tool_result":
            content = block.get("content")
            sound = content is None or isinstance(content, str | list)
            return sound and _is_name(block.get("tool_use_id"))
        case _:
            return True


def _is_name(value: object) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _with_session(lines: list[MendedLine], repairs: Repairs, own: str) -> list[MendedLine]:
    ids = Counter(s for line in lines if isinstance(s := line.value.get("sessionId"), str))
    session = ids.most_common(1)[0][0] if ids else own
    out: list[MendedLine] = []
    for line in lines:
        lacks = "uuid" in line.value and not isinstance(line.value.get("sessionId"), str)
        new = {"sessionId": session}
        out.append(repairs.changed(line, "sessionId was missing", new) if lacks else line)
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
        own, preserved_part = line.value.get("uuid"), preserved(line.value)
        anchor, uuids = preserved_part.get("anchorUuid"), preserved_part.get("uuids")
        named = cast("list[Any]", uuids) if isinstance(uuids, list) else []
        # links to records that are lost would end the conversation there
        names = [one for one in named if isinstance(one, str) and one in known - {own, anchor}]
        anchor = anchor if isinstance(anchor, str) and anchor in known else own
        segment = object_of(sound.get("preservedSegment"))
        ends = [segment.get(name) for name in ("headUuid", "anchorUuid", "tailUuid")]
        if names:
            sound["preservedMessages"] = {
                **preserved_part,
                "uuids": list(dict.fromkeys(names)),
                "anchorUuid": anchor,
            }
        elif not all(isinstance(one, str) and one in known for one in ends):
            sound.pop("preservedSegment", None)
        if not names:
            sound.pop("preservedMessages", None)
        what = "named records that are lost as what its compaction left"
        new = {"compactMetadata": sound}
        out.append(line if sound == metadata else repairs.changed(line, what, new))
    return out


def _with_sides(lines: list[MendedLine], repairs: Repairs) -> list[MendedLine]:
    """The lines without marks of a side chain on what the conversation itself continues: the
    program leaves it out, or looks elsewhere for its end."""
    followed: set[str | None] = set()
    for line in reversed(lines):
        own = text_or_none(line.value.get("uuid"))
        side = line.value.get("isSidechain") is True and own not in followed
        if not side and is_in_tree(line.value):
            followed.add(text_or_none(line.value.get("parentUuid")))
    out: list[MendedLine] = []
    for line in lines:
        own = text_or_none(line.value.get("uuid"))
        marked = own is not None and line.value.get("isSidechain") is True and own in followed
        what = "was marked as a side chain, but isn't one"
        out.append(repairs.changed(line, what, {"isSidechain": False}) if marked else line)
    return out


# A result for every call


def _with_blocks(line: MendedLine, content: list[JsonObject], repairs: Repairs) -> MendedLine:
    """The line with other blocks in its message."""
    new = {"message": {**line.value["message"], "content": content}}
    return repairs.changed(line, "blocks that no request may have were taken out", new)


@dataclass(slots=True)
class _Pairing:
    """The changes to make: the blocks of records, by their uuid; records that are added, by the
    uuid of the one that they come after; and a prompt that comes before the first answer."""

    blocks: dict[str, list[JsonObject]] = field(default_factory=dict[str, list[JsonObject]])
    added: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    prompt: JsonObject | None = None
    answer: str = ""
    """The first answer, where it lacks a prompt."""
    relinked: set[str] = field(default_factory=set[str])
    """The records that are to follow the one before them in the conversation."""

    def __bool__(self) -> bool:
        return bool(self.blocks or self.added or self.prompt)


def _paired(lines: list[MendedLine], repairs: Repairs) -> list[MendedLine]:
    """The lines, so that in the conversation that the program opens every call has its result right
    after it, every result its call, and a person speaks first. Links must be sound.

    Where that isn't so already, the calls and results there are linked one after another.
    """
    records = {str(line.value["uuid"]): line.value for line in lines if is_in_tree(line.value)}
    conversation = branch(records)
    pairing = _pairing(conversation)
    if not pairing:
        return lines
    parents = _past_removed(records, pairing) | _one_after_another(conversation, pairing)
    out: list[MendedLine] = []
    for line in lines:
        own, made = line.value.get("uuid"), line
        if not isinstance(own, str):
            out.append(line)
            continue
        # the API refuses a conversation that begins with an answer
        if pairing.prompt is not None and own == pairing.answer:
            repairs.add(0, "the conversation began with an answer: a prompt was put before it", b"")
            out.append(MendedLine(0, encoded(pairing.prompt), pairing.prompt))
        if own in parents and line.value.get("parentUuid") != parents[own]:
            new = {"parentUuid": parents[own]}
            made = repairs.changed(made, "linked to the record that it follows", new)
        if pairing.blocks.get(own) == []:
            repairs.add(line.number, "a result without its call: set aside", line.raw)
            continue
        if own in pairing.blocks:
            made = _with_blocks(made, pairing.blocks[own], repairs)
        out.append(made)
        if own in pairing.added:
            repairs.add(line.number, "a call had no result: one was added that says so", b"")
            out.append(MendedLine(0, encoded(pairing.added[own]), pairing.added[own]))
    return out


def _pairing(conversation: list[JsonObject]) -> _Pairing:
    pairing, answerable = _Pairing(), set[str]()
    spoken = [record for record in conversation if record.get("type") in ROLES]
    runs = [(kind, list(run)) for kind, run in groupby(spoken, key=lambda one: one.get("type"))]
    for number, (kind, run) in enumerate(runs):
        if kind == "user":
            _drop(pairing, run, "tool_use_id", answerable)
            continue
        answerable = _drop(pairing, run, "id", None)
        following = runs[number + 1][1] if number + 1 < len(runs) else []
        results = {call for one in following for call in ids(one, "tool_result")}
        # the API refuses a call without a result
        if missing := sorted(answerable - results):
            last = next(r for r in reversed(run) if pairing.blocks.get(str(r["uuid"])) != [])
            own = str(last["uuid"])
            content = [
                {"type": "tool_result", "tool_use_id": one, "content": _LOST, "is_error": True}
                for one in missing
            ]
            new = str(uuid.uuid5(_SPACE, own))
            pairing.added[own] = _user_record(last, new, own, content)
    # what follows a changed message must link to it
    _relink(pairing, conversation, runs)
    first = next((r for r in spoken if pairing.blocks.get(str(r["uuid"])) != []), None)
    if first is not None and first.get("type") == "assistant":
        pairing.answer = str(first["uuid"])
        before = conversation[: conversation.index(first)]
        text = _NO_SUMMARY if any(map(is_boundary, before)) else _NO_START
        new = str(uuid.uuid5(_SPACE, f"before {pairing.answer}"))
        parent = before[-1]["uuid"] if before else None
        pairing.prompt = _user_record(first, new, parent, [{"type": "text", "text": text}])
        pairing.relinked.add(pairing.answer)
    return pairing


def _relink(
    pairing: _Pairing, conversation: list[JsonObject], runs: list[tuple[Any, list[JsonObject]]]
) -> None:
    """Note which records need new links around each message that changes: the answer, its results
    and the record after them."""
    order = [str(record["uuid"]) for record in conversation]
    places = {own: place for place, own in enumerate(order)}
    for number, (kind, run) in enumerate(runs):
        if pairing.blocks.keys().isdisjoint(ids := {str(one["uuid"]) for one in run}) and (
            pairing.added.keys().isdisjoint(ids)
        ):
            continue
        begin = runs[number - 1][1] if kind == "user" and number else run
        end = runs[number + 1][1] if kind == "assistant" and number + 1 < len(runs) else run
        start, stop = places[str(begin[0]["uuid"])], places[str(end[-1]["uuid"])]
        pairing.relinked.update(order[start + 1 : stop + 2])


def _past_removed(records: Records, pairing: _Pairing) -> dict[str, str | None]:
    """The new parents of records beside the conversation that follow one that is taken out."""
    parents: dict[str, str | None] = {}
    for own, record in records.items():
        parent = record.get("parentUuid")
        while isinstance(parent, str) and pairing.blocks.get(parent) == []:
            parent = parents[own] = records[parent].get("parentUuid")
    return parents


def _one_after_another(conversation: list[JsonObject], pairing: _Pairing) -> dict[str, str | None]:
    """The parent of each record, so that they follow each other with those that are added."""
    parents: dict[str, str | None] = {}
    before: str | None = None
    for record in conversation:
        own = str(record["uuid"])
        if pairing.blocks.get(own) == []:
            continue
        if pairing.prompt is not None and own == pairing.answer:
            before = str(pairing.prompt["uuid"])
        if own in pairing.relinked:
            parents[own] = before
        before = own
        if own in pairing.added:
            before = str(pairing.added[own]["uuid"])
    return parents


def _drop(
    pairing: _Pairing,
    run: Iterable[JsonObject],
    key: Literal["id", "tool_use_id"],
    wanted: set[str] | None,
) -> set[str]:
    """Take out calls or results whose id came before in the run, or isn't `wanted`. Returns the
    ids that stay."""
    seen: set[str] = set()
    for record in run:
        known, sound = list(blocks(record)), list[JsonObject]()
        for block in known:
            own = str(block.get(key)) if _is_keyed(block, key) else None
            if own is None or (own not in seen and (wanted is None or own in wanted)):
                sound.append(block)
                seen |= {own} if own is not None else set()
        if len(sound) < len(known):
            pairing.blocks[str(record["uuid"])] = sound
    return seen


def _user_record(record: JsonObject, own: str, parent: object, content: list[Any]) -> JsonObject:
    """A record of the user's with the other fields of a record."""
    added = {k: v for k, v in record.items() if k not in ("requestId", "message")}
    message = {"role": "user", "content": content}
    return {**added, "parentUuid": parent, "type": "user", "uuid": own, "message": message}


def _is_keyed(block: JsonObject, key: str) -> bool:
    return block.get("type") == ("tool_use" if key == "id" else "tool_result")
