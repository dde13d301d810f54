"""Server-sent events decoded from bytes, however the network split them.

The SDK's own iterator hides pings, so silence and life look the same, and it builds a model per
event; its response's bytes are public, and only this much has to be read in them.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from typing import Any, Final, cast

import msgspec

from tui.core.late_pattern import late_pattern
from tui.core.messages import list_of, object_of

EVENT_MAX: Final = 32 * 1024**2
"""Maximum bytes of one event; anything longer is no answer."""
ANSWER_MAX: Final = 256 * 1024**2
"""Maximum bytes of one answer, once unpacked."""

END: Final = "[DONE]"
"""The type of the event for OpenAI's end of a stream, which gateways pass on or add."""

_KNOWN: Final = frozenset(
    {
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
    }
)
_NEEDS_DATA: Final = frozenset({b"", *(name.encode() for name in _KNOWN)})
"""Names of events that cannot be understood without their data."""
_KEPT: Final = 65_536
_DELTA: Final = b"event: content_block_delta"
_MANY: Final = 4
"""Deltas that are decoded together."""


class _Delta(msgspec.Struct, tag_field="type", forbid_unknown_fields=True): ...


class _Text(_Delta, tag="text_delta"):
    text: str


class _Thinking(_Delta, tag="thinking_delta"):
    text: str = msgspec.field(name="thinking")


class _Input(_Delta, tag="input_json_delta"):
    text: str = msgspec.field(name="partial_json")


class _Event(
    msgspec.Struct, tag_field="type", tag="content_block_delta", forbid_unknown_fields=True
):
    """A delta as it mostly is: the next piece of a block, and nothing else."""

    index: int
    delta: _Text | _Thinking | _Input


_DELTAS: Final = msgspec.json.Decoder(list[_Event])
_FIELD: Final = late_pattern(rb"(?:\xef\xbb\xbf)?\s*(?:event|data|id|retry)?:")


class BadEventDataError(ValueError):
    """The data of an event is no JSON object, or there is too much of it."""


class EventDecoder:
    """Decodes chunks into events, each event's data as a JSON object.

    Lines end with LF, CRLF or CR. Comments, ids, `retry` and what is no field are skipped;
    `comments` counts all but the last, and events that say nothing. An event without data is none;
    one whose data has no `type` gets the name of its `event` line, which comes first. What real
    servers leave out is read as it is meant: the blank line between two events, the `data:` before
    a line of JSON, and one message in the place of a stream, which becomes the events of one.
    `begun` once there was an event; `stray` are lines before it that are none of the protocol's.
    """

    def __init__(self) -> None:
        self._partial: list[bytes] = []
        self._data: list[bytes] = []
        self._name = b""
        self._held = self._seen = 0
        self._mark, self._after_cr = codecs.BOM_UTF8, False
        self.begun = False
        self.comments = 0
        self.stray = b""

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        """Yield the events that `chunk` completes. Raises BadEventDataError."""
        lines, at, alone = self._lines(chunk), 0, 0
        while at < len(lines):
            begins = at >= alone and lines[at] == _DELTA and not (self._data or self._name)
            if begins and self.begun:
                row = _row(lines, at)
                alone = at + 3 * len(row) + 1  # looked at once
                if (joined := _joined(row)) is not None:
                    yield from joined
                    self._held = 0
                    at += 3 * len(row)
                    continue
            line = lines[at]
            at += 1
            event: dict[str, Any] | None = None
            if line.startswith(b"data:"):
                if self._data and _begins_anew(self._data[-1], line[5:]):
                    event = self._taken()
                self._data.append(line[5:])
            elif line.startswith(b"event:"):
                if self._data:
                    event = self._taken()
                self._name = line[6:].strip()
            elif not line:
                event = self._taken()
            else:
                event = self._odd(line)
            if event is None:
                continue
            if self.begun:
                yield event
            else:
                self.begun = True
                yield from _first(event)

    def finish(self) -> Iterator[dict[str, Any]]:
        """Yield the event that the end of the answer completes. Raises BadEventDataError.

        Servers leave out the last line's end; half an event is none.
        """
        yield from self.feed(b"\n")
        with suppress(BadEventDataError):  # cut
            yield from self.feed(b"\n\n")
        if not self.begun and (message := whole_message(self.stray)) is not None:
            yield from self.feed(message)

    def _lines(self, chunk: bytes) -> list[bytes]:
        """Return the lines that `chunk` completes."""
        if self._held > EVENT_MAX or self._seen > ANSWER_MAX:
            raise BadEventDataError("the answer is too large")
        self._held, self._seen = self._held + len(chunk), self._seen + len(chunk)
        if self._after_cr or b"\r" in chunk:
            chunk = self._with_newlines(chunk)
        head, newline, rest = chunk.rpartition(b"\n")
        if not newline:
            self._partial.append(chunk)
            return []
        self._partial.append(head)
        lines = b"".join(self._partial).split(b"\n")
        self._partial = [rest] if rest else []
        if self._mark:
            lines[0], self._mark = lines[0].removeprefix(self._mark), b""
        return lines

    def _with_newlines(self, chunk: bytes) -> bytes:
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r") or (self._after_cr and not chunk)
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _odd(self, line: bytes) -> dict[str, Any] | None:
        """Take a line that is neither data nor a name. Returns the event that it ends."""
        if line.startswith((b":", b"id:", b"retry:")):
            self.comments += 1
        elif line.startswith(b"{") and line.rstrip().endswith(b"}"):
            event = self._taken()
            self._data.append(line)
            return event
        elif not self.begun and line.strip() and len(self.stray) < _KEPT:
            self.stray += line[:_KEPT] + b"\n"
        return None

    def _taken(self) -> dict[str, Any] | None:
        """Take what was collected as an event; None if it is none."""
        data, name = self._data, self._name
        if not (data or name):
            return None
        self._data, self._name, self._held = [], b"", 0
        event = _event(b"\n".join(data), name)
        if event is None:
            self.comments += 1
        return event


def _row(lines: list[bytes], at: int) -> list[bytes]:
    """The data of the deltas from here on, each in three lines, as the API sends them."""
    row: list[bytes] = []
    while at + 2 < len(lines) and lines[at] == _DELTA and not lines[at + 2]:
        if not lines[at + 1].startswith(b"data:"):
            break
        row.append(lines[at + 1][5:])
        at += 3
    return row


def _joined(row: list[bytes]) -> list[dict[str, Any]] | None:
    """Decode the data of many deltas at once, and join those that come one after the other in one
    block. None where one by one is the way: there are few, or one brings anything but text."""
    if len(row) < _MANY:
        return None
    try:
        events = _DELTAS.decode(b"[" + b",".join(row) + b"]")
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    if len(events) != len(row):
        return None
    joined: list[dict[str, Any]] = []
    for _, run in groupby(events, lambda event: (event.index, type(event.delta))):
        first, *others = run
        first.delta.text += "".join([event.delta.text for event in others])
        joined.append(msgspec.to_builtins(first))
    return joined


def _first(event: dict[str, Any]) -> list[dict[str, Any]]:
    """The first event, or those of a whole message in its place."""
    return _events_of(event) if event["type"] == "message" and "content" in event else [event]


def _begins_anew(before: bytes, after: bytes) -> bool:
    """True if a line of data cannot go on where the one before it ended: JSON never does so."""
    return before.rstrip().endswith(b"}") and after.lstrip().startswith((b"{", b"["))


def _event(data: bytes, name: bytes) -> dict[str, Any] | None:
    """The event of some data and a name; None if it says nothing. Raises BadEventDataError."""
    try:
        value: object = msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError):  # rejects half a pair, NaN
        try:
            value = json.loads(data.decode())
        except (ValueError, RecursionError) as error:
            return _without_json(data.strip(), name, error)
    if not isinstance(value, dict):
        return _without_json(data.strip(), name, None)
    event = cast("dict[str, Any]", value)
    kind: object = event.get("type")
    if isinstance(kind, str) and kind in _KNOWN and name != b"error":
        return event
    if kind == "error" or name == b"error" or (not kind and event.get("error") is not None):
        return _error(event)
    if not isinstance(kind, str):
        # "message" is the protocol's own name for an event without one.
        event["type"] = "" if name == b"message" else name.decode(errors="replace")
    return event


def _without_json(data: bytes, name: bytes, why: Exception | None) -> dict[str, Any] | None:
    """The event of data that is no JSON object: its name must say enough."""
    said = {"type": name.decode(errors="replace")}
    if data == END.encode():
        return {"type": END}
    if name not in _NEEDS_DATA:
        text = data.decode(errors="replace")
        return said | {"error": {"message": text}} if data and name == b"error" else said
    if not data:
        return None
    raise BadEventDataError("the data of an event is not a JSON object") from why


def _error(event: dict[str, Any]) -> dict[str, Any]:
    """An error as the API writes it; gateways put it elsewhere, or at the top."""
    if event.get("error") is not None:
        return event | {"type": "error"}
    message = event.get("message")
    return {"type": "error", "error": message if isinstance(message, dict) else event}


def is_stream(beginning: bytes) -> bool:
    """True if a body begins as a stream of events does, whatever type it is given: no page and no
    JSON begins so."""
    return _FIELD.match(beginning) is not None


def whole_message(page: bytes) -> bytes | None:
    """Convert an answer that came as one message to an event of a stream; None for anything else.

    Some gateways ignore `stream`.
    """
    try:
        message = object_of(json.loads(page))
    except (ValueError, RecursionError):
        return None
    if message.get("type") != "message":
        return None
    return b"data: " + json.dumps(message).encode() + b"\n\n"


def _events_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """A whole message as the events of a stream."""
    given: object = message.get("content")
    content = [{"type": "text", "text": given}] if isinstance(given, str) else list_of(given)
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    for index, block in enumerate(content):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
    return [*events, {"type": "message_delta", "delta": message}, {"type": "message_stop"}]
