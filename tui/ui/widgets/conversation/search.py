"""Looking through the items for a text, from the newest to the oldest, a slice at a time."""

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
    """`counts` is how often `text` stands in each item that has it, of those looked at so far.

    The count is of the source until the item is drawn; then whoever draws it sets what is seen.
    """

    def __init__(self, text: str, count: int, before: ItemSearch | None = None) -> None:
        """`count` items stand now. `before` looked for an earlier text in the same items."""
        self.text = text
        self.counts: dict[int, int] = {}
        self._wanted = re.compile(re.escape(text), re.IGNORECASE)
        self._lower = text.lower()
        self.seen_to = count
        self._left: Iterator[int] = iter(range(count - 1, -1, -1))
        if before and before.done and before.text.lower() in self._lower:
            # What has the longer text has the shorter one.
            self.seen_to = before.seen_to
            self._left = iter(sorted(before.counts, reverse=True))
        self.done = False

    def advance(self, items: Sequence[Item]) -> None:
        """Go on for about that long, those that came since first; `done` when all were seen."""
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
        """Count an item, again if it is known and has changed."""
        text = source(item)
        found = len(self._wanted.findall(text)) if self._lower in text.lower() else 0
        if found:
            self.counts[index] = found
        else:
            self.counts.pop(index, None)

    def nearest(self, index: int, step: int) -> int | None:
        """The nearest item with the text before (step -1) or after `index`, of those seen."""
        near = (other for other in self.counts if (other - index) * step > 0)
        return max(near, default=None) if step < 0 else min(near, default=None)

    def behind(self, index: int) -> int:
        """How often the text stands in the items after `index`."""
        return sum(count for other, count in self.counts.items() if other > index)

    @property
    def total(self) -> int:
        """How often it was found so far."""
        return sum(self.counts.values())

    def spots(self, line: Line) -> list[tuple[int, int]]:
        """Where it stands in a drawn line: (start, end) in characters."""
        return [found.span() for found in self._wanted.finditer(line.text, *extent(line))]
