"""Searches the items for a text, from the newest to the oldest, a slice at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from time import monotonic

from tui.ui.widgets.conversation.item_renderer import source
from tui.ui.widgets.conversation.items import Item
from tui.ui.widgets.line_view.strips import extent
from tui.ui.widgets.markdown.text import Line

SLICE_S = 0.005
_STRIDE = 16


class ItemSearch:
    """A search for a text. `counts` is how often `text` occurs in each matching item seen so far.

    Occurrences are counted in the source until the item is drawn; then the drawing code sets the
    visible count.
    """

    def __init__(self, text: str, count: int, before: ItemSearch | None = None) -> None:
        """`count` is the current number of items. `before` searched the same items for an earlier
        text."""
        self.text = text
        self.counts: dict[int, int] = {}
        self._wanted = re.compile(re.escape(text), re.IGNORECASE)
        self._lower = text.lower()
        self.seen_to = count
        self._left: Iterator[int] = iter(range(count - 1, -1, -1))
        if before and before.done and before.text.lower() in self._lower:
            # An item with the longer text has the shorter one too.
            self.seen_to = before.seen_to
            self._left = iter(sorted(before.counts, reverse=True))
        self.done = False

    def advance(self, items: Sequence[Item]) -> None:
        """Search for about one slice, new items first; `done` once all were seen."""
        for index in range(self.seen_to, len(items)):
            self.recount(index, items[index])
        self.seen_to = len(items)
        until = monotonic() + SLICE_S
        while not self.done and monotonic() < until:
            for _ in range(_STRIDE):
                index = next(self._left, None)
                if index is None:
                    self.done = True
                    break
                self.recount(index, items[index])

    def recount(self, index: int, item: Item) -> None:
        """Count an item, also again after it has changed."""
        text = source(item)
        occurrences = len(self._wanted.findall(text)) if self._lower in text.lower() else 0
        if occurrences:
            self.counts[index] = occurrences
        else:
            self.counts.pop(index, None)

    def nearest(self, index: int, step: int) -> int | None:
        """Return the nearest seen item with the text before (step -1) or after `index`."""
        near = (other for other in self.counts if (other - index) * step > 0)
        return max(near, default=None) if step < 0 else min(near, default=None)

    def behind(self, index: int) -> int:
        """Return how often the text occurs in the items after `index`."""
        return sum(count for other, count in self.counts.items() if other > index)

    @property
    def total(self) -> int:
        """Number of occurrences so far."""
        return sum(self.counts.values())

    def spots(self, line: Line) -> list[tuple[int, int]]:
        """Return the matches in a drawn line as (start, end) in characters."""
        return [match.span() for match in self._wanted.finditer(line.text, *extent(line))]
