"""The source text that a selection stands for.

A position is (characters into the drawn line, `line_view.key` of the row).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.selection import Selection

from tui.ui.widgets.conversation.item_renderer import gap, source
from tui.ui.widgets.conversation.items import Item
from tui.ui.widgets.line_view import LAST_ROW, place
from tui.ui.widgets.line_view.strips import extent
from tui.ui.widgets.markdown.text import Line


def copied(lines: Sequence[Line], first: tuple[int, int], last: tuple[int, int]) -> str:
    """The source of the lines from (row, character) `first` to `last`."""
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


def selected(
    items: Sequence[Item], lines: Callable[[int], Sequence[Line]], selection: Selection
) -> str:
    """The source of a selection: of whole items their own text, of the rest what is drawn."""
    if not items:
        return ""
    start, end = selection
    first = (*place(start.y), start.x) if start else (0, 0, 0)
    last = (*place(end.y), end.x) if end else (len(items) - 1, LAST_ROW, 1 << 30)
    parts: list[str] = []
    for index in range(max(0, first[0]), min(last[0], len(items) - 1) + 1):
        begins = (first[1], first[2]) if index == first[0] else (0, 0)
        stops = (last[1], last[2]) if index == last[0] else (LAST_ROW, 1 << 30)
        if begins == (0, 0) and stops[0] == LAST_ROW:
            text = source(items[index])
        else:
            rows = lines(index)
            begins = max(begins, (int(gap(items[index - 1] if index else None, items[index])), 0))
            text = copied(rows, begins, stops)
            bounds = [step for step, row in enumerate(rows) if extent(row)[0] < extent(row)[1]]
            if bounds and begins <= (bounds[0], extent(rows[bounds[0]])[0]):
                tail = (bounds[-1], extent(rows[bounds[-1]])[1])
                text = source(items[index]) if stops >= tail else text
        before = items[index - 1] if parts else None
        parts.append(("\n" if gap(before, items[index]) else "") + text)
    return "\n".join(parts)
