"""Which rows of which items are in sight. Knows heights, not items; draws nothing itself.

Heights are estimates until an item comes into sight; then `measure` says the exact one. What is in
sight stays where it is on the screen when heights above it turn out to be different. The position
of an item, and the item at a row, are found in O(log n) or, all alike, O(1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate


class UnitHeights:
    """Items that are one row high, all of them; the same promises as `Heights`."""

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
        """Take one out."""
        self.total -= 1

    def clear(self) -> None:
        """Forget all."""
        self.total = 0

    def offset(self, index: int) -> int:
        """The row on which an item begins."""
        return index

    def find(self, row: int) -> tuple[int, int]:
        """(item, row within it) at a row; rows beyond the ends are those of the end items."""
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
        """Add many at the end; O(log n) for each, or O(1) where there was none."""
        known = len(self._heights)
        self._heights += heights
        sums = list(accumulate(heights, initial=self.total))  # before each, and of all
        if not known:
            self._tree += [sums[node] - sums[node & (node - 1)] for node in range(1, len(sums))]
            self.total = sums[-1]
            return
        for node, upto in enumerate(sums[1:], known + 1):
            first = node & (node - 1)  # what it sums begins behind so many
            before = sums[first - known] if first >= known else self.offset(first)
            self._tree.append(upto - before)
        self.total = sums[-1]

    def delete(self, index: int) -> None:
        """Take one out; O(what follows it), and what is taken out is mostly at the end."""
        after = self._heights[index + 1 :]
        self.total -= sum(self._heights[index:])
        del self._heights[index:]
        del self._tree[index + 1 :]
        self.extend(after)

    def clear(self) -> None:
        """Forget all."""
        self.__init__()

    def offset(self, index: int) -> int:
        """The row on which an item begins: the sum of the heights before it."""
        tree = self._tree
        total = 0
        while index:
            total += tree[index]
            index &= index - 1
        return total

    def find(self, row: int) -> tuple[int, int]:
        """(item, row within it) at a row; rows beyond the ends are those of the end items.

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

    `measure(index)` gives the exact height of an item and is asked only for those in sight.
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
        """All items."""
        return len(self._heights)

    @property
    def total(self) -> int:
        """All rows, partly by estimate."""
        return self._heights.total

    @property
    def end(self) -> int:
        """The greatest `y`."""
        return max(0, self._heights.total - self.height)

    def lay(self, *, flat: bool) -> None:
        """From now on every item is one row high, or again as high as is said. Takes all out."""
        self._heights = UnitHeights() if flat else Heights()
        self._exact.clear()

    def extend(self, heights: Sequence[int]) -> None:
        """Add items at the end, by estimate."""
        self._heights.extend(heights)
        self._exact.extend(bytes(len(self._heights) - len(self._exact)))

    def replace(self, heights: Sequence[int] | Heights, moved: int = 0) -> None:
        """Other items stand here now; the one in sight has moved by that many, if it is there.
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
        """Take an item out."""
        self._heights.delete(index)
        del self._exact[index]
        top, row = self._top
        if top > index:
            self._top = (top - 1, row)
        elif top == index:
            self._top = (index, 0)

    def clear(self) -> None:
        """Take all items out."""
        self._heights.clear()
        self._exact.clear()
        self._top = (0, 0)
        self.y = 0
        self.following = True
        self.rows = []

    def estimate(self, index: int, height: int) -> None:
        """An item has changed and is probably this high; nothing in sight moves."""
        self._exact[index] = 0
        self._heights[index] = height

    def forget(self, index: int | None = None) -> None:
        """An item's height, or every one's, is to be asked again when it is in sight."""
        if index is None:
            self._exact = bytearray(len(self._heights))
        else:
            self._exact[index] = 0

    def offset(self, index: int) -> int:
        """The row on which an item begins."""
        return self._heights.offset(index)

    def size(self, index: int) -> int:
        """An item's height as far as it is known."""
        return self._heights[index]

    def ensure(self, index: int) -> int:
        """An item's exact height."""
        if not self._exact[index]:
            self._heights[index] = self._measure(index)
            self._exact[index] = 1
        return self._heights[index]

    def sees(self, index: int) -> bool:
        """Whether any row of an item is in sight."""
        return bool(self.rows) and self.rows[0][0] <= index <= self.rows[-1][0]

    def settle(self) -> None:
        """Bring `rows` and `y` up to date after items have changed."""
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
        """Show what is at `y`; what was in sight and still is moves by exactly as much."""
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
        """Make `rows` for `y`, measuring what an end of the conversation brought into sight."""
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
