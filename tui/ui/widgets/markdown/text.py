"""Lines that know what to copy, and wrapping by cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style

from tui.core.text_cleaning import clean

if TYPE_CHECKING:
    from textual.widget import Widget


Span: TypeAlias = tuple[str, Style]


class Line(NamedTuple):
    """One drawn line, and the text that copying it gives.

    Characters before `start` and from `end` on are decoration. `lead` is the source of the
    decoration (such as "- " for a bullet), `source` the source of the whole line if it differs from
    the text. `join` is None for a line of its own, else the text at which it was wrapped. `fill` is
    the style for the rest of the row. `block` is the number of the code block that begins here, 0
    for other lines.
    """

    segments: list[Segment]
    cells: int
    start: int = 0
    end: int | None = None
    lead: str = ""
    source: str | None = None
    join: str | None = None
    fill: Style | None = None
    block: int = 0

    @property
    def text(self) -> str:
        return "".join(segment.text for segment in self.segments)


BLANK = Line([], 0)


def cells(spans: Iterable[Span]) -> int:
    """Return how many cells the spans take."""
    return sum(cell_len(text) for text, _ in spans)


def line(spans: Iterable[Span], **about: object) -> Line:
    """Return a line of `spans`; `about` sets its other fields."""
    spans = [span for span in spans if span[0]]
    segments = [Segment(text, style) for text, style in spans]
    return Line(segments, cells(spans), **about)  # pyright: ignore[reportArgumentType]


def decoration(spans: Iterable[Span], *, source: str = "", fill: Style | None = None) -> Line:
    """Return a line of which nothing can be selected, and only `source` is copied."""
    return line(spans, start=0, end=0, source=source, join=None if source else "", fill=fill)


def prefixed(row: Line, prefix: Sequence[Span], lead: str = "") -> Line:
    """Return `row` after a decoration whose source is `lead`."""
    size = sum(len(text) for text, _ in prefix)
    return row._replace(
        segments=[*(Segment(text, style) for text, style in prefix if text), *row.segments],
        cells=row.cells + cells(prefix),
        start=row.start + size,
        end=None if row.end is None else row.end + size,
        lead=lead + row.lead,
    )


_WIDE = (
    "\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff01-\uff60"
    "\U00020000-\U0003fffd"
)
_UNITS = re.compile(rf" +|[^ {_WIDE}]+|[{_WIDE}][，。、；：！？）」』】》…]*")


class Piece(NamedTuple):
    """A wrapped line's place in its text; `join` as in `Line`."""

    start: int
    end: int
    join: str | None


def _break(text: str, offset: int, width: int) -> list[Piece]:
    """Break one line of text; words too long for a line are cut."""
    pieces: list[Piece] = []
    join: str | None = None
    start = position = used = 0
    for match in _UNITS.finditer(text):
        unit = match.group()
        size = len(unit) if unit.isascii() else cell_len(unit)
        if used + size <= width:
            used += size
            position = match.end()
            continue
        if unit[0] == " ":  # spaces at the end of a line stay with it, invisible
            if position > start:
                pieces.append(Piece(offset + start, offset + position, join))
                join, start, used = unit, match.end(), 0
            else:
                join, start, used = (join or "") + unit, match.end(), 0
            position = start
            continue
        # The word starts a new line, unless only an indent precedes it.
        indent = text[start:position]
        if indent.strip(" ") or used > width // 2:
            bare = indent.rstrip(" ") or indent
            pieces.append(Piece(offset + start, offset + start + len(bare), join))
            join, start, used = indent[len(bare) :], position, 0
        used += size
        position = match.end()
        if used > width:  # a word that is too long keeps its indent
            chunks = _parts(text[start:position], width)
            for chunk in chunks[:-1]:
                pieces.append(Piece(offset + start, offset + start + len(chunk), join))
                join, start = "", start + len(chunk)
            used = cell_len(chunks[-1])
    if position > start or not pieces:
        pieces.append(Piece(offset + start, offset + position, join))
    return pieces


def _parts(word: str, width: int) -> list[str]:
    """Split a word that is too long into parts of at most `width` cells. A path or an address is
    broken after a slash, if there is one in the second half of a part."""
    parts: list[str] = []
    at = 0
    while at < len(word):
        part = _first_cells(word[at : at + width], width)
        if at + len(part) < len(word):
            slash = part.rfind("/", len(part) // 2) + 1
            part = part[:slash] if slash else part
        parts.append(part)
        at += len(part)
    return parts


def _first_cells(text: str, width: int) -> str:
    """Return what fits in the first `width` cells; all of a text that takes no cells."""
    chunks = chop_cells(text, width)
    return chunks[0] if chunks else text


def breaks(text: str, width: int) -> list[Piece]:
    """Return the pieces of `text` in which no line is wider than `width` (at least 2) cells."""
    width = max(2, width)
    pieces: list[Piece] = []
    offset = 0
    for row in text.split("\n"):
        size = len(row)
        if size <= width and (row.isascii() or cell_len(row) <= width):
            pieces.append(Piece(offset, offset + size, None))
        else:
            pieces += _break(row, offset, width)
        offset += size + 1
    return pieces


def cut(spans: Sequence[Span], pieces: Iterable[Piece]) -> list[Line]:
    """Return a line for each piece; pieces are in order and do not overlap."""
    rows: list[Line] = []
    index = at = 0  # `at` is where spans[index] begins
    for start, end, join in pieces:
        row: list[Span] = []
        while index < len(spans) and at + len(spans[index][0]) <= start:
            at += len(spans[index][0])
            index += 1
        step, where = index, at
        while step < len(spans) and where < end:
            text, style = spans[step]
            part = text[max(0, start - where) : end - where]
            if part:
                if row and row[-1][1] == style:
                    row[-1] = (row[-1][0] + part, style)
                else:
                    row.append((part, style))
            where += len(text)
            step += 1
        rows.append(line(row, join=join))
    return rows


def wrap(spans: Sequence[Span], width: int) -> list[Line]:
    """Wrap `spans` at words, or inside those that are too long."""
    return cut(spans, breaks("".join(text for text, _ in spans), width))


def chop(spans: Sequence[Span], width: int) -> list[Line]:
    """Cut `spans` (one line) at exactly `width` cells, spaces kept: for code."""
    text = "".join(part for part, _ in spans)
    width = max(2, width)
    if (len(text) if text.isascii() else cell_len(text)) <= width:
        return [line(spans)]
    pieces: list[Piece] = []
    at = 0
    for chunk in chop_cells(text, width):
        pieces.append(Piece(at, at + len(chunk), "" if at else None))
        at += len(chunk)
    return cut(spans, pieces)


_URL = re.compile(r"(?<![A-Za-z0-9+.-])https?://[^\s<>\"`\\|，。、；：！？）」』】》]+")
_AROUND_URL = ".,;:!?'*_~…"
"""Characters that end a sentence or mark a word, not the URL before them."""
_PAIRS = {")": "(", "]": "[", "}": "{"}
_URL_MAX = 2_000


def linked(text: str, style: Style, link: Style) -> list[Span]:
    """Return `text` as spans; URLs in it also get the style `link`, and the terminal opens them."""
    if "://" not in text:
        return [(text, style)] if text else []
    spans: list[Span] = []
    at = 0
    for match in _URL.finditer(text):
        url = match.group().rstrip(_AROUND_URL)
        if len(url) > _URL_MAX:
            continue
        while url[-1] in _PAIRS and url.count(url[-1]) > url.count(_PAIRS[url[-1]]):
            url = url[:-1].rstrip(_AROUND_URL)
        if url.isprintable() and not url.endswith("/" * 2):
            start = match.start()
            spans += [(text[at:start], style), (url, style + link + Style(link=url))]
            at = start + len(url)
    return [span for span in (*spans, (text[at:], style)) if span[0]]


_HANG_ROOM = 24
"""Cells from which a broken line of code is marked, and continues under its own indent."""
CONTINUES = "↪ "
_AFTER = frozenset(" ,;")
"""Code is best broken after one of these, else after other punctuation."""


def fold(spans: Sequence[Span], width: int, mark: Style) -> list[Line]:
    """Break `spans` (one line of code) after a space or punctuation, if there is one.

    The continuation is marked in the style `mark` and indented like the line. Copying the rows
    gives the original line.
    """
    text = "".join(part for part, _ in spans)
    width = max(2, width)
    if (len(text) if text.isascii() else cell_len(text)) <= width:
        return [line(spans)]
    hang, room = 0, width
    if width >= _HANG_ROOM:
        hang = min(len(text) - len(text.lstrip(" ")), width // 3)
        room = width - hang - len(CONTINUES)
    pieces = _code_pieces(text, width, room)
    rows = cut(spans, pieces)
    if pieces[-1].end < len(text):  # trailing spaces, invisible
        rows[-1] = rows[-1]._replace(source=text[pieces[-1].start :])
    if room == width:
        return rows
    before: list[Span] = [(" " * hang + CONTINUES, mark)]
    return [rows[0], *(prefixed(row, before) for row in rows[1:])]


def _code_pieces(text: str, width: int, room: int) -> list[Piece]:
    """Return the pieces of a line of code: the first in `width` cells, the others in `room`."""
    pieces: list[Piece] = []
    body = len(text) - len(text.lstrip(" "))
    at, join, cells = 0, None, width
    while at < len(text):
        reach = at + len(_first_cells(text[at : at + cells], cells))
        end = after = reach
        if reach < len(text):
            after = _code_break(text, max(body, (at + reach) // 2), reach)
            end = len(text[:after].rstrip(" ")) if after > body else after
            after += len(text[after:]) - len(text[after:].lstrip(" "))
        pieces.append(Piece(at, max(at + 1, end), join))
        join, at, cells = text[max(at + 1, end) : after], max(at + 1, after), room
    return pieces


def _code_break(text: str, least: int, most: int) -> int:
    """Return the last good place to break, from `least` to `most`; `most` if there is none."""
    if text[most] == " ":
        return most
    other = 0
    for place in range(most, least, -1):
        if text[place - 1] in _AFTER:
            return place
        before, behind = text[place - 1], text[place]
        if not other and not (before.isalnum() or before == "_") and before != behind:
            other = place
    return other or most


def clip(text: str, width: int) -> str:
    """Return the first line of `text`, cleaned, cut to `width` cells with an ellipsis."""
    text = clean(text[: 8 * width + 80]).split("\n", 1)[0].expandtabs(4).rstrip()
    if cell_len(text) <= width:
        return text
    return chop_cells(text, width - 1)[0] + "…" if width > 1 else "…"[:width]


Styles: TypeAlias = Mapping[str, Style]

RULES: dict[str, str] = {
    "text": "color: $text;",
    "muted": "color: $text-muted;",
    "h1": "color: $text-primary; text-style: bold underline;",
    "h2": "color: $text-primary; text-style: bold;",
    "h3": "color: $text-accent; text-style: bold;",
    "h4": "color: $text; text-style: bold;",
    "strong": "text-style: bold;",
    "em": "text-style: italic;",
    "strike": "text-style: strike;",
    "link": "color: $text-accent; text-style: underline;",
    "code": "color: $text-secondary; background: $surface;",
    "bullet": "color: $text-primary;",
    "done": "color: $text-success;",
    "quote": "color: $text-muted; text-style: italic;",
    "bar": "color: $primary;",
    "border": "color: $text-muted 60%;",
    "head": "color: $text-primary; text-style: bold;",
    "fence": "color: $text; background: $surface;",
    "label": "color: $text-muted; background: $surface;",
    "keyword": "color: $text-accent; background: $surface;",
    "name": "color: $text-primary; background: $surface;",
    "builtin": "color: $text-secondary; background: $surface;",
    "string": "color: $text-success; background: $surface;",
    "number": "color: $text-secondary; background: $surface;",
    "comment": "color: $text-muted; background: $surface; text-style: italic;",
    "invalid": "color: $text-error; background: $surface;",
    "added": "color: $text-success; background: $surface;",
    "removed": "color: $text-error; background: $surface;",
}
_OVERLAYS = frozenset({"strong", "em", "strike", "link"})
"""Laid over the style of the text around them, as is "code"."""

COMPONENTS = {f"markdown--{name}" for name in RULES}


def css(selector: str, rules: Mapping[str, str] = RULES, *, prefix: str = "markdown") -> str:
    """Return the rules as nested CSS for the widget `selector`."""
    nested = "\n".join(f"    & > .{prefix}--{name} {{ {rule} }}" for name, rule in rules.items())
    return f"{selector} {{\n{nested}\n}}\n"


def styles(widget: Widget) -> dict[str, Style]:
    """Return every name's style as it is for `widget` now; ask again when its styles are
    updated."""
    by_name = {
        name: widget.get_component_rich_style(f"markdown--{name}", partial=name in _OVERLAYS)
        for name in RULES
    }
    by_name["code"] = Style(color=by_name["code"].color, bgcolor=by_name["code"].bgcolor)
    return by_name
