"""Amazon's event stream, in which Bedrock's InvokeModel answers, as server-sent events.

Each message has a checksum, and an event of the Messages API as base64 in its JSON. What a stream
reports of its own failure becomes an `error` event, as the API itself would send it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, cast

from tui.core.messages import object_of, string_of

if TYPE_CHECKING:
    from botocore.eventstream import EventStreamMessage

_LIFE: Final = b": \n"


class BadEventStreamError(ValueError):
    """Bytes that are no event stream, or damaged."""


async def as_server_sent_events(chunks: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Yield the events in the chunks as server-sent events, however the network split them. A
    message that says nothing is a comment. Raises BadEventStreamError."""
    from botocore.eventstream import EventStreamBuffer, ParserError  # noqa: PLC0415 - loaded by now

    buffer: Any = EventStreamBuffer()
    async with aclosing(chunks):
        async for chunk in chunks:
            try:
                buffer.add_data(chunk)
                events = b"".join(map(_event, buffer))
            except (ParserError, ValueError) as error:
                raise BadEventStreamError(str(error)) from error
            if events:
                yield events


def _event(message: EventStreamMessage) -> bytes:
    """One message as an event. Raises ValueError for one that can't be read."""
    headers = cast("Mapping[str, str]", message.headers)
    payload = cast("bytes", message.payload)
    kind = headers.get(":message-type", "event")
    if kind == "event":
        data = string_of(object_of(json.loads(payload or b"{}")).get("bytes"))
        if not data:
            return _LIFE
        event = base64.b64decode(data, validate=True).replace(b"\n", b" ")
        name = string_of(object_of(json.loads(event)).get("type"))
        return b"event: %s\ndata: %s\n\n" % (name.encode(), event)
    name = headers.get(":exception-type") or headers.get(":error-code") or kind
    text = headers.get(":error-message") or _text(payload)
    error = {"type": "error", "error": {"type": name, "message": text}}
    return b"event: error\ndata: %s\n\n" % json.dumps(error).encode()


def _text(payload: bytes) -> str:
    """The words of an exception: `originalMessage` are the model's own."""
    try:
        said = object_of(json.loads(payload))
    except ValueError:
        return payload.decode("utf-8", "replace")
    return string_of(said.get("originalMessage")) or string_of(said.get("message"))
