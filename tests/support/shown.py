"""What a terminal shows of the bytes that a program writes: enough of one to read our screens."""

from __future__ import annotations

import codecs
import re
from typing import TypeAlias

from rich.cells import get_character_cell_size

_TOKENS = re.compile(
    r"\x1b\[(?P<args>[0-9;?<>=!]*)[ -/]*(?P<final>[@-~])"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1bP.*?\x1b\\|\x1b[^\[\]P]"
    r"|(?P<text>[^\x00-\x1f\x7f]+)|[\x00-\x1a\x1c-\x1f\x7f]",
    re.DOTALL,
)
_ALT = "?1049"


Cell: TypeAlias = tuple[str, str]
"""A character, "" for the second half of a wide one, and the codes of its style."""


class Shown:
    """Feeds on bytes. On the alternate screen it knows what stands in each row, and gives the rows
    that changed; of what is printed elsewhere it gives the text."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rest = ""
        self._rows: dict[int, list[Cell]] = {}
        self._x = self._y = 0
        self._style = ""
        self._region = (0, 0)
        self.covers = False
        """Whether the alternate screen is shown."""

    @property
    def by_row(self) -> dict[int, list[Cell]]:
        """What stands in each row, counted from the top."""
        return {y: list(row) for y, row in self._rows.items()}

    def feed(self, data: bytes) -> str:
        """The text of what these bytes print, or of the rows that they change, one a line."""
        text, at = self._rest + self._decode(data), 0
        printed: list[str] = []
        changed: set[int] = set()
        while match := _TOKENS.match(text, at):
            at = match.end()
            self._take(match, printed, changed)
        self._rest = text[at:]
        return "".join(printed) + self._lines(changed)

    def _lines(self, changed: set[int]) -> str:
        rows = ("".join(char for char, _ in self._rows.get(y, ())) for y in sorted(changed))
        return "".join(f"{row}\n" for row in rows)

    def _take(self, match: re.Match[str], printed: list[str], changed: set[int]) -> None:
        final, args = match["final"], match["args"] or ""
        if final in {"h", "l"} and _ALT in args:
            self.covers = final == "h"
            printed.append(f" {self._lines(changed)}")
            self._rows.clear()
            changed.clear()
        elif not self.covers:
            printed.append(match["text"] or (" " if match[0][0] == "\x1b" else match[0]))
        elif text := match["text"]:
            self._put(text)
            changed.add(self._y)
        elif final == "m":
            self._style = args
        elif final in {"H", "f"}:
            row, _, column = args.partition(";")
            self._y, self._x = int(row or 1) - 1, int(column or 1) - 1
        elif final == "K":
            row = self._rows.setdefault(self._y, [])
            del row[self._x :]
            changed.add(self._y)
        elif final == "J":
            self._rows.clear()
        elif final == "r" and "?" not in args:
            top, _, bottom = args.partition(";")
            self._region = (int(top or 1) - 1, int(bottom or 1) - 1)
        elif final in {"S", "T"}:
            changed.update(self._scroll(int(args or 1) * (1 if final == "S" else -1)))
        elif match[0] == "\r":
            self._x = 0
        elif match[0] == "\n":
            self._y += 1

    def _scroll(self, by: int) -> range:
        """Move the rows of the region up, or down where `by` is negative; what comes in is
        blank."""
        top, bottom = self._region
        moved = range(top, bottom + 1)
        before = {y: self._rows.pop(y, []) for y in moved}
        self._rows |= {y: before.get(y + by, []) for y in moved}
        return moved

    def _put(self, text: str) -> None:
        style = self._style
        cells: list[Cell] = []
        for char in text:
            cells += [(char, style), *[("", style)] * (get_character_cell_size(char) - 1)]
        row = self._rows.setdefault(self._y, [])
        row += [(" ", "")] * (self._x - len(row))
        row[self._x : self._x + len(cells)] = cells
        self._x += len(cells)
