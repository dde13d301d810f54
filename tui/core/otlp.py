"""Spans, and their two forms on the wire and in files: OTLP 1 as JSON and as protobuf. Pure.

The JSON form follows the protocol's own rules: ids are hexadecimal, enums numbers, 64-bit integers
strings. The binary form is made of it by `_MESSAGES`, a part of the protocol's definition.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast

from tui.core.dataclass import dataclass, field
from tui.core.late_pattern import late_pattern
from tui.core.messages import object_of, string_of

AttributeValue: TypeAlias = str | bool | int | float | tuple[str, ...]
Attributes: TypeAlias = Mapping[str, AttributeValue]

_KINDS: Final = {"internal": 1, "client": 3}
_ERROR: Final = 2
_TRACEPARENT: Final = late_pattern(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})"
    r"(?P<more>-.*)?"
)
_SAMPLED: Final = 1


@dataclass(frozen=True, slots=True)
class SpanContext:
    """Names a span: 32 hexadecimal digits for its trace, 16 for itself."""

    trace_id: str
    span_id: str

    @property
    def traceparent(self) -> str:
        """The same as W3C Trace Context writes it, for whoever continues the trace."""
        return f"00-{self.trace_id}-{self.span_id}-01"


def parent_in(traceparent: str) -> SpanContext | None:
    """Return the span that a `traceparent` names; None for one that is not valid, or whose trace
    is not kept: its parts would be orphans."""
    match = _TRACEPARENT.fullmatch(traceparent)
    if match is None or match["version"] == "ff" or (match["version"] == "00" and match["more"]):
        return None
    trace, span = match["trace"], match["span"]
    kept = int(match["flags"], 16) & _SAMPLED
    return SpanContext(trace, span) if kept and trace.strip("0") and span.strip("0") else None


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """A moment of a span; `at` is in nanoseconds since 1970, as all times here."""

    name: str
    at: int
    attributes: Attributes = field(default_factory=dict[str, AttributeValue])


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of work that has ended. `parent` is the id of the span around it, "" for none;
    `error` its failure in words, perhaps "", None where it did not fail."""

    name: str
    context: SpanContext
    parent: str
    kind: Literal["internal", "client"]
    start: int
    end: int
    attributes: Attributes
    events: tuple[SpanEvent, ...] = ()
    links: tuple[SpanContext, ...] = ()
    error: str | None = None


def text_size(span: Span) -> int:
    """Return the number of characters in the attributes of a span and its events."""
    every = (span.attributes, *(one.attributes for one in span.events))
    texts = (value for some in every for value in some.values() if isinstance(value, str))
    return sum(map(len, texts)) + len(span.error or "")


@dataclass(frozen=True, slots=True)
class SpanSource:
    """The attributes of the program that the spans come from. `schema` is the address of the
    conventions that name them."""

    resource: Attributes
    scope: str
    version: str
    schema: str


def to_json(spans: Iterable[Span], source: SpanSource) -> dict[str, Any]:
    """Return the request that exports spans, which is also a line of a file of them."""
    scope = {"name": source.scope, "version": source.version}
    of_scope = {"scope": scope, "spans": [_span(one) for one in spans], "schemaUrl": source.schema}
    resource = {"attributes": _attributes(source.resource)}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [of_scope]}]}


def to_protobuf(request: Mapping[str, Any]) -> bytes:
    """Return the binary form of what `to_json` made."""
    return b"".join(_encoded(request, "request"))


def answer_in(body: bytes, *, json: object = None) -> tuple[int, str]:
    """Read what a collector says of a request that it took: how many spans it rejected, and why.
    `json` is the body parsed, where it is JSON. What can't be read says nothing."""
    if json is not None:
        part = object_of(object_of(json).get("partialSuccess"))
        return _count(part.get("rejectedSpans")), string_of(part.get("errorMessage"))
    inner = dict(_fields(body)).get(1)
    part = dict(_fields(inner)) if isinstance(inner, bytes) else {}
    message = part.get(2)
    text = message.decode(errors="replace") if isinstance(message, bytes) else ""
    return _count(part.get(1)), text


def refusal_in(body: bytes, *, json: object = None) -> str:
    """Read the message of a collector that refuses a request; "" where there is none."""
    if json is not None:
        status = object_of(json)
        return string_of(status.get("message")) or string_of(status.get("detail"))
    message = dict(_fields(body)).get(2)
    try:
        return message.decode() if isinstance(message, bytes) else ""
    except UnicodeDecodeError:
        return ""


def _count(value: object) -> int:
    """A number of spans, which JSON has as a string."""
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0


def _span(span: Span) -> dict[str, Any]:
    made: dict[str, Any] = {
        "traceId": span.context.trace_id,
        "spanId": span.context.span_id,
        "name": _text(span.name),
        "kind": _KINDS[span.kind],
        "startTimeUnixNano": str(span.start),
        "endTimeUnixNano": str(span.end),
        "attributes": _attributes(span.attributes),
    }
    if span.parent:
        made["parentSpanId"] = span.parent
    if span.events:
        made["events"] = [
            {
                "timeUnixNano": str(one.at),
                "name": one.name,
                "attributes": _attributes(one.attributes),
            }
            for one in span.events
        ]
    if span.links:
        made["links"] = [{"traceId": one.trace_id, "spanId": one.span_id} for one in span.links]
    if span.error is not None:
        made["status"] = {"code": _ERROR} | ({"message": _text(span.error)} if span.error else {})
    return made


def _attributes(attributes: Attributes) -> list[dict[str, Any]]:
    return [{"key": _text(key), "value": _value(value)} for key, value in attributes.items()]


def _value(value: AttributeValue) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, str):
        return {"stringValue": _text(value)}
    return {"arrayValue": {"values": [{"stringValue": _text(one)} for one in value]}}


def _text(value: str) -> str:
    """A text as both forms can have it: half a character, which a record may hold, is a ?."""
    return value if value.isascii() else value.encode(errors="replace").decode()


# The binary form: a field is a key and a value; its type says how the value is written.

_MESSAGES: Final[Mapping[str, Mapping[str, tuple[int, str]]]] = {
    "request": {"resourceSpans": (1, "resourceSpans")},
    "resourceSpans": {"resource": (1, "resource"), "scopeSpans": (2, "scopeSpans")},
    "resource": {"attributes": (1, "keyValue")},
    "scopeSpans": {"scope": (1, "scope"), "spans": (2, "span"), "schemaUrl": (3, "string")},
    "scope": {"name": (1, "string"), "version": (2, "string")},
    "span": {
        "traceId": (1, "hex"),
        "spanId": (2, "hex"),
        "parentSpanId": (4, "hex"),
        "name": (5, "string"),
        "kind": (6, "int"),
        "startTimeUnixNano": (7, "fixed64"),
        "endTimeUnixNano": (8, "fixed64"),
        "attributes": (9, "keyValue"),
        "events": (11, "event"),
        "links": (13, "link"),
        "status": (15, "status"),
    },
    "event": {
        "timeUnixNano": (1, "fixed64"),
        "name": (2, "string"),
        "attributes": (3, "keyValue"),
    },
    "link": {"traceId": (1, "hex"), "spanId": (2, "hex")},
    "status": {"message": (2, "string"), "code": (3, "int")},
    "keyValue": {"key": (1, "string"), "value": (2, "value")},
    "value": {
        "stringValue": (1, "string"),
        "boolValue": (2, "int"),
        "intValue": (3, "int"),
        "doubleValue": (4, "double"),
        "arrayValue": (5, "array"),
    },
    "array": {"values": (1, "value")},
}
_VARINT, _FIXED64, _BYTES = 0, 1, 2


def _encoded(message: Mapping[str, Any], type_: str) -> Iterable[bytes]:
    for name, (number, kind) in _MESSAGES[type_].items():
        value = message.get(name)
        if value is not None:
            several = cast("list[Any]", value) if isinstance(value, list) else (value,)
            for one in several:
                yield _field(number, kind, one)


def _field(number: int, kind: str, value: Any) -> bytes:
    match kind:
        case "int":
            return _varint(number << 3 | _VARINT) + _varint(int(value) & (1 << 64) - 1)
        case "fixed64":
            return _varint(number << 3 | _FIXED64) + struct.pack("<Q", int(value))
        case "double":
            return _varint(number << 3 | _FIXED64) + struct.pack("<d", value)
        case "string":
            data = value.encode()
        case "hex":
            data = bytes.fromhex(value)
        case _:
            data = b"".join(_encoded(value, kind))
    return _varint(number << 3 | _BYTES) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def _fields(data: bytes) -> Sequence[tuple[int, int | bytes]]:
    """The fields of a binary message, as far as it can be read."""
    found: list[tuple[int, int | bytes]] = []
    place = 0
    try:
        while place < len(data):
            key, place = _read_varint(data, place)
            match key & 7:
                case 0:
                    value, place = _read_varint(data, place)
                    found.append((key >> 3, value))
                case 2:
                    size, place = _read_varint(data, place)
                    found.append((key >> 3, data[place : place + size]))
                    place += size
                case 1 | 5:
                    place += 8 if key & 7 == _FIXED64 else 4
                case _:
                    break
    except IndexError:
        pass
    return found


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
