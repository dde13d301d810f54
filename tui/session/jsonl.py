"""From bytes to JSON objects: a bad line costs only that line, and becomes a finding.

Lines end at `\\n` only. Nothing is raised for damage and nothing is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, cast

import msgspec

from tui.core.dataclass import dataclass, field
from tui.core.late_pattern import late_pattern
from tui.session.records import Finding

MAX_LINE = 64 * 1024 * 1024
"""Only the head of a longer line is read: a placeholder takes the place of the record."""

MAX_FINDINGS = 1000
_JOINED_LINES = 20
_JOINED_BYTES = 4 * 1024 * 1024
_CHUNK = 1024 * 1024
_HEAD = 4096
_BOM = b"\xef\xbb\xbf"
_DECODER = json.JSONDecoder(strict=False)
_PLAIN: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_SPACE = late_pattern(r"\s*")

JsonObject: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RecordShape:
    """The rules that recognise the records of a format: `start` matches the beginning of one in a
    text, `whole` is true for a complete object."""

    start: re.Pattern[str]
    whole: Callable[[JsonObject], bool]


def _whole(record: JsonObject) -> bool:
    return record.keys() >= {"type", "id", "parent", "time"} or record.get("type") == "session"


OURS = RecordShape(re.compile(r'\{\s*"(?:type|id|parent|time)"\s*:'), _whole)


@dataclass(slots=True)
class Findings:
    """Collects findings, at most MAX_FINDINGS of them; the last then says how many more."""

    items: list[Finding] = field(default_factory=list[Finding])
    dropped: int = 0

    def add(self, code: str, where: str, action: str) -> None:
        if len(self.items) < MAX_FINDINGS:
            self.items.append(Finding(code, where, action))
        else:
            self.dropped += 1

    def all(self) -> tuple[Finding, ...]:
        if not self.dropped:
            return tuple(self.items)
        more = Finding("R9", "the rest of the file", f"{self.dropped:,} more findings")
        return (*self.items, more)


class JsonLine(msgspec.Struct, frozen=True):
    """A line without its newline. `number` counts from 1; `offset` is the place of its first byte.

    `data` is None for a line longer than MAX_LINE, with `head` its beginning and `size` its
    length. `ended`: a newline followed. A Struct, which is made four times as fast as a dataclass.
    """

    number: int
    offset: int
    data: bytes | None
    ended: bool = True
    head: bytes = b""
    size: int = 0

    @property
    def where(self) -> str:
        return f"line {self.number} (byte {self.offset})"


def split(read: Callable[[int], bytes]) -> Iterator[JsonLine]:
    """Lines of a stream, in bounded memory. Empty ones are left out."""
    number, offset, parts, size, head = 1, 0, list[bytes](), 0, b""

    def line(ended: bool) -> JsonLine | None:
        if size > MAX_LINE:
            return JsonLine(number, offset, None, ended, head or b"".join(parts)[:_HEAD], size)
        data = b"".join(parts)
        return JsonLine(number, offset, data, ended) if data else None

    while chunk := read(_CHUNK):
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            if not size and 0 < len(part) <= MAX_LINE:  # in one piece, as nearly all are
                yield JsonLine(number, offset, part)
                number, offset = number + 1, offset + len(part) + 1
                continue
            parts.append(part)
            size += len(part)
            if item := line(ended=True):
                yield item
            number, offset = number + 1, offset + size + 1
            parts.clear()
            size, head = 0, b""
        if size <= MAX_LINE:
            parts.append(rest)
        elif not head:
            head = b"".join(parts)[:_HEAD]
            parts.clear()
        size += len(rest)
    if item := line(ended=False):
        yield item


def parse(
    lines: Iterable[JsonLine], findings: Findings, shape: RecordShape = OURS
) -> Iterator[tuple[JsonLine, JsonObject]]:
    """The objects of the lines, in order. What cannot be read becomes a finding."""
    torn: list[tuple[JsonLine, str]] = []  # lines that may be the parts of one record
    for line in lines:
        if line.data is None:
            _give_up(torn, findings)
            record = _placeholder(line)
            what = "its content left out" if record else "left out"
            findings.add("B51", line.where, f"{what}: longer than {MAX_LINE:,} bytes")
            if record:
                yield line, record
            continue
        values = _decode_plain(line.data)
        if values is not None:
            if torn:
                _give_up(torn, findings)
        else:
            values = _parse_damaged(line, torn, findings, shape)
        for value in values:
            if isinstance(value, dict):
                yield line, cast("JsonObject", value)
            else:
                findings.add("B56", line.where, "skipped: not an object")
    _give_up(torn, findings)


def _placeholder(line: JsonLine) -> JsonObject | None:
    """A placeholder for a record that is too long: its place in the session, from its head."""
    text = line.head.decode(errors="replace").lstrip("\ufeff\0 ")
    record: JsonObject = {}
    field = _FIRST_FIELD.match(text)
    while field:
        record[field[1]] = json.loads(field[2])
        field = _NEXT_FIELD.match(text, field.end())
    if not record.keys() >= {"type", "id", "parent", "time"}:
        return None
    notice = f"[{line.size:,} bytes left out: more than one record may hold]"
    return record | {"content": [{"type": "text", "text": notice}], "left_out": line.size}


_FIELD = r'\s*"(type|id|parent|time|call_id|name|model)"\s*:\s*(null|"[^"\\\x00-\x1f]*")'
_FIRST_FIELD = late_pattern(r"\{" + _FIELD)
_NEXT_FIELD = late_pattern(r"\s*," + _FIELD)


def _decode(line: JsonLine, findings: Findings) -> str:
    data = cast("bytes", line.data)
    if b"\0" in data:
        data = data.replace(b"\0", b"")
        findings.add("B43", line.where, "NUL bytes left out")
    if data.startswith(_BOM):
        data = data.removeprefix(_BOM)
        findings.add("B48", line.where, "byte order mark left out")
    data = data.removesuffix(b"\r")
    try:
        return data.decode()
    except UnicodeDecodeError:
        if line.ended:
            findings.add("B49", line.where, "invalid UTF-8 shown as U+FFFD")
        return data.decode(errors="replace")


def _decode_plain(data: bytes) -> tuple[object] | None:
    """The value of a line of valid JSON, which nearly all are; three times faster than `_loads`."""
    try:
        return (_PLAIN.decode(data),)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _parse_damaged(
    line: JsonLine, torn: list[tuple[JsonLine, str]], findings: Findings, shape: RecordShape
) -> Sequence[object]:
    """The values that can be recovered from a line that is not valid JSON."""
    text = _decode(line, findings)
    if not text.strip():
        return ()
    values = _loads(text)
    if values is None:
        return _repaired(text, torn, line, findings, shape)
    _give_up(torn, findings)
    return values


def _loads(text: str) -> list[object] | None:
    """The one value of a text, or None."""
    try:
        return [_DECODER.decode(text)]
    except (ValueError, RecursionError):
        return None


def _repaired(
    text: str,
    torn: list[tuple[JsonLine, str]],
    line: JsonLine,
    findings: Findings,
    shape: RecordShape,
) -> list[object]:
    """The records that can be recovered from a line that is not one JSON value."""
    if torn:
        joined = _loads("\n".join((*(part for _, part in torn), text)))
        if joined is not None:
            findings.add("B46", torn[0][0].where, f"{len(torn) + 1} lines joined to one record")
            torn.clear()
            return joined
    records, lost = _salvage(text, shape)
    if records:
        _give_up(torn, findings)
        if len(records) > 1:
            findings.add("B42", line.where, f"{len(records)} records on one line taken apart")
        if lost:
            findings.add("B41", line.where, "the torn part of a line left out")
        return records
    torn.append((line, text))
    if len(torn) > _JOINED_LINES or sum(len(part) for _, part in torn) > _JOINED_BYTES:
        _give_up(torn, findings)
    return []


def _give_up(torn: list[tuple[JsonLine, str]], findings: Findings) -> None:
    for line, _ in torn:
        if line.ended:
            findings.add("B52", line.where, "skipped: not valid JSON")
        else:
            findings.add("B40", line.where, "the last line is cut short; left out, bytes kept")
    torn.clear()


def _salvage(text: str, shape: RecordShape) -> tuple[list[object], bool]:
    """The whole records in a text, and whether it holds anything else."""
    objects: list[object] = []
    lost = False
    position = _skip_space(text, 0)
    while position < len(text):
        start = shape.start.match(text, position)
        record = _record_at(text, position, shape) if start else None
        if record is None:
            lost = True
            start = shape.start.search(text, position + 1)
            if start is None:
                break
            position = start.start()
            continue
        objects.append(record[0])
        position = _skip_space(text, record[1])
    return objects, lost


def _record_at(text: str, position: int, shape: RecordShape) -> tuple[JsonObject, int] | None:
    """The record that begins at a position, and where it ends."""
    try:
        value, end = _DECODER.raw_decode(text, position)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    record = cast("JsonObject", value)
    return (record, end) if shape.whole(record) else None


def _skip_space(text: str, position: int) -> int:
    space = _SPACE.match(text, position)
    return space.end() if space else position
