"""Turns lines into strips of a given width, with overlays, and copies the text of a selection."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.color import TRANSPARENT, Color
from textual.filter import LineFilter
from textual.geometry import Offset
from textual.selection import Selection
from textual.strip import Strip

from tui.core.dataclass import dataclass
from tui.ui.widgets.markdown.text import Line

_SHIFT = 20
_WORD = re.compile(r"""[^\s()\[\]{}<>"'`,;│]+""")
"""A word as terminals select it, with what paths and addresses are made of."""


def key(index: int, row: int) -> int:
    """Return one number for a row of an item, in reading order; it is stable while heights
    change."""
    return index << _SHIFT | row


def place(key: int) -> tuple[int, int]:
    """Return (item, row in it) of a `key`."""
    return key >> _SHIFT, key & LAST_ROW


LAST_ROW = (1 << _SHIFT) - 1


@dataclass(frozen=True, slots=True)
class StripFrame:
    """The space around a line on the screen, and the filters over it, on the view's background."""

    left: int
    right: int
    base: Style
    filters: tuple[LineFilter, ...] = ()
    background: Color = TRANSPARENT

    def around(self, strip: Strip) -> Strip:
        if self.left or self.right:
            before, after = (Strip.blank(n, self.base) for n in (self.left, self.right))
            strip = Strip.join([before, strip, after])
        for line_filter in self.filters:
            strip = strip.apply_filter(line_filter, self.background)
        return strip


def paint(segments: list[Segment], start: int, end: int, style: Style) -> list[Segment]:
    """Return `segments` with `style` laid over the characters from `start` to `end`."""
    painted: list[Segment] = []
    at = 0
    for text, own, control in segments:
        low, high = max(start - at, 0), min(end - at, len(text))
        if low >= high:
            painted.append(Segment(text, own, control))
        else:
            marked = own + style if own is not None else style
            parts = ((text[:low], own), (text[low:high], marked), (text[high:], own))
            painted += [Segment(part, look) for part, look in parts if part]
        at += len(text)
    return painted


def extent(row: Line) -> tuple[int, int]:
    """Return the range of characters of a line that can be selected."""
    return row.start, len(row.text) if row.end is None else row.end


def word_at(row: Line, at: int) -> tuple[int, int]:
    """Return the range of a line's word at a character: a path, a name or an address is one. An
    empty range for a blank."""
    start, end = extent(row)
    for word in _WORD.finditer(row.text, start, end):
        if word.start() <= at < word.end():
            stop = len(word[0].rstrip(".:!?"))
            return word.start(), word.end() if at >= word.start() + stop else word.start() + stop
    return at, at


def make(row: Line, width: int, base: Style) -> Strip:
    """Return a line as a strip that fills `width`."""
    space = width - row.cells
    if space <= 0:
        return Strip(row.segments, row.cells).crop(0, width)
    return Strip([*row.segments, Segment(" " * space, row.fill or base)], width)


def marked(row: Line, spots: Iterable[tuple[int, int]], style: Style) -> Line:
    """Return a line with the characters from start to end of every spot in `style`."""
    segments = row.segments
    for start, end in spots:
        segments = paint(segments, start, end, style)
    return row if segments is row.segments else row._replace(segments=segments)


def selected(row: Line, span: tuple[int, int], style: Style) -> Line:
    """Return a line with the characters of `span` selected (end -1: all)."""
    start, end = extent(row)
    stop = end if span[1] < 0 else min(end, span[1])
    return row._replace(segments=paint(row.segments, max(start, span[0]), stop, style))


def with_cursor(row: Line, style: Style) -> Line:
    """Return a line with the cursor before it."""
    if not row.segments:
        return row
    first, *rest = paint(row.segments, 0, 1, style)
    return row._replace(segments=[Segment("▎", first.style), *rest])


def numbered(row: Line, width: int, style: Style) -> Line:
    """Return the first line of a code block with its number at the end, if there is room."""
    number = f"{row.block} "
    space = width - row.cells - len(number)
    if space < 1:
        return row
    end = len(row.text) if row.end is None else row.end
    look = Style(color=style.color) if row.fill is None else row.fill + Style(color=style.color)
    added = [Segment(" " * space, row.fill), Segment(number, look)]
    return row._replace(segments=[*row.segments, *added], cells=width, end=end)


def with_pill(strip: Strip, text: str, width: int, styles: Mapping[str, Style]) -> Strip:
    """Return a strip with `text` on its right end, a cell of space on both sides."""
    room = max(0, width - cell_len(text) - 2)
    space = Segment(" ", styles["text"])
    pill = Strip([space, Segment(text, styles["c-pill"]), space])
    return Strip.join([strip.crop(0, room), pill]).crop(0, width)


def copied(lines: Sequence[Line], first: tuple[int, int], last: tuple[int, int]) -> str:
    """Return the source of the lines from (row, character) `first` to `last`."""
    out: list[str] = []
    for index in range(first[0], min(last[0], len(lines) - 1) + 1):
        row = lines[index]
        text = row.text
        start, end = extent(row)
        low = max(start, first[1]) if index == first[0] else start
        high = min(end, last[1]) if index == last[0] else end
        whole = low == start and high == end
        if whole and row.source is not None:
            piece = row.source
        elif whole and row.join is None:
            piece = row.lead + text[low:high]
        else:
            piece = text[low:high]
        if row.join is None:
            out.append(piece)
        elif out:
            out[-1] += row.join + piece
        elif piece:
            out.append(piece)
    return "\n".join(out)


@dataclass(slots=True)
class Caret:
    """The moving end of a selection. `goal` is the column that it keeps across short rows."""

    at: Offset | None = None
    goal: int = 0

    def begin(self, selection: Selection | None) -> Offset | None:
        """Take over the current selection and return its other end, None if there is none."""
        if selection is None or selection.start is None or selection.end is None:
            return None
        if self.at not in selection:
            self.at, self.goal = selection.end, selection.end.x
        return selection.start if self.at == selection.end else selection.end

    def across(self, rows: Sequence[tuple[Offset, Line]], at: int, columns: int) -> None:
        """Move some characters sideways from row `at`; beyond its end comes the next row."""
        assert self.at is not None
        start, end = extent(rows[at][1])
        x = self.at.x + columns
        if x < start and at:
            at -= 1
            x = extent(rows[at][1])[1]
        elif x > end and at + 1 < len(rows):
            at += 1
            x = extent(rows[at][1])[0]
        else:
            x = max(start, min(x, end))
        self.at, self.goal = Offset(x, rows[at][0].y), x

    def along(self, rows: Sequence[tuple[Offset, Line]], at: int) -> None:
        """Move to a row; before the first is its start, after the last its end."""
        origin, line = rows[max(0, min(at, len(rows) - 1))]
        start, end = extent(line)
        x = max(start, min(self.goal, end))
        if not 0 <= at < len(rows):
            x = self.goal = start if at < 0 else end
        self.at = Offset(x, origin.y)


def nearest_row(seen: Sequence[tuple[Offset, Line]], at: Offset) -> int:
    """Return the index of a position among the visible rows, or of the nearer end."""
    return next((n for n, (origin, _) in enumerate(seen) if origin.y >= at.y), len(seen) - 1)
