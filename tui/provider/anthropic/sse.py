"""Server-sent events out of bytes, however the network cut them.

The SDK's own iterator hides pings, so silence and life look the same, and it builds a model per
event; its response's bytes are public, and this is all that has to be read in them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast


class BadEventDataError(ValueError):
    """The data of an event is no JSON object."""


class EventDecoder:
    """Feed it chunks; it gives each event's data as a JSON object.

    Lines end with LF or CRLF. Comments, ids and `retry` are skipped; `comments` counts the first.
    An event without data is none; one whose data has no `type` takes the name of its `event` line.
    """

    def __init__(self) -> None:
        self._partial: list[bytes] = []
        self._data: list[bytes] = []
        self._name = b""
        self.comments = 0

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        """The events that `chunk` completes. Raises BadEventDataError."""
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
                if data:
                    yield _object(b"\n".join(data), name)


def _object(data: bytes, name: bytes) -> dict[str, Any]:
    try:
        value: object = json.loads(data.decode())
    except ValueError as error:
        raise BadEventDataError(str(error)) from error
    if not isinstance(value, dict):
        raise BadEventDataError("the data of an event is not a JSON object")
    event = cast("dict[str, Any]", value)
    if "type" not in event:
        event["type"] = name.decode(errors="replace")
    return event
