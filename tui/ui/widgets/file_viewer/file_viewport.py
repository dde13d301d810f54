"""The visible rows of a file's lines. A line is identified by the byte it begins with."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice

from tui.ui.widgets.file_viewer.line_file import LineFile
from tui.ui.widgets.line_view.viewport import Viewport


class FileViewport(Viewport):
    """Like `Viewport`, for an unknown number of lines.

    `y` and `total` are line counts, for the scroll bar: estimates until all lines are counted. The
    visible rows are found from their first line on, whatever comes before it.
    """

    def __init__(self, measure: Callable[[int], int]) -> None:
        super().__init__(measure)
        self.file = LineFile(b"")
        self.following = False
        self.at_end = True
        """True if the end is visible."""
        self._more = False  # some rows are not visible

    @property
    def total(self) -> int:
        # A few wrapped lines may fill many screens, so there is always room to scroll.
        return max(self.file.count, self.height + 2 if self._more else 0)

    @property
    def end(self) -> int:
        return max(0, self.total - self.height)

    @property
    def top(self) -> tuple[int, int]:
        """The first visible line, and its first visible row."""
        return self._top

    def forget(self, index: int | None = None) -> None:
        """Do nothing: heights are measured each time."""

    def use(self, file: LineFile) -> None:
        """Show another file from its beginning."""
        self.file, self._top, self.following = file, (0, 0), False
        self.rows, self.y = [], 0

    def settle(self) -> None:
        """Update `rows` and `y`."""
        if not self.file.size:
            self.rows, self.y = [], 0
            return
        start, row = (self._last(), None) if self.following else self._top
        if row is None:
            self._bottom(start)
        else:
            self._fill(start, min(row, self._measure(start) - 1))

    def sees(self, index: int) -> bool:
        return any(start == index for start, _ in self.rows)

    def scroll(self, y: int) -> None:
        """Scroll to a line: by that many rows if it is near, otherwise to its approximate place."""
        step = y - self.y
        if y <= 0:
            self.go(0)
        elif y >= self.end:
            self.following = True
            self.settle()
        elif abs(step) <= 3 * self.height:
            self.move(step)
        else:
            self.go(self.file.place(y))

    def go(self, start: int) -> None:
        """Show a line at the top."""
        self._fill(start, 0)

    def move(self, rows: int) -> None:
        """Scroll by rows, up (negative) or down."""
        if not self.file.size:
            return
        start, row = self._top
        if rows < 0:
            want = -rows - row
            row = max(0, row + rows)
            while want > 0 and start > 0:
                start = self.file.start(start - 1)
                size = self._measure(start)
                row = max(0, size - want)
                want -= size
        else:
            places = islice(self._down(start, row), rows + 1)
            start, row = deque(places, maxlen=1).pop()
        self._fill(start, row)

    def _down(self, start: int, row: int) -> Iterator[tuple[int, int]]:
        """Yield the rows from one on, as far as lines are known."""
        while True:
            for step in range(row, self._measure(start)):
                yield start, step
            end = self.file.end(start)
            if end is None or end + 1 >= self.file.size:
                return
            start, row = end + 1, 0

    def _last(self) -> int:
        return self.file.start(self.file.size - 1)

    def _bottom(self, start: int) -> None:
        """Show the last rows of the file; `start` is its last line."""
        room, row = self.height, 0
        while True:
            size = self._measure(start)
            row = max(0, size - room)
            room -= size
            if room <= 0 or not start or not self.file.begins(start):
                break
            start = self.file.start(start - 1)
        self._fill(start, row, bottom=True)

    def _fill(self, start: int, row: int, *, bottom: bool = False) -> None:
        """Set the visible rows, from one on."""
        rows: list[tuple[int, int]] = []
        more = False
        for place in self._down(start, row):
            more = len(rows) == self.height
            if more:
                break
            rows.append(place)
        last = bool(rows) and self.file.end(rows[-1][0])
        ended = not more and last is not None and last + 1 >= self.file.size
        if ended and not bottom and len(rows) < self.height:
            self._bottom(self._last())
            return
        self._top, self.rows = (start, row), rows
        self.at_end = ended
        self._more = not ended or (start, row) != (0, 0)
        self.following = ended and (start, row) != (0, 0)
        first = self.file.number(start) + row
        if ended:
            self.y = self.end
        else:
            self.y = 0 if (start, row) == (0, 0) else max(1, min(first, self.end - 1))
