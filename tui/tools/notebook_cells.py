"""The cells of a notebook as one text that edits change, put back into its JSON.

Only the sources that changed are rewritten, in the form that they had: one string, or a list of
lines with the notebook's own indentation. Everything else stays byte for byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, cast

from tui.core.dataclass import dataclass
from tui.core.errors import ToolError
from tui.core.messages import list_of, object_of, string_of
from tui.tools.text_match import CELL_MARK

_BLANK: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder(object_hook=lambda found: found)
"""The hook is a Python call for each object, so that other threads get their turn."""


@dataclass(frozen=True, slots=True)
class _Source:
    """The source of a cell, and where its value is in the JSON; no place, no source."""

    text: str
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class NotebookCells:
    """A notebook's JSON and the sources of its cells. `text` has a line above each cell."""

    raw: str
    heads: tuple[str, ...]
    sources: tuple[_Source, ...]

    @property
    def text(self) -> str:
        cells = zip(self.heads, self.sources, strict=True)
        return "".join(f"{CELL_MARK}{head}\n{source.text}\n" for head, source in cells)

    def with_text(self, text: str) -> str:
        """Return the JSON with the cells that a changed `text` has. Raises ToolError if it no
        longer has the same cells."""
        parts = [part.partition("\n") for part in text.split(CELL_MARK)[1:]]
        if text[:1] not in {"", CELL_MARK} or tuple(head for head, _, _ in parts) != self.heads:
            raise ToolError("An edit crosses the beginning of a cell.", hint=_ONE_CELL)
        pieces: list[str] = []
        done = 0
        for source, (head, _, rest) in zip(self.sources, parts, strict=True):
            new = rest.removesuffix("\n")
            if new == source.text:
                continue
            if not source.end:
                raise ToolError(f"The cell of {head} has no source.", hint=_ONE_CELL)
            pieces += (self.raw[done : source.start], self._value(source, new))
            done = source.end
        return "".join((*pieces, self.raw[done:]))

    def _value(self, source: _Source, new: str) -> str:
        """Return a source as JSON, in the form that it had."""
        # half a character can only be written as an escape
        halved = any("\ud800" <= char <= "\udfff" for char in new)
        ascii_only = halved or (self.raw.isascii() and "\\u" in self.raw)
        if self.raw[source.start] != "[":
            return json.dumps(new, ensure_ascii=ascii_only)
        lines = re.findall(r"[^\n]*\n|[^\n]+", new)
        if not lines:
            return "[]"
        items = list(_items(self.raw, source.start))
        known = {self.raw[start:end]: json.loads(self.raw[start:end]) for start, end in items}
        written = {line: token for token, line in known.items()}
        tokens = [written.get(line) or json.dumps(line, ensure_ascii=ascii_only) for line in lines]
        before, between, after = self._spaces(source, items)
        return f"[{before}{between.join(tokens)}{after}]"

    def _spaces(self, source: _Source, items: list[tuple[int, int]]) -> tuple[str, str, str]:
        """Return what stands before, between and after the lines of a source."""
        raw = self.raw
        if items:
            before, after = raw[source.start + 1 : items[0][0]], raw[items[-1][1] : source.end - 1]
            between = raw[items[0][1] : items[1][0]] if items[1:] else f",{before or ' '}"
            return before, between, after
        line = raw.rfind("\n", 0, source.start) + 1
        if not line:
            return "", ", ", ""
        unit = re.search(r"\n([ \t]+)", raw)
        indent = cast("re.Match[str]", re.compile(r"[ \t]*").match(raw, line))[0]
        inner = f"\n{indent}{unit[1] if unit else ' '}"
        return inner, f",{inner}", f"\n{indent}"


_ONE_CELL: Final = "Edit one cell at a time; its heading line is not part of it."


def cells_of(raw: str) -> NotebookCells | None:
    """Return the cells of a notebook; None for a text that is none."""
    try:
        book: object = _DECODER.decode(raw)
        if not isinstance(book, dict) or CELL_MARK in raw:
            return None
        found = object_of(cast("dict[str, Any]", book))
        if not isinstance(found.get("cells"), list):
            return None
        kinds = [string_of(object_of(cell).get("cell_type")) for cell in list_of(found["cells"])]
        start = dict(_members(raw, _skip(raw, 0)))["cells"][0]
        sources = tuple(_source(raw, cell) for cell, _ in _items(raw, start))
    except (ValueError, RecursionError):
        return None
    heads = (f"--- cell {n} ({kind or 'unknown kind'}) ---" for n, kind in enumerate(kinds, 1))
    cells = NotebookCells(raw, tuple(head.replace("\n", " ") for head in heads), sources)
    return None if any(CELL_MARK in one.text for one in sources) else cells


def _source(raw: str, cell: int) -> _Source:
    if raw[cell] != "{":
        return _Source("")
    place = dict(_members(raw, cell)).get("source")
    if place is None:
        return _Source("")
    value: object = json.loads(raw[place[0] : place[1]])
    lines = cast("list[object]", value) if isinstance(value, list) else [value]
    if not all(isinstance(line, str) for line in lines):
        return _Source("")
    return _Source("".join(map(string_of, lines)), *place)


def _members(raw: str, at: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the members of an object: name, and where the value is."""
    at = _skip(raw, at + 1)
    while raw[at] != "}":
        name, at = cast("tuple[str, int]", _DECODER.raw_decode(raw, at))
        start = _skip(raw, _skip(raw, at) + 1)
        _, at = cast("tuple[object, int]", _DECODER.raw_decode(raw, start))
        yield name, (start, at)
        at = _next(raw, at)


def _items(raw: str, at: int) -> Iterator[tuple[int, int]]:
    """Yield where the items of a list are."""
    at = _skip(raw, at + 1)
    while raw[at] != "]":
        start = at
        _, at = cast("tuple[object, int]", _DECODER.raw_decode(raw, start))
        yield start, at
        at = _next(raw, at)


def _next(raw: str, at: int) -> int:
    at = _skip(raw, at)
    return _skip(raw, at + 1) if raw[at] == "," else at


def _skip(raw: str, at: int) -> int:
    return cast("re.Match[str]", _BLANK.match(raw, at)).end()
