"""Content blocks and calls of Claude Code's records, as the API accepts them again."""

from __future__ import annotations

import uuid
from typing import Any, cast

from tui.core.messages import object_of
from tui.session.jsonl import JsonObject
from tui.session.rescue.lines import MendedLine, Repairs, encoded, with_value

_SPACE = uuid.UUID("0d0a6a8e-0f4c-4b6e-8a53-4b6b1d6cf0a2")
_LOST = "[The result of this call is lost]"


def repair(lines: list[MendedLine], repairs: Repairs) -> list[MendedLine]:
    """The lines with sound blocks, and with a result for every call."""
    called: set[Any] = set()
    answered: set[Any] = set()
    out: list[MendedLine] = []
    for line in lines:
        blocks = _blocks(line.value)
        sound = [b for b in blocks if _sound(b, called, answered)]
        called |= {b.get("id") for b in sound if b.get("type") == "tool_use"}
        answered |= {b.get("tool_use_id") for b in sound if b.get("type") == "tool_result"}
        if len(sound) < len(blocks):
            repairs.add(line.number, "blocks that no request may have were taken out", line.raw)
            message = {**line.value["message"]}
            message["content"] = sound or [{"type": "text", "text": "[Nothing]"}]
            out.append(with_value(line, {**line.value, "message": message}))
        else:
            out.append(line)
    open_calls = called - answered
    return _answered(out, open_calls, repairs) if open_calls else out


def refusals(values: list[JsonObject]) -> tuple[str, ...]:
    """Why the API would refuse these records' blocks."""
    called: set[Any] = set()
    answered: set[Any] = set()
    for value in values:
        for block in _blocks(value):
            if not _sound(block, called, answered):
                return (f"a block of type {block.get('type')} is not acceptable",)
            if block.get("type") == "tool_use":
                called.add(block.get("id"))
            elif block.get("type") == "tool_result":
                answered.add(block.get("tool_use_id"))
    return ("a call has no result",) if called - answered else ()


def _blocks(value: JsonObject) -> list[JsonObject]:
    content = object_of(value.get("message")).get("content")
    blocks = cast("list[Any]", content) if isinstance(content, list) else []
    return [b for b in blocks if isinstance(b, dict)]


def _sound(block: JsonObject, called: set[Any], answered: set[Any]) -> bool:
    match block.get("type"):
        case "text":
            return bool(str(block.get("text") or "").strip())
        case "thinking":
            return bool(block.get("signature"))
        case "tool_use":
            return isinstance(own := block.get("id"), str) and own not in called
        case "tool_result":
            own = block.get("tool_use_id")
            return isinstance(own, str) and own in called and own not in answered
        case kind:
            return isinstance(kind, str)


def _answered(lines: list[MendedLine], open_calls: set[Any], repairs: Repairs) -> list[MendedLine]:
    """A record with a result after each record that has calls without one; later ones follow it."""
    out: list[MendedLine] = []
    heirs: dict[str, str] = {}
    for line in lines:
        value = line.value
        own = value.get("uuid")
        if value.get("parentUuid") in heirs and value.get("type") == "user":
            repairs.add(line.number, "linked to the result that was added", line.raw)
            out.append(with_value(line, {**value, "parentUuid": heirs[value["parentUuid"]]}))
        else:
            out.append(line)
        ids = [b["id"] for b in _blocks(value) if b.get("type") == "tool_use"]
        missing = [one for one in ids if one in open_calls]
        if missing and isinstance(own, str):
            new = str(uuid.uuid5(_SPACE, own))
            content = [
                {"type": "tool_result", "tool_use_id": one, "content": _LOST, "is_error": True}
                for one in missing
            ]
            added = {k: v for k, v in value.items() if k not in ("requestId", "message")}
            added |= {"parentUuid": own, "type": "user", "uuid": new}
            added["message"] = {"role": "user", "content": content}
            repairs.add(line.number, "a call had no result: one was added that says so", b"")
            heirs[own] = new
            out.append(MendedLine(0, encoded(added), added))
    return out
