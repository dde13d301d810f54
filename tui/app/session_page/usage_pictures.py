"""Tokens and money by what they were spent on, as bars in SVG with their tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from tui.app.reports.usage_table import (
    IN_ORDER,
    NAMES,
    UNKNOWN,
    UsageRow,
    UsageTable,
    cost,
    share,
    sizes,
    summed,
    table_of,
)
from tui.app.session_page.markup import PageText, Picture, figure, link, table
from tui.context.usage import Amount
from tui.context.usage.attribution import Attribution, Grouping
from tui.core.formatting import plural, tokens

RowAnchor = Callable[[str, str], str]
"""The anchor of a row, by its grouping and its key; "" for none."""

SHOWN: Final[tuple[Grouping, ...]] = (
    "prompt", "kind", "tool", "file", "break", "model", "agent", "server", "skill",
)  # fmt: skip
_MOST: Final = 10
_IN_TABLE: Final = 60
_WIDTH: Final = 400
_ROW: Final = 34
_BAR: Final = 8


def usage_figures(found: Attribution, text: PageText, anchor: RowAnchor) -> Iterator[str]:
    """Yield a figure for each grouping that tells something apart."""
    for by in SHOWN:
        names = {key: f"{key}. {title}" for key, title in found.titles.items()}
        rows = table_of(by, found.rows(by), names if by in IN_ORDER else {})
        if any(row.key for row in rows.rows):
            yield usage_figure(rows, text, anchor)


def usage_figure(rows: UsageTable, text: PageText, anchor: RowAnchor) -> str:
    """The rows of a grouping as bars."""
    shown = dearest(rows, _MOST)
    total = rows.total
    title = f"By {NAMES[rows.by]}"
    most = max((_length(row.amount, total) for row in shown.rows), default=0.0)
    drawn: list[str] = []
    for number, row in enumerate(shown.rows):
        drawn += _bar(row, number * _ROW, most, total, text)
    first = max(shown.rows, key=lambda row: _length(row.amount, total), default=None)
    told = f"{plural(len(rows.rows), 'row')}, {cost(total)} in all."
    if first is not None:
        name = text.label(first.name, 60)
        told += f" The longest bar: {name}, {cost(first.amount)}."
    height = len(shown.rows) * _ROW
    picture = Picture(f"by-{rows.by}", _WIDTH, height, title, told, "".join(drawn))
    behind = dearest(rows, _IN_TABLE)
    cells = [_cells(row, total, text, anchor(rows.by, row.key)) for row in behind.rows]
    cells.append(_cells(UsageRow("", "total", total), total, text, ""))
    head = (NAMES[rows.by], "cost", "share", "from the cache", "new", "output")
    return figure(picture, table(title, head, cells))


def dearest(rows: UsageTable, most: int) -> UsageTable:
    """The dearest rows only, in their order; one row stands for the others."""
    if rows.by not in IN_ORDER or len(rows.rows) <= most:
        return summed(rows, most)
    by_cost = sorted(rows.rows, key=lambda row: (-row.amount.usd, -row.amount.tokens))
    kept = {row.key for row in by_cost[: most - 1]}
    ordered = [row for row in rows.rows if row.key in kept]
    others = [row for row in rows.rows if row.key not in kept]
    return summed(UsageTable(rows.by, (*ordered, *others)), most)


def _length(amount: Amount, total: Amount) -> float:
    return sum(size for _, size in sizes(amount, total))


def _bar(row: UsageRow, y: int, most: float, total: Amount, text: PageText) -> Iterator[str]:
    words = cost(row.amount)
    if words == UNKNOWN:
        words = f"{UNKNOWN}, {tokens(round(row.amount.tokens))} tokens"
    percent = share(row.amount, total)
    price = f"{words} · {text(percent)}" if percent not in {"", "?"} else words
    name = text.drawn(row.name, max(12, 54 - len(price)))
    quiet = "" if row.key else ' class="quiet"'
    yield f'<text{quiet} x="0" y="{y + 13}">{name}</text>'
    yield f'<text class="amount" x="{_WIDTH}" y="{y + 13}" text-anchor="end">{price}</text>'
    yield f'<rect class="track" x="0" y="{y + 18}" width="{_WIDTH}" height="{_BAR}" rx="2"/>'
    x = 0.0
    for kind, size in sizes(row.amount, total):
        if (width := max(0.0, size) / most * _WIDTH if most else 0.0) > 0:
            wide = max(0.5, width)
            yield (
                f'<rect class="{kind}" x="{x:.1f}" y="{y + 18}" width="{wide:.1f}"'
                f' height="{_BAR}"/>'
            )
            x += width


def _cells(row: UsageRow, total: Amount, text: PageText, anchor: str) -> list[str]:
    amount = row.amount
    counts = [tokens(round(one)) for one in (amount.read, amount.new, amount.output)]
    return [link(anchor, text.label(row.name)), cost(amount), text(share(amount, total)), *counts]
