"""Server-sent events decoded from bytes, however the network split them.

The SDK's own iterator hides pings, so silence and life look the same, and it builds a model per
event; its response's bytes are public, and only this much has to be read in them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec

from tui.core.messages import list_of, object_of

EVENT_MAX: Final = 32 * 1024**2
"""Maximum bytes of one event; anything longer is no answer."""
ANSWER_MAX: Final = 256 * 1024**2
"""Maximum bytes of one answer, once unpacked."""


class BadEventDataError(ValueError):
    """The data of an event is no JSON object, or there is too much of it."""


class EventDecoder:
    """Decodes chunks into events, each event's data as a JSON object.

    Lines end with LF or CRLF. Comments, ids and `retry` are skipped; `comments` counts the first.
    An event without data is none; one whose data has no `type` gets the name of its `event` line.
    """

    def __init__(self) -> None:
        self._partial: list[bytes] = []
        self._data: list[bytes] = []
        self._name = b""
        self._held = self._seen = 0
        self.comments = 0

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        """Yield the events that `chunk` completes. Raises BadEventDataError."""
        if self._held > EVENT_MAX or self._seen > ANSWER_MAX:
            raise BadEventDataError("the answer is too large")
        self._held, self._seen = self._held + len(chunk), self._seen + len(chunk)
        head, newline, rest = chunk.rpartition(b"\n")
        if not newline:
            self._partial.append(chunk)
            return
        self._partial.append(head)
        lines = b"".join(self._partial).split(b"\n")
        self._partial = [rest] if rest else []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:])
            elif line.startswith(b"event:"):
                self._name = line[6:].strip()
            elif line.startswith(b":"):
                self.comments += 1
            elif not line.rstrip(b"\r"):
                data, name = self._data, self._name
                self._data, self._name = [], b""
                self._held = len(rest)
                if data:
                    yield _object(b"\n".join(data), name)


def _object(data: bytes, name: bytes) -> dict[str, Any]:
    try:
        value: object = msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError):  # rejects half a pair, NaN
        try:
            value = json.loads(data.decode())
        except (ValueError, RecursionError) as error:
            raise BadEventDataError(str(error)) from error
    if not isinstance(value, dict):
        raise BadEventDataError("the data of an event is not a JSON object")
    event = cast("dict[str, Any]", value)
    if "type" not in event:
        event["type"] = name.decode(errors="replace")
    return event


def whole_message(page: bytes) -> bytes | None:
    """Convert an answer that came as one message to the events of a stream; None for anything else.

    Some gateways ignore `stream`.
    """
    try:
        message = object_of(json.loads(page))
    except (ValueError, RecursionError):
        return None
    if message.get("type") != "message":
        return None
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    for index, block in enumerate(list_of(message.get("content"))):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
    events += [{"type": "message_delta", "delta": message}, {"type": "message_stop"}]
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
