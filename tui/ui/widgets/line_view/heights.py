"""Heights of items: position of an item, and item at a row, in O(log n) or, all alike, O(1)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate


class Flat:
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

    def append(self, height: int) -> None:
        """Add one at the end."""
        self._heights.append(height)
        self.total += height
        node = len(self._heights)
        reach = node - (node & -node)
        step = node - 1
        while step > reach:
            height += self._tree[step]
            step -= step & -step
        self._tree.append(height)

    def extend(self, heights: Sequence[int]) -> None:
        """Add many at the end."""
        if self._heights:
            for height in heights:
                self.append(height)
            return
        self._heights = list(heights)
        sums = [0, *accumulate(self._heights)]
        self.total = sums[-1]
        self._tree = [upto - sums[node & (node - 1)] for node, upto in enumerate(sums)]

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
