"""The lines of a damaged file as JSON objects, with the bytes of those that are sound."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from tui.core.dataclass import dataclass, field
from tui.session.jsonl import JsonObject

_BOM = b"\xef\xbb\xbf"


def _refuse(name: str) -> None:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def strict_json(raw: bytes) -> object:
    """The value of a line, as strictly as the other programs read it: UTF-8, no NaN.

    Raises ValueError.
    """
    return _DECODER.decode(raw.decode())


@dataclass(slots=True)
class Repairs:
    """The repairs made, in words, and the original bytes of what was changed or taken out."""

    said: list[str] = field(default_factory=list[str])
    set_aside: list[bytes] = field(default_factory=list[bytes])

    def add(self, number: int, what: str, raw: bytes) -> None:
        """Note a repair of a line (counted from 1; 0: of the whole file)."""
        self.said.append(f"line {number}: {what}" if number else what)
        if raw:
            self.set_aside.append(raw)

    def changed(self, line: MendedLine, what: str, fields: Mapping[str, Any]) -> MendedLine:
        """The line with other fields, which is noted."""
        self.add(line.number, what, line.raw)
        value = {**line.value, **fields}
        return MendedLine(line.number, encoded(value), value)


@dataclass(slots=True)
class MendedLine:
    """A line that is a JSON object. `raw` has its line end."""

    number: int
    raw: bytes
    value: JsonObject


def encoded(value: JsonObject) -> bytes:
    """A line as the other programs write it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace") + b"\n"


def mended_lines(data: bytes, repairs: Repairs) -> list[MendedLine]:
    """The objects of a file. What is no JSON is set aside."""
    while data.startswith(_BOM):
        repairs.add(0, "a byte order mark at the start was taken out", _BOM)
        data = data[len(_BOM) :]
    lines: list[MendedLine] = []
    for number, raw in enumerate(data.split(b"\n"), start=1):
        if raw.strip():
            lines.extend(_of_line(number, raw, repairs))
    if lines and not data.endswith(b"\n") and not lines[-1].raw.endswith(b"\n"):
        lines[-1].raw += b"\n"
    return lines


def _of_line(number: int, raw: bytes, repairs: Repairs) -> Iterator[MendedLine]:
    try:
        value = strict_json(raw)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        yield MendedLine(number, raw + b"\n", cast("JsonObject", value))
        return
    text = raw.replace(b"\0", b"").decode("utf-8", "replace")
    objects = list(_objects(text))
    what = f"{len(objects) or 'nothing'} readable; the line was rewritten"
    repairs.add(number, what if objects else "not a JSON object: set aside", raw)
    for one in objects:
        yield MendedLine(number, encoded(one), one)


def _objects(text: str) -> Iterator[JsonObject]:
    """The whole objects in a text, one after another."""
    place = 0
    while (place := text.find("{", place)) >= 0:
        try:
            value, place = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            return  # what is inside a broken object is no record of its own
        if isinstance(value, dict):
            yield value
