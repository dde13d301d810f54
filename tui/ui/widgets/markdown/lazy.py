"""Lines that are drawn when they are read: a long text costs only what is seen of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import overload

from tui.core.dataclass import dataclass
from tui.ui.widgets.markdown.text import BLANK, Line, Span, prefixed


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """Lines that are not drawn yet; this stands in place of each."""

    count: int
    draw: Callable[[], Sequence[Line]]


class LazyLines(Sequence[Line]):
    """Lines of which some are drawn when one of their block is read; then they stay the same."""

    def __init__(self, lines: Iterable[Line] = ()) -> None:
        self._rows: list[Line | _Block] = list(lines)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Line: ...
    @overload
    def __getitem__(self, index: slice) -> list[Line]: ...
    def __getitem__(self, index: int | slice) -> Line | list[Line]:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self._rows)))]
        row = self._rows[index]
        return row if isinstance(row, Line) else self._drawn(row, index % len(self._rows))

    def _drawn(self, block: _Block, index: int) -> Line:
        """Draw the block to which a row belongs, and return the row."""
        start = index
        while start and self._rows[start - 1] is block:
            start -= 1
        lines = block.draw()
        assert len(lines) == block.count, "a block must have as many lines as was announced"
        self._rows[start : start + block.count] = lines
        return lines[index - start]

    def append(self, line: Line) -> None:
        """Add a line."""
        self._rows.append(line)

    def extend(self, lines: Iterable[Line]) -> None:
        """Add lines; undrawn ones stay so."""
        self._rows += lines._rows if isinstance(lines, LazyLines) else lines  # noqa: SLF001 - its own

    def defer(self, count: int, draw: Callable[[], Sequence[Line]]) -> None:
        """Add `count` lines that `draw` returns when one of them is read."""
        self._rows += [_Block(count, draw)] * count

    def replace(self, start: int, count: int, lines: Iterable[Line]) -> None:
        """Replace some lines, which are whole blocks."""
        self._rows[start : start + count] = lines

    def cut(self, count: int) -> None:
        """Keep the first `count` lines, which end with a block."""
        del self._rows[count:]


class MarkedLines(Sequence[Line]):
    """The lines of another text behind some of its own, each made when it is read, with the `first`
    mark before it or that of the `others`; then it stays the same. The text may grow meanwhile:
    `renew` takes over what has become of it, at the cost of the lines that are not kept."""

    def __init__(
        self, own: Sequence[Line], lines: Sequence[Line], first: list[Span], others: list[Span]
    ) -> None:
        self._own, self._lines = own, lines
        self._first, self._others = first, others
        self._count = len(lines)
        self._made: dict[int, Line] = {}

    def __len__(self) -> int:
        return len(self._own) + self._count

    @overload
    def __getitem__(self, index: int) -> Line: ...
    @overload
    def __getitem__(self, index: slice) -> list[Line]: ...
    def __getitem__(self, index: int | slice) -> Line | list[Line]:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        row = range(len(self))[index] - len(self._own)
        if row < 0:
            return self._own[row]
        line = self._made.get(row)
        if line is None:
            if row >= len(self._lines):  # taken back; the next frame draws it again
                return BLANK
            mark = self._others if row else self._first
            line = self._made[row] = prefixed(self._lines[row], mark)
        return line

    def renew(self, kept: int) -> None:
        """Take over the lines of the text; the first `kept` are unchanged."""
        for row in range(kept, self._count):
            self._made.pop(row, None)
        self._count = len(self._lines)
