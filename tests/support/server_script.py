"""What the loopback server says: turns, faults, and the events that they become.

A script is a JSON or TOML object (the practice model's scripts are valid ones). Every key is
optional:

    turns      one per successful request, in order; when they are used up, the answer is a 400
    models     {id: {"max_input_tokens": N, "max_tokens": N}}; what GET /v1/models knows. A POST
               for another model is a 404. Absent: claude-* exists, with 200,000 and 64,000.
    keys       the keys that are accepted; absent: any
    check      false = accept requests that the real API would reject (default true)
    signatures false = accept thinking that this server never signed (default true)
    binding    false = accept thinking behind what it was not made for, "record" = accept it and
               report it, as of old accounts (default true: models that preserve thinking refuse
               it, see `tests.support.server_binding`)
    priced     true = `usage` is what the cache of `tests.support.server_cache` makes of the
               request, in the place of the turn's own (default false)
    catalogue  true = the models are those of `tests.support.server_models`, with what they can do
    summary    the text of the compaction block that answers a request for one
    compactions  one per request for a summary, before `summary` is used: a fault with a status,
               {"summary": text}, or {"stop_reason": …} for an answer without a block
    any_calls  true = answers may call tools that the request does not have; else that is a
               mistake of the script, and a 400 (where the request has tools at all)
    organizations  {key: name}; keys of one organization read each other's thinking. Absent: all
               are of one
    count_faults  faults with a status, one per request to count tokens
    batches    false = a server without message batches: 404 (default true)
    batch_faults  one per request about message batches (see `tests.support.server_batches`): a
               fault with a status, {} for none, {"lost": true} = the connection ends before the
               answer, {"cut_after": N} = it ends after N lines of results

A turn:

    thinking, redacted_thinking, text      blocks of that kind, in this order; a list of strings
                                           for several text blocks
    signature  of the thinking, in the place of this server's own
    tools      [{"name", "input", "id"}]; "json" in the place of "input" is streamed as it is,
               broken or not
    blocks     any further content blocks, verbatim, sent whole in content_block_start
    content    in the place of all of these: [{"thinking"}, {"redacted_thinking"}, {"text"},
               {"tool": {"name", …}}, {"block": {…}}] in any order. {"search": query} is the
               server's own search of the web, {"found": [{"url", "title"}, …]} or {"found": "code
               of an error"} its result, {"text", "cites": [{"url", "title"}]} a text that cites.
               Each "search" and "found" may have an "id"
    usage      merged over {"input_tokens": 100, "output_tokens": 20}
    stop_reason, stop_details, model
    result     "expired" or "canceled" (or a type that nobody knows): what becomes of it in a batch
    piece      characters per delta (default 16)
    delay_s    silence before the first byte
    until      a file: silence until it is there
    every_s    seconds between two deltas
    stepped    true = each delta waits for a `step` of the server
    burst      true = write all events at once (for measuring); "chunks" = each as a chunk of the
               transfer, as real servers do
    faults     one per request; when they are used up, the turn itself is answered

A fault is the first of these keys that it has:

    status         an error answer; with "type", "message", "error_code", "headers", "retry_after"
                   (seconds or a date), or a "body" (object or text) or "html" (a page, or its
                   title) of its own; "content_type" replaces that of a body. 200 and 3xx work too.
    rejected       a B number: the 400 that the real API answers to such a request
    overflow       true = 400 prompt is too long, once; "until_smaller" = as long as the request
                   is not smaller than the first that met it; "max_tokens" = 400 input length and
                   `max_tokens` exceed context limit, as long as max_tokens is not lower
    cut_after      a TCP reset after N events
    eof_after      a clean end after N events, without message_stop
    bad_json       true = a line that is no JSON, after "after" events (default 2)
    raw            text that is written as it is, after "after" events (default 2)
    error_event    {"type", "message"}: an error event, after "after" events (default 2)
    stall_s        silence of so many seconds after "after" events (default 2), then the rest;
                   "ping_every_s" fills it with pings, or comments with "comments": true
    drip_s         bytes that never become an event, one every so many seconds, after "after"
                   events (default 2), until the client leaves
    open           true = the whole turn, and then the connection is never closed
    slow_s         seconds before the first byte, then the turn
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from tests.support.server_catalogue import listed
from tests.support.server_models import MODELS
from tests.support.server_search import call_block, citation, result_block

Json: TypeAlias = dict[str, Any]
Event: TypeAlias = dict[str, Any]

DEFAULT_MODEL: Json = {"max_input_tokens": 200_000, "max_tokens": 64_000}


_TURN = {
    "thinking", "signature", "redacted_thinking", "text", "tools", "blocks", "content",
    "usage", "stop_reason", "stop_details", "model", "result", "piece", "delay_s", "until",
    "every_s", "stepped", "burst", "faults",
}  # fmt: skip
_FAULT = {
    "status", "type", "message", "error_code", "headers", "retry_after", "body", "html",
    "content_type", "overflow", "rejected", "drip_s", "open",
    "cut_after", "eof_after", "bad_json", "raw", "error_event", "after", "stall_s",
    "ping_every_s", "comments", "slow_s",
}  # fmt: skip


def part(body: Json, *names: str) -> Json:
    """An object within an object; an empty one where there is none."""
    for name in names:
        value: object = body.get(name)
        body = cast("Json", value) if isinstance(value, dict) else {}
    return body


def signature_of(thinking: str) -> str:
    """The signature under which this server knows a thought again."""
    return hashlib.sha256(b"loopback" + thinking.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(slots=True)
class Script:
    """A script being played."""

    turns: list[Json] = field(default_factory=list[Json])
    models: dict[str, Json] | None = None
    keys: list[str] | None = None
    check: bool = True
    signatures: bool = True
    binding: bool | str = True
    priced: bool = False
    catalogue: bool = False
    summary: str = "What was said so far."
    compactions: list[Json] = field(default_factory=list[Json])
    any_calls: bool = False
    organizations: dict[str, str] = field(default_factory=dict[str, str])
    count_faults: list[Json] = field(default_factory=list[Json])
    batches: bool = True
    batch_faults: list[Json] = field(default_factory=list[Json])
    lacks: list[str] = field(default_factory=list[str])
    """Fields of a body, and betas, that a gateway in front refuses; see `server_gateway`."""
    drops: list[str] = field(default_factory=list[str])
    """Those that a gateway in front takes out without a word."""
    _met: int | None = None
    _turn: int = 0
    _fault: int = 0

    @classmethod
    def of(cls, value: Json) -> Script:
        """A script from JSON; `turn` is `turns`. Raises TypeError on a key that means nothing."""
        script = cls(**{("turns" if key == "turn" else key): v for key, v in value.items()})
        for turn in script.turns:
            faults: list[Json] = turn.get("faults", [])
            unknown = turn.keys() - _TURN | {k for fault in faults for k in fault.keys() - _FAULT}
            if unknown:
                raise TypeError(f"a turn has no {sorted(unknown)}")
        return script

    def model(self, name: str) -> Json | None:
        if self.catalogue:
            return listed(name) if name in MODELS else None
        if self.models is None:
            return DEFAULT_MODEL if name.startswith("claude-") else None
        return self.models.get(name)

    @property
    def scripted_signatures(self) -> set[str]:
        """Signatures that the turns name themselves, in the place of this server's own."""
        pieces = [piece for turn in self.turns for piece in parts_of(turn)]
        return {piece["signature"] for piece in pieces if "signature" in piece}

    def next(self, body: Json | None = None) -> tuple[Json | None, Json | None, int]:
        """Turn, fault and number of the turn for the next request; no turn: used up."""
        body = body or {"max_tokens": 0, "messages": []}
        if self._turn >= len(self.turns):
            return None, None, self._turn
        turn = self.turns[self._turn]
        faults: list[Json] = turn.get("faults", [])
        while self._fault < len(faults):
            fault = faults[self._fault]
            if fault.get("overflow") not in {"until_smaller", "max_tokens"}:
                self._fault += 1
                return turn, fault, self._turn
            by_output = fault["overflow"] == "max_tokens"
            size = body["max_tokens"] if by_output else len(json.dumps(body["messages"]))
            if self._met is None or size >= self._met:
                self._met = size if self._met is None else self._met
                return turn, fault, self._turn
            self._fault, self._met = self._fault + 1, None
        self._turn, self._fault = self._turn + 1, 0
        return turn, None, self._turn - 1


def parts_of(turn: Json) -> list[Json]:
    """The content of a turn, one part for each block: see `content` in a turn."""
    if "content" in turn:
        return turn["content"]
    parts: list[Json] = []
    if "thinking" in turn:
        parts.append({name: turn[name] for name in ("thinking", "signature") if name in turn})
    if "redacted_thinking" in turn:
        parts.append({"redacted_thinking": turn["redacted_thinking"]})
    texts = turn.get("text", [])
    parts += [{"text": text} for text in ([texts] if isinstance(texts, str) else texts)]
    parts += [{"tool": tool} for tool in turn.get("tools", [])]
    return parts + [{"block": block} for block in turn.get("blocks", [])]


def numbered(turn: Json, number: int) -> list[Json]:
    """The parts of a turn, with an id for each call."""
    calls = itertools.count()
    parts: list[Json] = []
    searched = ""
    for piece in parts_of(turn):
        made = piece
        if "tool" in piece:
            made = {"tool": {"id": f"toolu_{number:04}_{next(calls)}", **piece["tool"]}}
        elif "search" in piece:
            searched = piece.get("id", f"srvtoolu_{number:04}_{next(calls)}")
            made = {**piece, "id": searched}
        elif "found" in piece:
            made = {"id": searched, **piece}
        parts.append(made)
    return parts


def message_of(turn: Json, number: int, model: str) -> Json:
    """A turn as one complete message."""
    content = [block_of(piece) for piece in numbered(turn, number)]
    calls = any(block["type"] == "tool_use" for block in content)
    found = sum(isinstance(piece.get("found"), list) for piece in parts_of(turn))
    searches = {"server_tool_use": {"web_search_requests": found}} if found else {}
    return {
        "id": f"msg_{number:04}",
        "type": "message",
        "role": "assistant",
        "model": turn.get("model", model),
        "content": content,
        "stop_reason": turn.get("stop_reason", "tool_use" if calls else "end_turn"),
        "stop_sequence": None,
        **({"stop_details": turn["stop_details"]} if "stop_details" in turn else {}),
        "usage": {"input_tokens": 100, "output_tokens": 20} | searches | turn.get("usage", {}),
        "diagnostics": None,
        **turn.get("reports", {}),
    }


def block_of(piece: Json) -> Json:
    """A part of a turn as a block of its message."""
    if "thinking" in piece:
        thinking = piece["thinking"]
        signature = piece.get("signature", signature_of(thinking))
        return {"type": "thinking", "thinking": thinking, "signature": signature}
    if "redacted_thinking" in piece:
        return {"type": "redacted_thinking", "data": piece["redacted_thinking"]}
    if "text" in piece:
        cited = [citation(page) for page in piece.get("cites", [])]
        return {"type": "text", "text": piece["text"], **({"citations": cited} if cited else {})}
    if "search" in piece:
        return call_block(piece["id"], piece["search"])
    if "found" in piece:
        return result_block(piece["id"], piece["found"])
    if "tool" in piece:
        tool = piece["tool"]
        call = {"type": "tool_use", "id": tool["id"], "name": tool["name"]}
        return call | {"input": tool.get("input", {})}
    return piece["block"]


def events_of(turn: Json, number: int, model: str) -> Iterator[Event]:
    """A turn as the events of a stream, in the API's order and shapes."""
    message = message_of(turn, number, model)
    usage: Json = message["usage"]
    start: Json = {**message, "content": [], "stop_reason": None}
    start.pop("stop_details", None)
    start["usage"] = {n: v for n, v in usage.items() if n not in _LATE} | {"output_tokens": 1}
    yield {"type": "message_start", "message": start}
    for index, (block, part) in enumerate(zip(message["content"], parts_of(turn), strict=True)):
        yield from _block_events(
            index, block, part.get("tool"), "block" not in part, turn.get("piece", 16)
        )
        if index == 0:
            yield {"type": "ping"}
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    if "stop_details" in message:
        stop["stop_details"] = message["stop_details"]
    whole = {name: value for name, value in usage.items() if name not in _EARLY}
    yield {"type": "message_delta", "delta": stop, "usage": whole}
    yield {"type": "message_stop"}


_EARLY = {"cache_creation", "service_tier"}
_LATE = {"iterations", "output_tokens_details", "server_tool_use"}


def _block_events(
    index: int, block: Json, tool: Json | None, written: bool, piece: int
) -> Iterator[Event]:
    """The events of one block: in pieces if the turn wrote it, else whole in the first one."""

    def delta(kind: str, name: str, text: str) -> Event:
        return {"type": "content_block_delta", "index": index, "delta": {"type": kind, name: text}}

    begin: Json = {"type": "content_block_start", "index": index}
    match block["type"]:
        case "text" if written:
            cited: list[Json] = block.get("citations", [])
            yield begin | {
                "content_block": block | {"text": ""} | ({"citations": []} if cited else {})
            }
            for one in cited:
                said = {"type": "citations_delta", "citation": one}
                yield {"type": "content_block_delta", "index": index, "delta": said}
            yield from (delta("text_delta", "text", t) for t in pieces(block["text"], piece))
        case "server_tool_use" if written:
            yield begin | {"content_block": block | {"input": {}}}
            for part in pieces(json.dumps(block["input"]), piece):
                yield delta("input_json_delta", "partial_json", part)
        case "thinking" if written:
            yield begin | {"content_block": {"type": "thinking", "thinking": "", "signature": ""}}
            for thought in pieces(block["thinking"], piece):
                yield delta("thinking_delta", "thinking", thought)
            yield delta("signature_delta", "signature", block["signature"])
        case "tool_use" if tool is not None:
            yield begin | {"content_block": block | {"input": {}}}
            json_text = tool.get("json", json.dumps(block["input"]) if block["input"] else "")
            yield delta("input_json_delta", "partial_json", "")
            for part in pieces(json_text, piece):
                yield delta("input_json_delta", "partial_json", part)
        case _:
            yield begin | {"content_block": block}
    yield {"type": "content_block_stop", "index": index}


def pieces(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


def encoded(event: Event) -> bytes:
    """An event as it stands on the wire."""
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
