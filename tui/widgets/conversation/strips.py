"""Lines → strips of a given width, with what lies over them: selection, cursor, pill."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui.widgets.markdown.text import Line


def paint(segments: list[Segment], start: int, end: int, style: Style) -> list[Segment]:
    """`segments` with `style` laid over the characters from `start` to `end`."""
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
    """The characters of a line that can be selected."""
    return row.start, len(row.text) if row.end is None else row.end


def make(row: Line, width: int, base: Style) -> Strip:
    """A line as a strip that fills `width`."""
    space = width - row.cells
    if space <= 0:
        return Strip(row.segments, row.cells).crop(0, width)
    return Strip([*row.segments, Segment(" " * space, row.fill or base)], width)


def holds(row: Line, pattern: re.Pattern[str]) -> bool:
    """Whether something matches in what can be selected of a line."""
    return pattern.search(row.text, *extent(row)) is not None


def marked(row: Line, pattern: re.Pattern[str], style: Style) -> Line:
    """A line with what matches in it laid out in `style`; the line itself when nothing does."""
    segments = row.segments
    start, end = extent(row)
    for found in pattern.finditer(row.text, start, end):
        segments = paint(segments, *found.span(), style)
    return row if segments is row.segments else row._replace(segments=segments)


def overlaid(
    row: Line, span: tuple[int, int] | None, selected: Style, cursor: Style | None
) -> Line:
    """A line with the characters of `span` selected (end -1: all) and the cursor before it."""
    segments = row.segments
    if span is not None:
        start, end = extent(row)
        stop = end if span[1] < 0 else min(end, span[1])
        segments = paint(segments, max(start, span[0]), stop, selected)
    if cursor is not None and segments:
        first, *rest = paint(segments, 0, 1, cursor)
        segments = [Segment("▎", first.style), *rest]
    return row._replace(segments=segments)


def with_pill(strip: Strip, text: str, width: int, styles: Mapping[str, Style]) -> Strip:
    """A strip with `text` on its right end, a cell of space on both sides."""
    room = max(0, width - cell_len(text) - 2)
    space = Segment(" ", styles["text"])
    pill = Strip([space, Segment(text, styles["c-pill"]), space])
    return Strip.join([strip.crop(0, room), pill]).crop(0, width)
