"""Shows the items of a conversation: adds, grows, changes and removes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import ClassVar

from rich.style import Style
from textual.geometry import Region
from textual.timer import Timer

from tui.core.dataclass import dataclass
from tui.ui.widgets import markdown
from tui.ui.widgets.conversation import item_renderer, style
from tui.ui.widgets.conversation.items import (
    AssistantItem,
    AttemptItem,
    Item,
    ThinkingItem,
    ToolItem,
)
from tui.ui.widgets.conversation.render_cache import RenderCache
from tui.ui.widgets.line_view import LineView, RenderedItem
from tui.ui.widgets.line_view.viewport import Heights
from tui.ui.widgets.markdown.text import Line

_NOTHING = RenderedItem([])


@dataclass(frozen=True, slots=True)
class PreparedItems:
    """All items of a session, with what a view has to know about them. The view that shows them
    keeps these very collections and adds to them."""

    items: list[Item]
    index: dict[Item, int]
    heights: Heights


SPIN_S = 1 / 8
_RECENT = 200
"""Items among which the newest answer with code is sought."""
_FENCE = re.compile(r"^[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)*(?:```|~~~)", re.MULTILINE)
_ONE_BLOCK = 2
"""Fences of one block."""
_SAMPLE = 500


def _has_code(text: str) -> bool:
    return ("```" in text or "~~~" in text) and _FENCE.search(text) is not None


class ItemsView(LineView):
    """Shows items, from the oldest to the newest."""

    COMPONENT_CLASSES: ClassVar[set[str]] = markdown.COMPONENTS | style.components(
        style.STYLE_RULES
    )
    DEFAULT_CSS = (
        """
    ItemsView { overflow-x: hidden; scrollbar-gutter: stable; }
    """
        + markdown.css("ItemsView")
        + style.css("ItemsView", style.STYLE_RULES)
    )

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._items: list[Item] = []
        self._index: dict[Item, int] = {}
        self._pictures = RenderCache()
        self._spin_timer: Timer | None = None
        self._tools_open = False
        self._behind = 0  # items that arrived below the visible ones
        self._numbered: AssistantItem | None = None  # its code blocks show their numbers
        self._newest_code: AssistantItem | None = None
        self._items_changed = False  # since that was looked at
        self._shown_pill = ""

    @property
    def items(self) -> Sequence[Item]:
        """All items, in order."""
        return self._items

    @property
    def with_code(self) -> AssistantItem | None:
        """The newest complete answer with code blocks."""
        recent = islice(reversed(self._items), _RECENT)
        answers = (item for item in recent if isinstance(item, AssistantItem))
        return next((one for one in answers if not one.streaming and _has_code(one.text)), None)

    @property
    def newest(self) -> Item | None:
        """The last item."""
        return self._items[-1] if self._items else None

    def _touch(self) -> None:
        self._items_changed = True
        super()._touch()

    def append(self, item: Item) -> None:
        """Add an item at the end."""
        self.extend((item,))

    def extend(self, items: Sequence[Item]) -> None:
        """Add many items; only visible ones are drawn."""
        start = len(self._items)
        if start and items and item_renderer.joins(self._items[-1], items[0]):
            self._forget(self._leader(start - 1))
        self._unfold(items)
        self._items += items
        self._index.update(zip(items, range(start, len(self._items)), strict=True))
        self._viewport.extend(self._estimates(items))
        if not self._viewport.following:
            self._behind += len(items)
        self._touch()

    def _unfold(self, items: Sequence[Item]) -> None:
        for item in items if self._tools_open else ():
            if isinstance(item, ToolItem):
                item.folded = False

    def _estimates(self, items: Sequence[Item]) -> list[int]:
        """Estimate the heights of items.

        Of many, all but the last get the average of a sample: they become visible late, and keys
        wait meanwhile.
        """
        width = item_renderer.inner(self._width or 80)
        known = items[-_SAMPLE:]
        before = len(items) - len(known)
        sample = [
            item_renderer.estimate(item, width) for item in items[: before : before // _SAMPLE + 1]
        ]
        usual = max(1, round(sum(sample) / len(sample))) if sample else 1
        return [usual] * before + [item_renderer.estimate(item, width) for item in known]

    def changed(self, item: Item) -> None:
        """Redraw an item after a change."""
        index = self._index.get(item)
        if index is not None:
            self._forget(index)
            if isinstance(item, ToolItem | AttemptItem):  # it may share another's row now
                if index:
                    self._forget(self._leader(index - 1))
                if isinstance(self._behind_it(index), ToolItem | AttemptItem):
                    self._forget(index + 1)
            self._touch()

    def _forget(self, index: int) -> None:
        self._pictures.drop(self._items[index])
        self._viewport.forget(index)

    def _behind_it(self, index: int) -> Item | None:
        """Return the item after this one."""
        return self._items[index + 1] if index + 1 < len(self._items) else None

    # Items that share a row

    def _leader(self, index: int) -> int:
        """Return the first of the items that share a row with this one, or its own index."""
        while index and item_renderer.joins(self._items[index - 1], self._items[index]):
            index -= 1
        return index

    def _along(self, index: int) -> list[Item]:
        """Return the items after this one that share its row."""
        items, stop = self._items, index + 1
        while stop < len(items) and item_renderer.joins(items[stop - 1], items[stop]):
            stop += 1
        return items[index + 1 : stop]

    def _hidden(self, index: int) -> bool:
        """True if an item has no row of its own."""
        return index > 0 and item_renderer.joins(self._items[index - 1], self._items[index])

    def take_out(self, item: Item) -> None:
        """Remove an item; text that was on its way to it is void."""
        index = self._index.pop(item, None)
        if index is None:
            return
        self._pictures.forget_stream(item)
        del self._items[index]
        for step in range(index, len(self._items)):
            self._index[self._items[step]] = step
        self._viewport.delete(index)
        if index < len(self._items):  # another item precedes it now
            self.changed(self._items[index])
        elif index:
            self.changed(self._items[index - 1])
        self._touch()

    def clear(self) -> None:
        """Remove all items."""
        self._items.clear()
        self._index.clear()
        self._pictures.clear()
        self._viewport.clear()
        self._behind = 0
        self._touch()

    def prepare(self, items: Sequence[Item]) -> PreparedItems:
        """Return what `complete` needs. Takes 15 ms for 50,000 items, so call it in a thread."""
        self._unfold(items)
        heights = Heights()
        heights.extend(self._estimates(items))
        index = {item: place for place, item in enumerate(items)}
        return PreparedItems(list(items), index, heights)

    def complete(self, all_: PreparedItems) -> None:
        """Show all items where the last ones are shown; a scroll position among them is kept."""
        more, following = len(all_.items) - len(self._items), self._viewport.following
        if following or more < 0:
            self.clear()
        self._items, self._index = all_.items, all_.index
        self._pictures.clear()
        self._viewport.replace(all_.heights, more)
        self._touch()

    def renew(self, all_: PreparedItems) -> None:
        """Show the items of the same conversation, read again; a scroll position is kept."""
        if self._viewport.following or len(all_.items) < len(self._items):
            self.clear()
        self._items, self._index = all_.items, all_.index
        self._pictures.clear()
        self._viewport.replace(all_.heights)
        self._touch()

    # Streams

    def stream(self, item: AssistantItem | ThinkingItem, text: str) -> None:
        """Add text to an item of this view. `item.text` grows with the frames, or before."""
        item.streaming = True
        self._pictures.stream(item, text)
        self._soon()

    def finish(self, item: Item) -> None:
        """End streaming: `item.text` is complete, and drawn for good."""
        index = self._index.get(item)
        if not isinstance(item, AssistantItem | ThinkingItem) or index is None:
            return
        item.streaming = False
        self._pictures.finish(item, gap=self._gap(index))
        self._viewport.forget(index)
        self._touch()

    def _pour(self) -> None:
        for item in self._pictures.pour():
            index = self._index.get(item)
            if index is None:
                continue
            if self._viewport.following or self._viewport.sees(index):
                self._pictures.grow(item, gap=self._gap(index))
                self._viewport.forget(index)
            else:
                self._pictures.drop(item)
                width = item_renderer.inner(self._width or 80)
                self._viewport.estimate(index, item_renderer.estimate(item, width))

    # What it looks like

    def _gap(self, index: int) -> bool:
        return item_renderer.gap(self._items[index - 1] if index else None, self._items[index])

    def _lines(self, index: int) -> Sequence[Line]:
        return self._picture(index).lines

    def _picture(self, index: int) -> RenderedItem:
        item = self._items[index]
        if not isinstance(item, ToolItem | AttemptItem):
            return self._pictures.get(item, gap=self._gap(index))
        if self._hidden(index):
            return _NOTHING
        return self._pictures.get(item, gap=self._gap(index), along=self._along(index))

    def _styles(self) -> dict[str, Style]:
        return markdown.styles(self) | style.styles(self, style.STYLE_RULES)

    def _redraw(self) -> None:
        self._pictures.reset(self._width, self._look)

    def _settled(self) -> None:
        if self._items_changed:
            self._number_code()
        if self._viewport.following:
            self._behind = 0
        self._pictures.trim({self._items[index] for index, _ in self._viewport.rows})
        self._spin()

    def _number_code(self) -> None:
        """Number the code blocks of the newest answer with code, if it has more than one."""
        self._items_changed = False
        answer = self.with_code
        if answer is not self._newest_code:
            self._newest_code = answer
            several = answer and len(_FENCE.findall(answer.text)) > _ONE_BLOCK
            self._numbered = answer if several else None
            self.refresh()

    def _repaint(self, *rows: int) -> None:
        pill, before = self._pill(), self._shown_pill
        self._shown_pill = pill
        super()._repaint(*rows, *([self._viewport.height - 1] if pill != before else ()))

    def _pill(self) -> str:
        if self._viewport.following:
            return ""
        if self._behind:
            return f" ↓ {self._behind:,} new "
        return " ↓ more " if self._pictures.streaming else ""

    # Running tools

    def _at_work(self) -> list[tuple[int, ToolItem]]:
        """Return (row on the screen, card) of the running tools whose first line is visible."""
        return [
            (y, item)
            for y, (index, row) in enumerate(self._viewport.rows)
            if isinstance(item := self._items[index], ToolItem)
            and row == self._gap(index)
            and self._runs(index)
        ]

    def _runs(self, index: int) -> bool:
        """True if a call, or one that shares its row, is running."""
        return any(
            isinstance(one, ToolItem) and one.state == "running"
            for one in (self._items[index], *self._along(index))
        )

    def _spin(self) -> None:
        """Turn the marks of running tools while any is visible."""
        running = self.app.animation_level != "none" and bool(self._at_work())  # pyright: ignore[reportUnknownMemberType]
        if running and self._spin_timer is None:
            self._pictures.frame = 0
            self._spin_timer = self.set_interval(SPIN_S, self._turn)
        elif not running and self._spin_timer is not None:
            self._spin_timer.stop()
            self._spin_timer = None
            self._pictures.frame = -1

    def _turn(self) -> None:
        if self._stale:
            return
        self._pictures.frame += 1
        for y, item in self._at_work():
            self._pictures.drop(item)
            self.refresh(Region(0, y, self._width, 1))

    def tick(self, now: float) -> None:
        """Update the seconds of visible running tools; `now` as in `ToolItem.started`."""
        if self._stale:  # the rows may be those of items that are gone
            return
        changed = False
        for _, item in self._at_work():
            if item.started is not None:
                seconds = float(max(0, int(now - item.started)))
                if seconds != (item.seconds or 0.0):
                    item.seconds = seconds
                    self._pictures.drop(item)
                    if item.tail:
                        self.changed(item)  # it may have become higher
                    changed = True
        if changed and not self._stale:
            self._repaint()
