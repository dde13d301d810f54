"""Events of one answer → deltas while it arrives, content blocks when it is complete.

Pieces are collected in lists and joined once: the cost of an answer grows with its length, not with
its square.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from msgspec import structs

from tui.core.facts import TextDelta, ThinkingDelta, ToolInputDelta
from tui.core.messages import USAGE_PARTS, Block, Usage, list_of, object_of, string_of
from tui.core.server_results import CALL, is_result
from tui.provider.base import Completed, ServerToolCalled, ServerToolReturned

Delta: TypeAlias = TextDelta | ThinkingDelta | ToolInputDelta
Part: TypeAlias = Delta | ServerToolCalled | ServerToolReturned

_PIECE: Final = {
    "text_delta": "text",
    "input_json_delta": "partial_json",
    "thinking_delta": "thinking",
}


def continues(one: Part, other: Part) -> bool:
    """True if a delta continues another one: the same kind of text, of the same call."""
    if isinstance(one, ServerToolCalled | ServerToolReturned):
        return False
    if isinstance(one, ToolInputDelta):
        return isinstance(other, ToolInputDelta) and one.id == other.id
    return type(one) is type(other)


def joined(parts: Sequence[Part]) -> Part:
    """Join deltas that continue the first one; a part that is no delta is alone."""
    first = parts[0]
    if len(parts) == 1 or isinstance(first, ServerToolCalled | ServerToolReturned):
        return first
    deltas = cast("Sequence[Delta]", parts)
    return structs.replace(first, text="".join([delta.text for delta in deltas]))


class MalformedEventError(Exception):
    """An event of the server does not have the shape defined by the Messages API."""


@dataclass(slots=True)
class _Open:
    """A block as it began, and the pieces of its growing field."""

    block: Block
    pieces: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class AnswerBuilder:
    """One answer in the making. `done` once the server said that it is complete."""

    model: str
    done: bool = False
    _blocks: dict[int, _Open] = field(default_factory=dict[int, _Open])
    _usage: dict[str, int] = field(default_factory=dict[str, int])
    _stop_reason: str = ""
    _stop_details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    _message_id: str = ""
    _cache_miss: Mapping[str, Any] = field(default_factory=dict[str, Any])
    _transformations: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def feed(self, event: dict[str, Any]) -> Part | None:
        """Process one event. Unknown kinds are ignored.

        Raises MalformedEventError for an event that is not of the API's shape.
        """
        match event["type"]:
            case "content_block_delta":
                opened = self._blocks.get(_index(event))
                if opened is None:
                    raise MalformedEventError("a block that never began goes on")
                return self._grow(opened, _object(event, "delta"))
            case "content_block_start":
                return self._begin(_index(event), _object(event, "content_block"))
            case "content_block_stop":
                opened = self._blocks.get(event.get("index", -1))
                # The input of a server tool's call is complete now, so the call can be shown.
                if opened is not None and opened.block.get("type") == CALL:
                    block = _closed(opened)
                    id_, name = str(block.get("id")), str(block.get("name"))
                    return ServerToolCalled(id_, name, block["input"])
            case "message_start":
                message = _object(event, "message")
                self.model = message.get("model") or self.model
                self._message_id = string_of(message.get("id"))
                diagnostics = object_of(message.get("diagnostics"))
                self._cache_miss = object_of(diagnostics.get("cache_miss_reason"))
                self._transform(message)
                self._count(message.get("usage"))
            case "message_delta":
                delta = _object(event, "delta")
                self._stop_reason = delta.get("stop_reason") or self._stop_reason
                self._stop_details = object_of(delta.get("stop_details")) or self._stop_details
                self._transform(event)
                self._count(event.get("usage"))
            case "message_stop":
                self.done = True
            case _:
                pass
        return None

    def completed(self, request_id: str | None) -> Completed:
        """Build the whole answer. Blocks are in the order in which they began."""
        content = [_closed(opened) for opened in self._blocks.values()]
        called = any(block.get("type") == "tool_use" for block in content)
        return Completed(
            content=content,
            model=self.model,
            stop_reason=self._stop_reason or ("tool_use" if called else "end_turn"),
            usage=Usage.from_json(self._usage),
            request_id=request_id,
            message_id=self._message_id,
            stop_details=self._stop_details,
            cache_miss=string_of(self._cache_miss.get("type")),
            missed_tokens=_count(self._cache_miss.get("cache_missed_input_tokens")),
            transformations=tuple(self._transformations),
            says_why=bool(self._stop_reason),
        )

    def _transform(self, event: Mapping[str, Any]) -> None:
        """Take an event's report on earlier thinking, which replaces previous reports."""
        if "input_transformations" in event:
            reports = map(object_of, list_of(event["input_transformations"]))
            self._transformations = [one for one in reports if one]

    def _begin(self, index: int, block: Block) -> Part | None:
        opened = self._blocks[index] = _Open({**block})
        kind = _text(block, "type")
        if is_result(block):
            return ServerToolReturned(block)
        if kind in {"tool_use", CALL}:
            return ToolInputDelta(str(block.get("id", "")), str(block.get("name", "")), "")
        if kind in {"text", "thinking"} and block.get(kind):
            begun = _text(block, kind)
            opened.pieces.append(begun)
            return TextDelta(begun) if kind == "text" else ThinkingDelta(begun)
        return None

    def _grow(self, opened: _Open, delta: dict[str, Any]) -> Delta | None:
        kind, block = _text(delta, "type"), opened.block
        if name := _PIECE.get(kind):
            piece = _text(delta, name)
            opened.pieces.append(piece)
            if kind == "text_delta":
                return TextDelta(piece)
            if kind == "thinking_delta":
                return ThinkingDelta(piece)
            if block["type"] in {"tool_use", CALL}:
                return ToolInputDelta(str(block.get("id", "")), str(block.get("name", "")), piece)
        elif kind == "signature_delta":
            block["signature"] = _text(delta, "signature")
        elif kind == "citations_delta":
            given: object = block.get("citations")
            known = cast("list[Any]", given) if isinstance(given, list) else []
            block["citations"] = [*known, _object(delta, "citation")]
        return None

    def _count(self, usage: object) -> None:
        """Take the figures of an event. They are totals and replace earlier ones; a 0 or null says
        nothing."""
        if isinstance(usage, dict):
            figures = cast("dict[str, object]", usage)
            counts: dict[str, object] = {}
            for name in USAGE_PARTS:
                counts |= object_of(figures.get(name))
            counts |= figures | _compacted(figures) | _last_round(figures)
            self._usage |= {k: n for k, n in counts.items() if isinstance(n, int) and n > 0}


def _compacted(usage: Mapping[str, object]) -> dict[str, int]:
    """The usage of a compaction on demand, which is only in its iterations."""
    rounds = [object_of(one) for one in list_of(usage.get("iterations"))]
    total: dict[str, int] = {}
    for one in rounds:
        if one.get("type") != "compaction":
            return {}
        for name, count in (object_of(one.get("cache_creation")) | one).items():
            if isinstance(count, int):
                total[name] = total.get(name, 0) + count
    return total


def _last_round(usage: Mapping[str, object]) -> dict[str, int]:
    """The size of the context in the last of several rounds, over which the counts are sums."""
    rounds = [object_of(one) for one in list_of(usage.get("iterations"))]
    if len(rounds) < 2 or any(one.get("type") != "message" for one in rounds):
        return {}
    return {"context_tokens": Usage.from_json(rounds[-1]).total}


def _index(event: Mapping[str, Any]) -> int:
    value: object = event.get("index")
    if isinstance(value, int):
        return value
    raise MalformedEventError("index is not a number")


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _text(of: Mapping[str, Any], name: str) -> str:
    value: object = of.get(name)
    if isinstance(value, str):
        return value
    raise MalformedEventError(f"{name} is not a string")


def _object(of: Mapping[str, Any], name: str) -> dict[str, Any]:
    value: object = of.get(name)
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    raise MalformedEventError(f"{name} is not an object")


def _closed(opened: _Open) -> Block:
    block, kind = opened.block, opened.block.get("type", "")
    if kind in {"text", "thinking"}:
        return {**block, kind: "".join(opened.pieces)}
    if opened.pieces or kind in {"tool_use", CALL}:
        given = "".join(opened.pieces) if opened.pieces else block.get("input")
        return {**block, "input": tool_input(given)}
    return block


def tool_input(given: object) -> dict[str, Any]:
    """A call's input as an object.

    JSON is parsed, twice if the first result is a string; nothing, null and [] are an empty object;
    anything else becomes `{"raw_input": …}`.
    """
    value = given
    for _ in range(2):
        if isinstance(value, str) and value.strip():
            try:
                value = json.loads(value, parse_constant=_not_json, parse_float=_finite)
            except (ValueError, RecursionError):
                break
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    if value is None or value == [] or (isinstance(value, str) and not value.strip()):
        return {}
    return {"raw_input": given if isinstance(given, str) else json.dumps(given)}


def _not_json(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


def _finite(number: str) -> float:
    """Parse a number. 1e999 would become infinity, which could never be sent back."""
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is out of range")
    return value
