"""The lines of a tool's output, bounded: the head and the tail are kept, the middle is counted."""

from __future__ import annotations

LINE_MAX = 16_384
"""Characters that are kept of one line."""
CHARS_MAX = 48_000_000
"""Characters that are kept of all; over it, the oldest quarter behind the head goes."""
HEAD_LINES = 2_000


class OutputLines:
    """Lines that grow at the end. `over(i)` is how much line i is longer than what is kept of it.

    A carriage return starts its line again, as on a terminal.
    """

    def __init__(self, *, chars_max: int = CHARS_MAX, head_lines: int = HEAD_LINES) -> None:
        self.lines: list[str] = []
        self.dropped_lines = 0
        self.dropped_chars = 0
        self._chars_max = chars_max
        self._head = head_lines
        self._chars = 0
        self._over: dict[int, int] = {}
        self._open = False  # the last line has no end yet
        self._restart = False  # a carriage return came last

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def gap(self) -> int | None:
        """The index of the line that stands for those that were dropped."""
        return self._head if self.dropped_lines else None

    def over(self, index: int) -> int:
        """Characters of a line that are not kept."""
        return self._over.get(index, 0)

    def write(self, text: str) -> int:
        """Add text; returns the index of the first line that is different now."""
        if not text:
            return len(self.lines)
        first = len(self.lines)
        rows = text.split("\n")
        if self._open or self._restart:
            first -= 1
            rows[0] = self._resume(rows[0], alone=len(rows) == 1)
        opened = bool(rows[-1])
        if not opened:
            rows.pop()
        if "\r" in text or max(map(len, rows), default=0) > LINE_MAX:
            base = len(self.lines)
            for index, row in enumerate(rows):
                last = opened and index == len(rows) - 1
                rows[index] = self._short(self._settled(row, last=last), base + index)
        self.lines += rows
        self._chars += sum(map(len, rows))
        self._open = opened
        if self._chars > self._chars_max:
            self._drop()
            return 0
        return first

    def _resume(self, row: str, *, alone: bool) -> str:
        """The last line and what is added to it; takes that line off."""
        before = self.lines.pop()
        index = len(self.lines)
        self._chars -= len(before)
        over = self._over.pop(index, 0)
        if self._restart and row and not row.startswith("\r"):
            before, over = "", 0
        elif self._restart and not row and alone:
            return before
        self._restart = False
        if over and "\r" not in row:
            self._over[index] = over + len(row)
            return before
        return before + row

    def _settled(self, row: str, *, last: bool) -> str:
        """What is to be seen of a row with carriage returns."""
        bare = row.rstrip("\r")
        if last and len(bare) < len(row):
            self._restart = True
        return bare.rpartition("\r")[2]

    def _short(self, row: str, index: int) -> str:
        if len(row) <= LINE_MAX:
            return row
        self._over[index] = self._over.get(index, 0) + len(row) - LINE_MAX
        return row[:LINE_MAX]

    def _drop(self) -> None:
        """Take the oldest lines behind the head out, a quarter of all at a time."""
        start = self._head + bool(self.dropped_lines)
        stop, freed = start, 0
        while stop < len(self.lines) - 1 and freed < self._chars_max // 4:
            freed += len(self.lines[stop])
            stop += 1
        if stop == start:
            return
        self.dropped_lines += stop - start
        self.dropped_chars += freed
        self._chars -= freed
        self.lines[self._head : stop] = [""]  # the line that says so
        shift = stop - self._head - 1
        self._over = {
            index if index < self._head else index - shift: count
            for index, count in self._over.items()
            if index < self._head or index >= stop
        }
