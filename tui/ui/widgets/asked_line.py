"""The question where a line comes from, as every view of diffs and files asks it (`B`)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from textual.message import Message

from tui.app.dialog_data import ShownLine

_NUMBERED = re.compile(r"\s*(\d{1,9})\t(.*)", re.DOTALL)


class LineAsked(Message):
    """Posted for the line under the cursor, or at the top of what is in sight; None where no line
    of a file is there."""

    def __init__(self, line: ShownLine | None) -> None:
        super().__init__()
        self.line = line


def numbered_line(rows: Iterable[str]) -> ShownLine | None:
    """Return the first of the rows that is a line with its number, as files are read, and has a
    word in it; else the first with a number."""
    matches = [match for row in rows if (match := _NUMBERED.match(row))]
    chosen = next((one for one in matches if one[2].strip()), *matches[:1] or [None])
    return ShownLine("", int(chosen[1]), chosen[2].rstrip("\r\n")) if chosen else None
