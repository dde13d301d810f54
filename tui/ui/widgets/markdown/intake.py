"""Text in any pieces → complete clean rows, and the row that is still being written."""

from __future__ import annotations

import re

from tui.core.text_cleaning import clean

ROW_MAX = 4_000
"""A longer row is broken at a space."""

_UNDECIDED = re.compile(
    r" {0,3}(?:[-=+*_#>~`|:][-=+*_#>~`|: ]*|\d{1,9}[.)]?|<!?[a-zA-Z/!-]*|(?:```|~~~).*)[ \t]*$"
)
_OPEN_LINK = re.compile(r"\[([^\]\n]*)\](?:\([^)\n]*)?$")


class Intake:
    """What rows come out depends on the text alone, never on the pieces in which it is fed."""

    def __init__(self) -> None:
        self._pending: list[str] = []
        self._partial = ""

    @property
    def partial(self) -> str:
        """The row that has no end yet, cleaned."""
        return clean(self._partial.removesuffix("\r")).replace("\n", " ")

    def feed(self, text: str) -> None:
        """Add text."""
        self._pending.append(text)

    def take(self, *, final: bool) -> list[str]:
        """The rows that were completed since; with `final`, the last one too."""
        if not self._pending and not (final and self._partial):
            return []
        raw = (self._partial + "".join(self._pending)).split("\n")
        self._pending.clear()
        self._partial = raw.pop()
        rows: list[str] = []
        for row in raw:
            rows += _rows(row)
        while len(self._partial) > ROW_MAX:
            end = _break(self._partial)
            rows += clean(self._partial[:end]).split("\n")
            self._partial = self._partial[end:]
        if final and self._partial:
            rows += _rows(self._partial)
            self._partial = ""
        return rows


def _break(row: str) -> int:
    """Where a row that is too long is broken."""
    return row.rfind(" ", 1, ROW_MAX) + 1 or ROW_MAX


def _rows(row: str) -> list[str]:
    rows: list[str] = []
    while len(row) > ROW_MAX:
        end = _break(row)
        rows += clean(row[:end]).split("\n")
        row = row[end:]
    return rows + clean(row.removesuffix("\r")).split("\n")


def as_if_ended(rows: list[str], partial: str) -> list[str]:
    """`rows` and the row being written as they are to be shown if nothing more came.

    What a few characters more could turn into something quite different is held back, and open
    emphasis, code and links are closed instead of being shown as characters.
    """
    if partial and not _UNDECIDED.match(partial):
        rows.append(partial)
    if not rows:
        return rows
    last, text = rows[-1], "\n".join(rows)
    if text.count("`") % 2:
        last = last.removesuffix("`") if last.endswith("`") else last + "`"
    else:
        last = _OPEN_LINK.sub(r"\1", last)
        open_strong = text.count("**") % 2 == 1
        if open_strong and last.endswith("**"):
            last = last[:-2]
        elif open_strong:
            last = last.rstrip(" *") + "**"
        elif last.endswith("*") and not last.endswith("**"):
            last = last[:-1]
    return [*rows[:-1], last]
