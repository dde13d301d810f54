"""A unified diff → lines: line numbers, + and −, what is between hunks as a quiet mark."""

from __future__ import annotations

import re

from tui.widgets.markdown.styles import Styles
from tui.widgets.markdown.text import Line, chop, decoration, prefixed
from tui.widgets.plain import clean

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
ROWS_MAX = 1_000
"""Rows of a diff that are drawn; the rest is counted."""


def draw_diff(diff: str, width: int, styles: Styles) -> list[Line]:
    """The lines of a unified diff. Files are named where there are several."""
    rows = clean(diff).rstrip("\n").split("\n")
    more = len(rows) - ROWS_MAX
    hunks = [match for row in rows if (match := _HUNK.match(row))]
    digits = max((len(str(int(hunk[3]) + int(hunk[4] or 1))) for hunk in hunks), default=1)
    several = sum(row.startswith("+++ ") for row in rows) > 1
    drawn: list[Line] = []
    old = new = old_left = new_left = 0
    for row in rows[:ROWS_MAX]:
        hunk = _HUNK.match(row)
        if hunk is None and (old_left > 0 or new_left > 0):
            sign = row[:1] if row[:1] in {"+", "-", "\\"} else " "
            if sign == "\\":  # "no newline at the end of the file"
                continue
            number = f"{old if sign == '-' else new:>{digits}} "
            drawn += _row(number, sign, row[1:], width, styles)
            old, old_left = old + (sign != "+"), old_left - (sign != "+")
            new, new_left = new + (sign != "-"), new_left - (sign != "-")
        elif hunk is not None:
            old, new = int(hunk[1]), int(hunk[3])
            old_left, new_left = int(hunk[2] or 1), int(hunk[4] or 1)
            if drawn:
                mark = f"{'⋯':>{digits}} {hunk[5]}".rstrip()
                drawn.append(decoration([(mark, styles["c-hunk"])], source=row))
        elif several and row.startswith("+++ "):
            name = row[4:].removeprefix("b/")
            drawn.append(decoration([(name, styles["c-tool"])], source=row))
    if more > 0:
        drawn.append(decoration([(f"… +{more:,} lines", styles["c-fold"])]))
    return drawn


def _row(number: str, sign: str, text: str, width: int, styles: Styles) -> list[Line]:
    look = styles[{"+": "c-added", "-": "c-removed"}.get(sign, "c-detail")]
    fill = None if sign == " " else look
    rows: list[Line] = []
    for index, part in enumerate(chop([(text.expandtabs(4), look)], width - len(number) - 2)):
        mark = (sign if sign != "-" else "−") if not index else " "
        head = number if not index else " " * len(number)
        row = prefixed(part, [(head, styles["c-rail"]), (f"{mark} ", look)], sign)
        rows.append(row._replace(fill=fill))
    return rows
