"""A unified diff → lines: numbers, + and −, hunk headers as quiet rules."""

from __future__ import annotations

import re

from tui.widgets.markdown.styles import Styles
from tui.widgets.markdown.text import Line, Span, chop, clean, decoration, prefixed

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)")
LINES_MAX = 1_000


def draw_diff(diff: str, width: int, styles: Styles) -> list[Line]:
    """The lines of a unified diff. Files are headed only where there are several."""
    rows = diff.split("\n", LINES_MAX + 1)
    more = diff.count("\n") - LINES_MAX
    rows = [clean(row).replace("\n", "").expandtabs(4) for row in rows[:LINES_MAX]]
    if rows and not rows[-1]:
        rows.pop()
    several = sum(row.startswith("+++ ") for row in rows) > 1
    numbers = [int(n) for row in rows if (m := _HUNK.match(row)) for n in m.group(1, 2)]
    digits = len(str(max(numbers, default=0) + len(rows)))
    drawn: list[Line] = []
    old = new = 0
    inside = False
    for row in rows:
        hunk = _HUNK.match(row)
        if hunk:
            old, new, inside = int(hunk[1]), int(hunk[2]), True
            if drawn:
                text = f"{'⋯':>{digits}} {hunk[3]}".rstrip()
                drawn.append(decoration([(text, styles["c-hunk"])], lead=row))
        elif row.startswith(("--- ", "diff ", "index ")) and not (inside and row.startswith("--- -")):
            inside = False
        elif row.startswith("+++ ") and not inside:
            if several:
                name = row[4:].removeprefix("b/")
                drawn.append(decoration([(name, styles["c-tool"])], lead=row))
        elif row.startswith("\\"):
            continue
        else:
            sign, text = row[:1] or " ", row[1:]
            look = styles[{"+": "c-added", "-": "c-removed"}.get(sign, "c-detail")]
            number = old if sign == "-" else new
            drawn += _row(f"{number:>{digits}} ", sign, text, look, width, styles)
            old += sign != "+"
            new += sign != "-"
    if more > 0:
        drawn.append(decoration([(f"… +{more:,} lines", styles["c-fold"])]))
    return drawn


def _row(number: str, sign: str, text: str, look: object, width: int, styles: Styles) -> list[Line]:
    style = look if look is not None else styles["text"]
    assert not isinstance(style, str)
    glyph = {"-": "−"}.get(sign, sign)
    rows: list[Line] = []
    for index, part in enumerate(chop([(text, style)], width - len(number) - 2)):  # pyright: ignore
        head: list[Span] = [(number if not index else " " * len(number), styles["c-rail"])]
        row = prefixed(part, [(f"{glyph} " if not index else "  ", style)])  # pyright: ignore
        row = prefixed(row._replace(fill=style if sign in "+-" else None), head)  # pyright: ignore
        rows.append(row)
    return rows
