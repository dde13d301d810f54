"""Lines → strips of a given width, with what lies over them: selection, cursor, pill."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui.ui.widgets.markdown.text import Line


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


def marked(row: Line, spots: Iterable[tuple[int, int]], style: Style) -> Line:
    """A line with the characters from start to end of every spot in `style`."""
    segments = row.segments
    for start, end in spots:
        segments = paint(segments, start, end, style)
    return row if segments is row.segments else row._replace(segments=segments)


def selected(row: Line, span: tuple[int, int], style: Style) -> Line:
    """A line with the characters of `span` selected (end -1: all)."""
    start, end = extent(row)
    stop = end if span[1] < 0 else min(end, span[1])
    return row._replace(segments=paint(row.segments, max(start, span[0]), stop, style))


def with_cursor(row: Line, style: Style) -> Line:
    """A line with the cursor before it."""
    if not row.segments:
        return row
    first, *rest = paint(row.segments, 0, 1, style)
    return row._replace(segments=[Segment("▎", first.style), *rest])


def with_pill(strip: Strip, text: str, width: int, styles: Mapping[str, Style]) -> Strip:
    """A strip with `text` on its right end, a cell of space on both sides."""
    room = max(0, width - cell_len(text) - 2)
    space = Segment(" ", styles["text"])
    pill = Strip([space, Segment(text, styles["c-pill"]), space])
    return Strip.join([strip.crop(0, room), pill]).crop(0, width)
