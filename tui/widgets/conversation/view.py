"""The widget. One frame costs what is in sight, however long the conversation is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from time import monotonic
from typing import ClassVar, overload

from rich.cells import cell_len
from rich.style import Style
from textual import events
from textual.await_remove import AwaitRemove
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.timer import Timer

from tui.widgets import scrolling
from tui.widgets.conversation import draw, strips, style
from tui.widgets.conversation.copying import key, selected
from tui.widgets.conversation.items import AssistantItem, Item, ThinkingItem, ToolItem
from tui.widgets.conversation.pictures import Pictures
from tui.widgets.conversation.viewport import Viewport
from tui.widgets.keys import PANE_KEYS, bindings
from tui.widgets.markdown.text import BLANK, Line

FRAME_S = 1 / 20
"""A stream is drawn at most so often, and never for more than an eighth of the time."""
SPIN_S = 1 / 8


class Conversation(ScrollView, can_focus=True):
    """The items of a conversation, from the oldest to the newest.

    It follows the end while it is at the end. The mouse selects text, the cursor items.
    """

    ALLOW_SELECT = True
    COMPONENT_CLASSES: ClassVar[set[str]] = style.COMPONENTS
    DEFAULT_CSS = """
    Conversation {
        height: 1fr;
        background: $background;
        color: $text;
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
    }
    """ + style.css("Conversation")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "cursor(-1)", "Previous", show=False),
        Binding("down,j", "cursor(1)", "Next", show=False),
        Binding("enter,space,o", "fold", "Fold", show=False),
        Binding("y", "copy_item", "Copy", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home,g", "edge(-1)", "First", show=False),
        Binding("end,G", "edge(1)", "Last", show=False),
        *bindings(PANE_KEYS),
    ]

    class ItemSelected(Message):
        """The cursor was moved onto an item, or it was clicked or opened."""

        def __init__(self, item: Item) -> None:
            super().__init__()
            self.item = item

    class Behind(Message):
        """`count` items arrived below what is in sight; 0 when the end is in sight again."""

        def __init__(self, count: int) -> None:
            super().__init__()
            self.count = count

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._items: list[Item] = []
        self._index: dict[Item, int] = {}
        self._viewport = Viewport(self._measure)
        self._pictures = Pictures()
        self._look: dict[str, Style] = {}
        self._stale = False
        self._flush_timer: Timer | None = None
        self._flush_after = 0.0
        self._spin_timer: Timer | None = None
        self._cursor: int | None = None
        self._wanted: re.Pattern[str] | None = None
        self._hit = -1
        self._tools_open = False
        self._behind = 0
        self._shown: tuple[list[Line], str] = ([], "")
        self._painting = False

    # Items

    @property
    def items(self) -> Sequence[Item]:
        """All items, in order."""
        return self._items

    @property
    def following(self) -> bool:
        """Whether the end is in sight and stays there."""
        return self._viewport.following

    @property
    def cursor(self) -> Item | None:
        """The item under the cursor."""
        return None if self._cursor is None else self._items[self._cursor]

    def append(self, item: Item) -> None:
        """Add an item at the end."""
        self.extend((item,))

    def extend(self, items: Sequence[Item]) -> None:
        """Add many items; only those in sight are drawn."""
        start = len(self._items)
        width = draw.inner(self._pictures.width or 80)
        for item in items if self._tools_open else ():
            if isinstance(item, ToolItem):
                item.folded = False
        self._items += items
        self._index.update((item, start + step) for step, item in enumerate(items))
        self._viewport.extend(draw.estimate(item, width) for item in items)
        if not self._viewport.following:
            self._set_behind(self._behind + len(items))
        self._touch()

    def changed(self, item: Item) -> None:
        """Draw an item anew: something about it is different."""
        index = self._index.get(item)
        if index is not None:
            self._pictures.drop(item)
            self._viewport.forget(index)
            self._touch()

    @overload
    def remove(self) -> AwaitRemove: ...
    @overload
    def remove(self, item: Item) -> None: ...
    def remove(self, item: Item | None = None) -> AwaitRemove | None:
        """Take an item out; text that was on its way to it is void. Without one: the widget."""
        if item is None:
            return super().remove()
        index = self._index.pop(item, None)
        if index is None:
            return None
        self._pictures.forget_stream(item)
        del self._items[index]
        for step in range(index, len(self._items)):
            self._index[self._items[step]] = step
        self._viewport.delete(index)
        if self._cursor is not None and self._cursor >= index:
            self._cursor = max(0, self._cursor - 1) if self._items else None
        if index < len(self._items):  # what stands before it is another item now
            self.changed(self._items[index])
        self._touch()
        return None

    def clear(self) -> None:
        """Take all items out."""
        self._items.clear()
        self._index.clear()
        self._pictures.clear()
        self._viewport.clear()
        self._cursor = None
        self._wanted, self._hit = None, -1
        self._set_behind(0)
        self._touch()

    def find(self, text: str, *, back: bool = True, anew: bool = False) -> bool:
        """Go to the next place (back: the one before) where `text` stands, and mark it there.

        `anew` begins at the end (back: with the newest). What is folded over it is opened.
        """
        self._wanted = re.compile(re.escape(text), re.IGNORECASE) if text else None
        if anew:
            self._cursor, self._hit = None, -1
        self.refresh()
        step = -1 if back else 1
        if self._cursor is not None and self._hit >= 0:
            rows = self._matching(self._cursor)
            rows = [row for row in rows if (row - self._hit) * step > 0]
            if rows:
                self._show_hit(self._cursor, rows[-1 if back else 0])
                return True
        start = self._cursor if self._cursor is not None else len(self._items) if back else -1
        wanted = text.casefold()
        for index in range(start + step, -1 if back else len(self._items), step):
            item = self._items[index]
            if text and wanted in draw.source(item).casefold():
                rows = self._matching(index)
                if not rows and not isinstance(item, AssistantItem) and item.folded:
                    self._toggle(index)
                    rows = self._matching(index)
                self._show_hit(index, rows[-1 if back else 0] if rows else int(self._gap(index)))
                return True
        return False

    def end_find(self) -> None:
        """Nothing is looked for any more; the cursor stays where it is."""
        self._wanted, self._hit = None, -1
        self.refresh()

    def _matching(self, index: int) -> list[int]:
        wanted = self._wanted
        rows = enumerate(self._lines(index)) if wanted else ()
        return [row for row, line in rows if wanted and strips.holds(line, wanted)]

    def _show_hit(self, index: int, row: int) -> None:
        self._move_to(index)
        self._hit = row
        viewport = self._viewport
        at = viewport.offset(index) + row
        if not viewport.y <= at < viewport.y + viewport.height:
            self._scroll(max(0, at - viewport.height // 3))

    # Streams

    def stream(self, item: AssistantItem | ThinkingItem, text: str) -> None:
        """Add text to an item that is held here. `item.text` grows with the frames."""
        item.streaming = True
        self._pictures.stream(item, text)
        if self._flush_timer is None and self.is_running:
            due = max(0.001, self._flush_after - monotonic())
            self._flush_timer = self.set_timer(due, self._flush)

    def finish(self, item: Item) -> None:
        """Streaming is over: `item.text` is whole, and drawn for good."""
        index = self._index.get(item)
        if not isinstance(item, AssistantItem | ThinkingItem) or index is None:
            return
        item.streaming = False
        self._pictures.finish(item, gap=self._gap(index))
        self._viewport.forget(index)
        self._touch()

    def _flush(self) -> None:
        self._flush_timer = None
        started = monotonic()
        for item in self._pictures.pour():
            index = self._index.get(item)
            if index is None:
                continue
            if self._viewport.following or self._viewport.sees(index):
                self._pictures.grow(item, gap=self._gap(index))
                self._viewport.forget(index)
            else:
                self._pictures.drop(item)
                width = draw.inner(self._pictures.width or 80)
                self._viewport.estimate(index, draw.estimate(item, width))
        self._settle()
        ended = monotonic()
        self._flush_after = ended + max(FRAME_S, 8 * (ended - started))

    # Layout

    def _gap(self, index: int) -> bool:
        return draw.gap(self._items[index - 1] if index else None, self._items[index])

    def _lines(self, index: int) -> list[Line]:
        return self._pictures.get(self._items[index], gap=self._gap(index)).lines

    def _measure(self, index: int) -> int:
        return len(self._lines(index))

    def _touch(self) -> None:
        """Settle once, after all that happens in this turn of the loop."""
        if not self._stale:
            self._stale = True
            self.call_later(self._settle)

    def _settle(self) -> None:
        """Bring what is in sight up to date."""
        width, height = self.scrollable_content_region.size
        if not width or not height:
            return
        self._stale = False
        if width != self._pictures.width or not self._look:
            self._look = style.styles(self)
            self._shown = ([], "")
            self._pictures.reset(width, self._look)
            self._viewport.forget()
        self._viewport.height = height
        self._viewport.settle()
        self._apply()

    def _apply(self) -> None:
        """Make the scroll position and the scroll bar those of the viewport, and repaint."""
        viewport = self._viewport
        scrolling.resize(self, Size(self._pictures.width, viewport.total))
        scrolling.jump(self, viewport.y)
        if viewport.following:
            self._set_behind(0)
        self._pictures.trim({self._items[index] for index, _ in viewport.rows})
        self._spin()
        self._repaint()

    def _repaint(self) -> None:
        """Repaint from the first to the last row that shows another line than before."""
        lines = [self._lines(index)[row] for index, row in self._viewport.rows]
        pill = self._pill()
        before, self._shown = self._shown, (lines, pill)
        old = before[0]
        if len(old) != len(lines):
            self.refresh()
            return
        changed = [y for y, line in enumerate(lines) if line is not old[y]]
        if pill != before[1]:
            changed.append(self._viewport.height - 1)
        if changed:
            rows = changed[-1] - changed[0] + 1
            self.refresh(Region(0, changed[0], self.scrollable_content_region.width, rows))

    def _set_behind(self, count: int) -> None:
        if count != self._behind:
            self._behind = count
            self.post_message(self.Behind(count))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if round(new_value) != self._viewport.y:
            # A widget that grows is scrolled back first and told of its new size afterwards.
            self._viewport.height = self.scrollable_content_region.height or self._viewport.height
            self._viewport.scroll(round(new_value))
            self._apply()

    def on_resize(self) -> None:
        self._settle()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._look = {}
        self._touch()

    # Painting

    def render_lines(self, crop: Region) -> list[Strip]:
        if self._stale:
            self._settle()
        self._painting = True
        try:
            return super().render_lines(crop)
        finally:
            self._painting = False

    def render_line(self, y: int) -> Strip:
        """A row: with the offsets that selecting needs, except when it is painted."""
        if not self._look or y >= len(self._viewport.rows):
            return Strip.blank(self.size.width, self.rich_style)
        index, row = self._viewport.rows[y]
        strip = self._strip(index, row)
        if not self._painting:
            return strip.apply_offsets(0, key(index, row))
        if y == self._viewport.height - 1 and (pill := self._pill()):
            return strips.with_pill(strip, pill, self._pictures.width, self._look)
        return strip

    def _pill(self) -> str:
        if self._viewport.following:
            return ""
        if self._behind:
            return f" ↓ {self._behind:,} new "
        return " ↓ more " if self._pictures.streaming else ""

    def _strip(self, index: int, row: int) -> Strip:
        picture = self._pictures.get(self._items[index], gap=self._gap(index))
        line, width, base = picture.lines[row], self._pictures.width, self._look["text"]
        selection = self.text_selection
        span = None if selection is None else selection.get_span(key(index, row))
        at_cursor = index == self._cursor and (self.has_focus or self._hit >= 0)
        marked = at_cursor and line is not BLANK
        plain = line
        if self._wanted is not None:
            hit = index == self._cursor and row == self._hit
            line = strips.marked(line, self._wanted, self._look["c-hit" if hit else "c-match"])
        if span is not None or marked or line is not plain:
            cursor = self._look["c-cursor"] if marked else None
            return strips.make(
                strips.overlaid(line, span, self.selection_style, cursor), width, base
            )
        strip = picture.strips.get(row)
        if strip is None:
            strip = picture.strips[row] = strips.make(line, width, base)
        return strip

    def _spin(self) -> None:
        """Let the marks of running tools turn while any is in sight."""
        running = any(
            isinstance(item := self._items[index], ToolItem) and item.state == "running"
            for index, _ in self._viewport.rows
        )
        running = running and self.app.animation_level != "none"  # pyright: ignore[reportUnknownMemberType]
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
        for y, (index, row) in enumerate(self._viewport.rows):
            item = self._items[index]
            if isinstance(item, ToolItem) and item.state == "running" and row == self._gap(index):
                self._pictures.drop(item)
                self.refresh(Region(0, y, self.size.width, 1))

    def tick(self, now: float) -> None:
        """Let the seconds of the running tools in sight go on; `now` as in `ToolItem.started`."""
        if self._stale:  # the rows are those of items that may be gone
            return
        changed = False
        for index in dict.fromkeys(index for index, _ in self._viewport.rows):
            item = self._items[index]
            if isinstance(item, ToolItem) and item.state == "running" and item.started is not None:
                seconds = float(max(0, int(now - item.started)))
                if seconds != (item.seconds or 0.0):
                    item.seconds = seconds
                    self._pictures.drop(item)
                    changed = True
        if changed:
            self._repaint()

    # Selecting

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selected(self._items, self._lines, selection), "\n"

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if event.button != 1 or offset is None or self.text_selection is not None:
            return
        pill = self._pill()
        if pill and offset.y == self._viewport.height - 1:
            edge = self._pictures.width - 1
            if edge - cell_len(pill) <= offset.x < edge:
                self.action_edge(1)
                return
        if offset.y >= len(self._viewport.rows):
            return
        index, row = self._viewport.rows[offset.y]
        item = self._items[index]
        self._cursor, self._hit = index, -1
        last = self._viewport.size(index) - 1
        if row == self._gap(index) or (row == last and draw.shortened(item)):
            self._toggle(index)
        self.post_message(self.ItemSelected(item))
        self.refresh()

    # Actions

    def _toggle(self, index: int) -> None:
        item = self._items[index]
        if isinstance(item, AssistantItem) or not draw.foldable(item):
            return
        item.folded = not item.folded
        self._viewport.following = self._viewport.following and index == len(self._items) - 1
        self.changed(item)

    def action_fold(self) -> None:
        """Fold or unfold the item under the cursor."""
        if self._cursor is not None:
            self._toggle(self._cursor)
            self._settle()
            top, rows = self._viewport.offset(self._cursor), self._viewport.ensure(self._cursor)
            hidden = top + rows - self._viewport.y - self._viewport.height
            if hidden > 0:
                self._scroll(min(top, self._viewport.y + hidden))
            self.post_message(self.ItemSelected(self._items[self._cursor]))

    def action_fold_tools(self) -> None:
        """Unfold every tool call, those to come too; fold them where they are unfolded."""
        self._tools_open = not self._tools_open
        for item in self._items:
            if isinstance(item, ToolItem) and item.folded == self._tools_open:
                item.folded = not self._tools_open
                self._pictures.drop(item)
        self._viewport.forget()
        self._touch()

    def action_copy_item(self) -> None:
        """Copy the source of the item under the cursor."""
        if self._cursor is not None:
            text = draw.source(self._items[self._cursor])
            self.app.copy_to_clipboard(text)  # pyright: ignore[reportUnknownMemberType]

    def action_page(self, step: int) -> None:
        """A screen up or down, with a row in common."""
        self._scroll(self._viewport.y + step * max(1, self._viewport.height - 1))

    def action_edge(self, step: int) -> None:
        """To the first or the last row."""
        self._scroll(0 if step < 0 else self._viewport.end)

    def action_cursor(self, step: int) -> None:
        """To the item before or after; rows of one that is higher than the screen come first."""
        rows = self._viewport.rows
        if not rows:
            return
        if self._cursor is None or not self._viewport.sees(self._cursor):
            self._move_to(rows[0 if step > 0 else -1][0])
            return
        top = self._viewport.offset(self._cursor) - self._viewport.y
        bottom = top + self._viewport.size(self._cursor)
        hidden = bottom - self._viewport.height if step > 0 else -top
        if hidden > 0 and self._viewport.size(self._cursor) > self._viewport.height:
            self._scroll(self._viewport.y + step * min(hidden, 3))
            return
        self._move_to(max(0, min(self._cursor + step, len(self._items) - 1)))

    def _move_to(self, index: int) -> None:
        self._cursor, self._hit = index, -1
        viewport = self._viewport
        height = viewport.ensure(index)
        top = viewport.offset(index)
        if top < viewport.y or height > viewport.height:
            self._scroll(top)
        elif top + height > viewport.y + viewport.height:
            self._scroll(top + height - viewport.height)
        self.post_message(self.ItemSelected(self._items[index]))
        self.refresh()

    def _scroll(self, y: int) -> None:
        self._viewport.scroll(y)
        self._apply()
