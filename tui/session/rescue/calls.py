"""Messages of Claude Code's records as the API takes them again, and a result for every call.

Only the conversation that the program opens is paired (`opened`). Other branches stay as they are.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal, cast

from tui.core.messages import object_of
from tui.session.jsonl import JsonObject
from tui.session.rescue.lines import MendedLine, Repairs, encoded, with_value
from tui.session.rescue.opened import ROLES, Records, blocks, ids, is_boundary, is_in_tree, opened

_SPACE = uuid.UUID("0d0a6a8e-0f4c-4b6e-8a53-4b6b1d6cf0a2")
_LOST = "[The result of this call is lost]"
_NO_START = "[The beginning of this conversation is lost]"
_NO_SUMMARY = "[The summary of the conversation before this is lost]"
_NAME = re.compile(r"[A-Za-z0-9_-]+")
"""What the API takes as an id, a tool's name or a type."""
_ONLY_USER = frozenset({"tool_result"})
_ONLY_ASSISTANT = frozenset({"tool_use", "thinking", "redacted_thinking", "server_tool_use"})


def needs_parent(record: JsonObject) -> bool:
    """Whether a record can't be the first of a conversation: an answer, or the result of a call."""
    called = record.get("type") == "user" and bool(ids(record, "tool_result"))
    return called or record.get("type") == "assistant"


def sound_messages(lines: list[MendedLine], repairs: Repairs) -> list[MendedLine]:
    """The lines with messages that a request may have. What is no message is set aside."""
    out: list[MendedLine] = []
    for read in lines:
        line, kind = read, read.value.get("type")
        if "uuid" in line.value and not isinstance(kind, str):
            repairs.add(line.number, "a record without a type: set aside", line.raw)
            continue
        if not isinstance(line.value.get("isSidechain", False), bool):
            repairs.add(line.number, "isSidechain was neither true nor false", line.raw)
            line = with_value(line, {**line.value, "isSidechain": False})
        if kind not in ROLES:
            out.append(line)
            continue
        message = object_of(line.value.get("message"))
        content = message.get("content")
        if message.get("role") != kind or not content or not isinstance(content, str | list):
            repairs.add(line.number, "a message without a role or content: set aside", line.raw)
            continue
        given = cast("list[Any]", content) if isinstance(content, list) else []
        objects = [cast("JsonObject", one) for one in given if isinstance(one, dict)]
        sound = [block for block in objects if _is_sound(block, kind)]
        if given and not sound:
            repairs.add(line.number, "a message that no request may have: set aside", line.raw)
            continue
        out.append(_with_blocks(line, sound, repairs) if len(sound) < len(given) else line)
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


def _with_blocks(line: MendedLine, content: list[JsonObject], repairs: Repairs) -> MendedLine:
    repairs.add(line.number, "blocks that no request may have were taken out", line.raw)
    return with_value(
        line, {**line.value, "message": {**line.value["message"], "content": content}}
    )


@dataclass(slots=True)
class _Pairing:
    """What is to change: the blocks of records, by their uuid; records that are added, by the uuid
    of the one that they come after; and a prompt that comes before the first answer."""

    blocks: dict[str, list[JsonObject]] = field(default_factory=dict[str, list[JsonObject]])
    added: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    prompt: JsonObject | None = None
    answer: str = ""
    """The first answer, where it lacks a prompt."""
    relinked: set[str] = field(default_factory=set[str])
    """The records that are to follow the one before them in the conversation."""

    def __bool__(self) -> bool:
        return bool(self.blocks or self.added or self.prompt)


def paired(lines: list[MendedLine], repairs: Repairs) -> list[MendedLine]:
    """The lines, so that in the conversation that the program opens every call has its result right
    after it, every result its call, and a person speaks first. Links must be sound.

    Where that isn't so already, the calls and results there are linked one after another.
    """
    records = {str(line.value["uuid"]): line.value for line in lines if is_in_tree(line.value)}
    conversation = opened(records)
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
        if pairing.prompt is not None and own == pairing.answer:
            repairs.add(0, "the conversation began with an answer: a prompt was put before it", b"")
            out.append(MendedLine(0, encoded(pairing.prompt), pairing.prompt))
        if own in parents and line.value.get("parentUuid") != parents[own]:
            repairs.add(line.number, "linked to the record that it follows", line.raw)
            made = with_value(made, {**made.value, "parentUuid": parents[own]})
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
        given = {call for one in following for call in ids(one, "tool_result")}
        if missing := sorted(answerable - given):
            last = next(r for r in reversed(run) if pairing.blocks.get(str(r["uuid"])) != [])
            own = str(last["uuid"])
            content = [
                {"type": "tool_result", "tool_use_id": one, "content": _LOST, "is_error": True}
                for one in missing
            ]
            new = str(uuid.uuid5(_SPACE, own))
            pairing.added[own] = _user_record(last, new, own, content)
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
    found: dict[str, str | None] = {}
    for own, record in records.items():
        parent = record.get("parentUuid")
        while isinstance(parent, str) and pairing.blocks.get(parent) == []:
            parent = found[own] = records[parent].get("parentUuid")
    return found


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
