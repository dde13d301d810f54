"""Lanes: bars on the time axis, found by time however many there are. Pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from tui.core.dataclass import dataclass, field

SIDE_BY_SIDE: Final = 4
"""Most rows of a lane group. With more at the same time, the others are in the last row."""
_TOUCH: Final = 1e-6


@dataclass(slots=True)
class Lane:
    """Bars one after another: their starts, ends, and the places of their steps."""

    starts: array[float] = field(default_factory=lambda: array("d"))
    ends: array[float] = field(default_factory=lambda: array("d"))
    steps: array[int] = field(default_factory=lambda: array("l"))
    _busy: array[float] = field(default_factory=lambda: array("d", [0.0]))
    _failed: array[int] = field(default_factory=lambda: array("l"))
    """The bars of what failed."""

    def free_at(self, start: float) -> bool:
        """True if a bar may begin there."""
        return not self.ends or self.ends[-1] <= start + _TOUCH

    def add(self, start: float, end: float, step: int, *, failed: bool) -> None:
        """Add a bar after the others; where it overlaps them, the part that doesn't."""
        ends, busy = self.ends, self._busy
        if ends and ends[-1] > start:
            start = ends[-1]
        end = max(end, start)
        if failed:
            self._failed.append(len(ends))
        self.starts.append(start)
        ends.append(end)
        self.steps.append(step)
        busy.append(busy[-1] + end - start)

    def between(self, start: float, end: float) -> range:
        """The bars that are in a stretch of time, also in part."""
        last = bisect_left(self.starts, end)
        first = bisect_left(self.ends, start, 0, last)
        while first < last and self.ends[first] <= start and self.starts[first] < start:
            first += 1
        return range(first, last)

    def share(self, bars: range, start: float, end: float) -> float:
        """The share of a stretch of time that its bars take."""
        if not bars or end <= start:
            return 0.0
        first, last = bars.start, bars.stop
        busy = self._busy[last] - self._busy[first]
        if (before := start - self.starts[first]) > 0:
            busy -= before
        if (after := self.ends[last - 1] - end) > 0:
            busy -= after
        return max(0.0, min(1.0, busy / (end - start)))

    @property
    def busy(self) -> float:
        """The seconds of all bars."""
        return self._busy[-1]

    def failed(self, bars: range) -> bool:
        """True if one of the bars is of something that failed."""
        first = bisect_left(self._failed, bars.start)
        return first < len(self._failed) and self._failed[first] < bars.stop


@dataclass(slots=True)
class LaneGroup:
    """Bars of one kind, those at the same time in rows below each other."""

    rows: list[Lane] = field(default_factory=lambda: [Lane()])

    def add(self, start: float, end: float, step: int, *, failed: bool = False) -> None:
        """Add a bar in the first row that is free there."""
        for lane in self.rows:
            if lane.free_at(start):
                lane.add(start, end, step, failed=failed)
                return
        if len(self.rows) < SIDE_BY_SIDE:
            self.rows.append(Lane())
        self.rows[-1].add(start, end, step, failed=failed)

    def __bool__(self) -> bool:
        return bool(self.rows[0].starts)


@dataclass(slots=True)
class Sums:
    """Sums of numbers that belong to moments, for any stretch of time."""

    times: array[float] = field(default_factory=lambda: array("d"))
    _sums: array[float] = field(default_factory=lambda: array("d", [0.0]))

    def add(self, time: float, number: float) -> None:
        """Add a number at a moment that is not before the others."""
        self.times.append(max(time, self.times[-1]) if self.times else time)
        self._sums.append(self._sums[-1] + number)

    @property
    def total(self) -> float:
        return self._sums[-1]

    def between(self, edges: Sequence[float]) -> Iterator[float]:
        """Sum up each stretch between two of the moments, without its end."""
        places = [bisect_left(self.times, edge) for edge in edges]
        for first, last in pairwise(places):
            yield self._sums[last] - self._sums[first]


@dataclass(slots=True)
class CountSums:
    """Whole numbers in their order, with the sum of any stretch of them."""

    values: array[int] = field(default_factory=lambda: array("q"))
    peak: int = 0
    """The place of the largest, the first of several."""
    _sums: array[int] = field(default_factory=lambda: array("q", [0]))

    def add(self, number: int) -> None:
        """Add a number after the others."""
        if self.values and number > self.values[self.peak]:
            self.peak = len(self.values)
        self.values.append(number)
        self._sums.append(self._sums[-1] + number)

    def total(self, first: int, last: int) -> int:
        """The sum of a stretch, without its end."""
        return self._sums[last] - self._sums[first]

    def largest(self, first: int, last: int) -> tuple[int, int]:
        """The place and the number of the largest in a stretch that is not empty, the first of
        several."""
        numbers = self.values[first:last]
        most = max(numbers)
        return first + numbers.index(most), most

    def __bool__(self) -> bool:
        return self._sums[-1] > 0
