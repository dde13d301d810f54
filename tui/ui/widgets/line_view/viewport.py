"""The visible rows of items. Knows heights, not items; draws nothing itself.

Heights are estimates until an item becomes visible; then `measure` gives the exact one. Visible
rows stay where they are on the screen when heights above them turn out to be different. The
position of an item, and the item at a row, are found in O(log n) or, if all are one row high, O(1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate


class UnitHeights:
    """Items that are all one row high; same interface as `Heights`."""

    def __init__(self) -> None:
        self.total = 0

    def __len__(self) -> int:
        return self.total

    def __getitem__(self, index: int) -> int:
        return 1

    def __setitem__(self, index: int, height: int) -> None:
        assert height == 1

    def extend(self, heights: Sequence[int]) -> None:
        """Add many at the end."""
        self.total += len(heights)

    def delete(self, index: int) -> None:  # noqa: ARG002
        """Remove one."""
        self.total -= 1

    def clear(self) -> None:
        """Remove all."""
        self.total = 0

    def offset(self, index: int) -> int:
        """Return the row on which an item begins."""
        return index

    def find(self, row: int) -> tuple[int, int]:
        """Return (item, row within it) at a row; rows beyond the ends are those of the end
        items."""
        return max(0, min(row, self.total - 1)), 0


class Heights:
    """Heights in rows, each at least 0, as a Fenwick tree."""

    def __init__(self) -> None:
        self._heights: list[int] = []
        self._tree: list[int] = [0]  # _tree[i] sums the i & -i heights that end with the i-th
        self.total = 0

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, index: int) -> int:
        return self._heights[index]

    def __setitem__(self, index: int, height: int) -> None:
        change = height - self._heights[index]
        if not change:
            return
        self._heights[index] = height
        self.total += change
        tree = self._tree
        node = index + 1
        while node < len(tree):
            tree[node] += change
            node += node & -node

    def extend(self, heights: Sequence[int]) -> None:
        """Add many at the end; O(log n) for each, or O(1) if there was none."""
        known = len(self._heights)
        self._heights += heights
        sums = list(accumulate(heights, initial=self.total))  # before each, and the total
        if not known:
            self._tree += [sums[node] - sums[node & (node - 1)] for node in range(1, len(sums))]
            self.total = sums[-1]
            return
        for node, upto in enumerate(sums[1:], known + 1):
            first = node & (node - 1)  # its sum starts after this many
            before = sums[first - known] if first >= known else self.offset(first)
            self._tree.append(upto - before)
        self.total = sums[-1]

    def delete(self, index: int) -> None:
        """Remove one; costs O(items after it), and removals are mostly at the end."""
        after = self._heights[index + 1 :]
        self.total -= sum(self._heights[index:])
        del self._heights[index:]
        del self._tree[index + 1 :]
        self.extend(after)

    def clear(self) -> None:
        """Remove all."""
        self.__init__()

    def offset(self, index: int) -> int:
        """Return the row on which an item begins: the sum of the heights before it."""
        tree = self._tree
        total = 0
        while index:
            total += tree[index]
            index &= index - 1
        return total

    def find(self, row: int) -> tuple[int, int]:
        """Return (item, row within it) at a row; rows beyond the ends are those of the end items.

        There must be at least one height.
        """
        tree = self._tree
        row = max(0, min(row, self.total - 1))
        index = 0
        step = 1 << (len(tree) - 1).bit_length()
        while step:
            node = index + step
            if node < len(tree) and tree[node] <= row:
                index = node
                row -= tree[node]
            step >>= 1
        index = min(index, len(self._heights) - 1)
        return index, row


class Viewport:
    """`rows` is (item, row in the item) for each row on the screen; `y` the first one's position.

    `measure(index)` returns the exact height of an item and is called only for visible ones.
    """

    def __init__(self, measure: Callable[[int], int]) -> None:
        self.rows: list[tuple[int, int]] = []
        self.y = 0
        self.height = 0
        self.following = True
        self._measure = measure
        self._heights: Heights | UnitHeights = Heights()
        self._exact = bytearray()
        self._top = (0, 0)

    @property
    def count(self) -> int:
        """Number of items."""
        return len(self._heights)

    @property
    def total(self) -> int:
        """Number of rows, partly estimated."""
        return self._heights.total

    @property
    def end(self) -> int:
        """The greatest `y`."""
        return max(0, self._heights.total - self.height)

    def lay(self, *, flat: bool) -> None:
        """Make every item one row high from now on, or use given heights again. Removes all
        items."""
        self._heights = UnitHeights() if flat else Heights()
        self._exact.clear()

    def extend(self, heights: Sequence[int]) -> None:
        """Add items at the end, with estimated heights."""
        self._heights.extend(heights)
        self._exact.extend(bytes(len(self._heights) - len(self._exact)))

    def replace(self, heights: Sequence[int] | Heights, moved: int = 0) -> None:
        """Replace all items; the visible one has moved by that many, if it is still there.
        `Heights` are taken over as they are."""
        self._exact.clear()
        if isinstance(heights, Heights):
            self._heights = heights
            self._exact.extend(bytes(len(heights)))
        else:
            self._heights.clear()
            self.extend(heights)
        top, row = self._top
        self._top = (max(0, top + moved), row)

    def delete(self, index: int) -> None:
        """Remove an item."""
        self._heights.delete(index)
        del self._exact[index]
        top, row = self._top
        if top > index:
            self._top = (top - 1, row)
        elif top == index:
            self._top = (index, 0)

    def clear(self) -> None:
        """Remove all items."""
        self._heights.clear()
        self._exact.clear()
        self._top = (0, 0)
        self.y = 0
        self.following = True
        self.rows = []

    def estimate(self, index: int, height: int) -> None:
        """Set an estimated height for an item that has changed; nothing visible moves."""
        self._exact[index] = 0
        self._heights[index] = height

    def forget(self, index: int | None = None) -> None:
        """Measure an item, or every one, again when it is visible."""
        if index is None:
            self._exact = bytearray(len(self._heights))
        else:
            self._exact[index] = 0

    def offset(self, index: int) -> int:
        """Return the row on which an item begins."""
        return self._heights.offset(index)

    def size(self, index: int) -> int:
        """Return an item's height as far as it is known."""
        return self._heights[index]

    def ensure(self, index: int) -> int:
        """Return an item's exact height."""
        if not self._exact[index]:
            self._heights[index] = self._measure(index)
            self._exact[index] = 1
        return self._heights[index]

    def sees(self, index: int) -> bool:
        """True if any row of an item is visible."""
        return bool(self.rows) and self.rows[0][0] <= index <= self.rows[-1][0]

    def settle(self) -> None:
        """Update `rows` and `y` after items have changed."""
        if not len(self._heights):
            self.y, self.rows = 0, []
        elif self.following:
            self._fill_up(len(self._heights) - 1, self.height)
            self._show(self.end)
        else:
            index, row = self._top
            index = min(index, len(self._heights) - 1)
            before = max(1, self._heights[index])
            after = self.ensure(index)
            if after != before and row >= after:
                row = after - 1
            self._anchor(index, -row)

    def scroll(self, y: int) -> None:
        """Show the rows at `y`; rows that stay visible move by exactly as much."""
        if not len(self._heights):
            return
        y = max(0, min(y, self.end))
        self.following = y >= self.end
        if y == 0 and not self.following:
            self._anchor(0, 0)
            return
        index, row = self._heights.find(y)
        anchor, line = index, -row
        at = line
        for candidate in range(index, len(self._heights)):
            if at >= self.height:
                break
            if self._exact[candidate]:
                anchor, line = candidate, at
                break
            at += self._heights[candidate]
        if self.following:
            self.settle()
        else:
            self._anchor(anchor, line)

    def _anchor(self, index: int, line: int) -> None:
        """Show `index` so that it begins on line `line` of the screen (negative: above it)."""
        self._fill_up(index - 1, line)
        self._fill_down(index, self.height - line)
        self._show(self._heights.offset(index) - line)

    def _fill_up(self, index: int, room: int) -> None:
        while index >= 0 and room > 0:
            room -= self.ensure(index)
            index -= 1

    def _fill_down(self, index: int, room: int) -> None:
        while index < len(self._heights) and room > 0:
            room -= self.ensure(index)
            index += 1

    def _show(self, y: int) -> None:
        """Set `rows` for `y`, measuring what an end of the conversation made visible."""
        for _ in range(3):
            y = max(0, min(y, self.end))
            index, row = self._heights.find(y)
            before = self._heights.total
            self._fill_down(index, self.height + row)
            if self._heights.total == before:
                break
        if self.following:
            y = self.end
        y = max(0, min(y, self.end))
        index, row = self._heights.find(y)
        rows: list[tuple[int, int]] = []
        self._top = (index, row)
        while index < len(self._heights) and len(rows) < self.height:
            stop = min(self.ensure(index), row + self.height - len(rows))
            rows += [(index, step) for step in range(row, stop)]
            index, row = index + 1, 0
        self.y, self.rows = y, rows
