"""Draws tables: boxed, fitted to the width, cells wrapped; if too narrow for columns, one field per
line."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from rich.cells import cell_len

from tui.core.dataclass import dataclass, field
from tui.ui.widgets.markdown.text import BLANK, Line, Span, decoration, line, prefixed, wrap

if TYPE_CHECKING:
    from tui.ui.widgets.markdown.text import Styles

Align: TypeAlias = Literal["left", "center", "right"]
_LEAST, _WORD = 6, 14
"""Cells that a column keeps before the table becomes a list of fields: the first, or as many as its
longest word has, up to the second; never more than it needs."""


@dataclass(slots=True)
class Table:
    """Rows of cells, the first is the head; a cell is its spans."""

    aligns: list[Align] = field(default_factory=list[Align])
    rows: list[list[list[Span]]] = field(default_factory=list[list[list[Span]]])


def _text(cell: Sequence[Span]) -> str:
    return "".join(part for part, _ in cell)


def fit(natural: Sequence[int], words: Sequence[int], room: int) -> list[int] | None:
    """Return column widths that need at most `room` cells together; the widest shrink first.

    `words` are the longest words of the columns. None if a column would become too narrow to read.
    """
    if sum(natural) <= room:
        return list(natural)
    least = [
        min(width, max(_LEAST, min(word, _WORD)))
        for width, word in zip(natural, words, strict=True)
    ]
    if sum(least) > room:
        return None

    def widths_of(most: int) -> list[int]:
        return [max(bound, min(width, most)) for width, bound in zip(natural, least, strict=True)]

    sizes = range(1, max(natural) + 1)
    widths = widths_of(bisect_right(sizes, room, key=lambda most: sum(widths_of(most))))
    spare = room - sum(widths)
    # Distribute what rounding left over.
    for index, width in enumerate(natural):
        if spare and widths[index] < width:
            widths[index] += 1
            spare -= 1
    return widths


def _source(row: Sequence[Sequence[Span]]) -> str:
    return "| " + " | ".join(_text(cell).replace("|", "\\|") for cell in row) + " |"


def _padded(row: Line | None, width: int, align: Align, styles: Styles) -> list[Span]:
    spans: list[Span] = []
    if row is not None:
        spans = [(segment.text, segment.style or styles["text"]) for segment in row.segments]
    space = max(0, width - (row.cells if row is not None else 0))
    left = {"left": 0, "right": space, "center": space // 2}[align]
    plain = styles["text"]
    return [(" " * (left + 1), plain), *spans, (" " * (space - left + 1), plain)]


def _boxed(table: Table, widths: list[int], styles: Styles) -> list[Line]:
    border = styles["border"]

    def rule(left: str, middle: str, right: str, source: str) -> Line:
        text = left + middle.join("─" * (width + 2) for width in widths) + right
        return decoration([(text, border)], source=source)

    dashes = {"left": "---", "center": ":-:", "right": "--:"}
    drawn = [rule("┌", "┬", "┐", "")]
    cells = [
        [wrap(cell, width) for cell, width in zip(row, widths, strict=True)] for row in table.rows
    ]
    # Rules between rows help only if a row has several lines.
    ruled = any(len(cell) > 1 for row in cells[1:] for cell in row)
    for index, row in enumerate(cells):
        for step in range(max(len(cell) for cell in row)):
            spans: list[Span] = [("│", border)]
            for cell, width, align in zip(row, widths, table.aligns, strict=True):
                part = cell[step] if step < len(cell) else None
                spans += [*_padded(part, width, align, styles), ("│", border)]
            source = "" if step else _source(table.rows[index])
            row_line = line(spans, source=source, join="" if step else None)
            drawn.append(row_line._replace(start=2, end=len(row_line.text) - 2))
        if index == 0:
            between = "| " + " | ".join(dashes[align] for align in table.aligns) + " |"
            drawn.append(rule("├", "┼", "┤", between))
        elif ruled and index < len(cells) - 1:
            drawn.append(rule("├", "┼", "┤", ""))
    drawn.append(rule("└", "┴", "┘", ""))
    return drawn


def _listed(table: Table, width: int, styles: Styles) -> list[Line]:
    drawn: list[Line] = []
    head = [_text(cell).replace("\n", " ") for cell in table.rows[0]]
    for row in table.rows[1:] or table.rows[:1]:
        if drawn:
            drawn.append(BLANK)
        for name, cell in zip(head, row, strict=True):
            label: list[Span] = [(f"{name}: ", styles["head"])] if name else []
            for index, part in enumerate(wrap([*label, *cell], max(2, width - 2))):
                drawn.append(prefixed(part, [("  " if index else "· ", styles["bullet"])]))
    return drawn


def draw(table: Table, width: int, styles: Styles) -> list[Line]:
    """Return the lines of a table in `width` cells."""
    columns = ["\n".join(map(_text, column)) for column in zip(*table.rows, strict=True)]
    natural = [max(1, *map(cell_len, text.split("\n"))) for text in columns]
    words = [max(map(len, filter(str.isascii, text.split())), default=0) for text in columns]
    widths = fit(natural, words, width - 3 * len(columns) - 1)
    if widths is None:
        return _listed(table, width, styles)
    return _boxed(table, widths, styles)
