"""Events of one answer → deltas while it arrives, content blocks when it is complete.

Pieces are collected in lists and joined once: the cost of an answer grows with its length, not with
its square.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from msgspec import structs

from tui.core.dataclass import dataclass, field
from tui.core.facts import TextDelta, ThinkingDelta, ToolInputDelta
from tui.core.messages import USAGE_PARTS, Block, Usage, list_of, object_of, string_of
from tui.core.server_results import CALL, is_result
from tui.provider.anthropic.sse import END
from tui.provider.base import Completed, ServerToolCalled, ServerToolReturned

_log = logging.getLogger(__name__)

Delta: TypeAlias = TextDelta | ThinkingDelta | ToolInputDelta
Part: TypeAlias = Delta | ServerToolCalled | ServerToolReturned

_TEXT, _THINKING, _INPUT = "text", "thinking", "input"
_PIECE: Final = {
    "text_delta": (_TEXT, "text"),
    "input_json_delta": (_INPUT, "partial_json"),
    "thinking_delta": (_THINKING, "thinking"),
}
"""The kind of block that a delta belongs to, and the field with its next piece."""
_METRICS: Final = "amazon-bedrock-invocationMetrics"
_MEASURED: Final = {
    "input_tokens": "inputTokenCount",
    "output_tokens": "outputTokenCount",
    "cache_read_input_tokens": "cacheReadInputTokenCount",
    "cache_creation_input_tokens": "cacheWriteInputTokenCount",
}
"""Bedrock's names, which gateways pass on."""
_CALLS: Final = ("tool_use", CALL)
UNNAMED: Final = "unnamed"
"""The tool of a call whose name never came: nobody has such a tool, and the model is told so."""


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
    """A block as it began, and the pieces of its growing field. `index` is the server's."""

    block: Block
    index: object
    grows: str
    pieces: list[str] = field(default_factory=list[str])
    stopped: bool = False


@dataclass(slots=True)
class AnswerBuilder:
    """One answer in the making. `done` once the server said that it is complete.

    Gateways count the blocks of an answer as they like: a block is the one that was begun last
    under its index, a delta goes on the last block of its own kind, and opens one if there is none.
    What comes after the end counts for nothing. `begun` once there was an event of the API.
    """

    model: str
    done: bool = False
    begun: bool = False
    _blocks: list[_Open] = field(default_factory=list[_Open])
    _last: dict[object, _Open] = field(default_factory=dict[object, _Open])
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
        if self.done:
            return None
        match event["type"]:
            case "content_block_delta":
                return self._grow(_index(event), _object(event, "delta"))
            case "content_block_start":
                return self._begin(_index(event), _object(event, "content_block"))
            case "content_block_stop":
                return self._stop(self._last.get(_index(event)))
            case "message_start":
                message = _object(event, "message")
                self.model = string_of(message.get("model")) or self.model
                self._message_id = string_of(message.get("id"))
                diagnostics = object_of(message.get("diagnostics"))
                self._cache_miss = object_of(diagnostics.get("cache_miss_reason"))
                self._transform(message)
                self._count(message.get("usage"))
            case "message_delta":
                delta = object_of(event.get("delta"))
                self._stop_reason = string_of(delta.get("stop_reason")) or self._stop_reason
                self._stop_details = object_of(delta.get("stop_details")) or self._stop_details
                self._transform(event)
                self._count(event.get("usage"))
            case "message_stop":
                metrics = object_of(event.get(_METRICS))
                told = {name: metrics.get(theirs) for name, theirs in _MEASURED.items()}
                self._count({name: told[name] for name in told if name not in self._usage})
                self.done = True
            case "ping":
                pass
            case kind if kind == END:
                self.end()
                return None
            case kind:
                _log.debug("an event of the kind %r is not known", kind)
                return None
        self.begun = True
        return None

    def end(self) -> None:
        """Note that nothing else comes. The answer is complete if the reason of its end is told."""
        self.done = self.done or bool(self._stop_reason)

    def completed(self, request_id: str | None) -> Completed:
        """Build the whole answer. Blocks are in the order in which they began."""
        content = [_closed(opened) for opened in self._blocks]
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

    def _begin(self, index: object, block: Block) -> Part | None:
        self.begun = True
        kind, before = _text(block, "type"), self._last.get(index)
        if kind in _CALLS and before is not None and _begins_again(before, block):
            opened = before
        else:
            opened = _Open({**block}, index, kind if kind in {_TEXT, _THINKING} else _INPUT)
            self._blocks.append(opened)
            self._last[index] = opened
        if is_result(block):
            return ServerToolReturned(block)
        if kind in _CALLS:
            opened.block["name"] = string_of(block.get("name")) or UNNAMED
            return _input_delta(opened.block, "")
        if opened.grows == kind and (begun := string_of(block.get(kind))):
            opened.pieces.append(begun)
            return TextDelta(begun) if kind == _TEXT else ThinkingDelta(begun)
        return None

    def _grow(self, index: object, delta: dict[str, Any]) -> Part | None:
        kind = _text(delta, "type")
        if (known := _PIECE.get(kind)) is None:
            return self._complete(index, kind, delta)
        grows, name = known
        opened = self._last.get(index)
        if opened is None or opened.grows != grows:
            opened = self._home(index, grows)
        piece = _text(delta, name)
        opened.pieces.append(piece)
        if grows == _TEXT:
            return TextDelta(piece)
        if grows == _THINKING:
            return ThinkingDelta(piece)
        return _input_delta(opened.block, piece) if opened.block["type"] in _CALLS else None

    def _complete(self, index: object, kind: str, delta: dict[str, Any]) -> None:
        """Add a delta that brings something else than the next piece of a block."""
        opened = self._last.get(index)
        if kind == "signature_delta":
            if opened is None or opened.grows != _THINKING:
                opened = self._home(index, _THINKING)
            before = opened.block.get("signature", "")
            opened.block["signature"] = _text(delta, "signature") or before
        elif kind == "citations_delta":
            if opened is None or opened.grows != _TEXT:
                opened = self._home(index, _TEXT)
            cited = list_of(opened.block.get("citations"))
            opened.block["citations"] = [*cited, _object(delta, "citation")]
        elif opened is None or opened.block["type"] in {_TEXT, _THINKING, *_CALLS}:
            _log.debug("a delta of the kind %r is not known", kind)
        else:
            _merge(opened.block, delta)

    def _stop(self, opened: _Open | None) -> Part | None:
        if opened is None or opened.stopped:
            return None
        opened.stopped = True
        # The input of a server tool's call is complete now, so the call can be shown.
        if opened.block.get("type") == CALL:
            block = _closed(opened)
            return ServerToolCalled(str(block.get("id")), str(block.get("name")), block["input"])
        return None

    def _home(self, index: object, grows: str) -> _Open:
        """The block that a delta of some kind goes on, though another one was begun last under its
        index, or none: input belongs to a call that has none yet. A new one if there is no such."""
        for opened in reversed(self._blocks):
            if opened.index == index and opened.grows == grows and not opened.stopped:
                return opened
        before = self._blocks[-1] if self._blocks else None
        if grows == _INPUT and before is not None and _lacks_input(before):
            return before
        self._begin(index, {"type": "tool_use"} if grows == _INPUT else {"type": grows})
        return self._last[index]

    def _count(self, usage: object) -> None:
        """Take the figures of an event. They are totals and replace earlier ones; a 0 or null says
        nothing."""
        if isinstance(usage, dict):
            figures = cast("dict[str, object]", usage)
            counts: dict[str, object] = {}
            for name in USAGE_PARTS:
                counts |= object_of(figures.get(name))
            counts |= figures | _compacted(figures) | _last_round(figures)
            self._usage |= {k: n for k, given in counts.items() if (n := _figure(given))}


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


def _begins_again(before: _Open, block: Block) -> bool:
    """True if a call that has not stopped is begun once more, as llama.cpp does at its end."""
    same = all(before.block.get(name) == block.get(name) for name in ("type", "id", "name"))
    return same and bool(block.get("id")) and not before.stopped and not block.get("input")


def _lacks_input(opened: _Open) -> bool:
    block = opened.block
    return block["type"] in _CALLS and not opened.pieces and not block.get("input")


def _input_delta(block: Block, piece: str) -> ToolInputDelta:
    return ToolInputDelta(string_of(block.get("id")), str(block.get("name", "")), piece)


def _merge(block: Block, delta: Mapping[str, Any]) -> None:
    """Add a delta of an unknown kind to a block of an unknown kind: texts grow, the rest is set."""
    for name, value in delta.items():
        if name != "type":
            before: object = block.get(name)
            both = isinstance(before, str) and isinstance(value, str)
            block[name] = f"{before}{value}" if both else value


def _index(event: Mapping[str, Any]) -> object:
    """The index of an event's block: mostly a number, but any value tells blocks apart."""
    value: object = event.get("index")
    return value if type(value) is int else repr(value)


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _figure(value: object) -> int:
    """A count of tokens; 0 for anything else. Gateways write them as text, too."""
    if isinstance(value, str):
        value = int(value) if value.isascii() and value.isdigit() and len(value) < 16 else 0
    return _count(value)


def _text(of: Mapping[str, Any], name: str) -> str:
    """A text of an event, "" for null. Raises MalformedEventError for anything else."""
    value: object = of.get(name)
    if isinstance(value, str):
        return value
    if value is None and name != "type":
        return ""
    raise MalformedEventError(f"{name} is not a string")


def _object(of: Mapping[str, Any], name: str) -> dict[str, Any]:
    value: object = of.get(name)
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    raise MalformedEventError(f"{name} is not an object")


def _closed(opened: _Open) -> Block:
    block, kind = opened.block, opened.block.get("type", "")
    if kind in {_TEXT, _THINKING}:
        return {**block, kind: "".join(opened.pieces)}
    if opened.pieces or kind in _CALLS:
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
