"""The conversation widget: cursor, folding, search and selection. `ItemsView` shows the items."""

from __future__ import annotations

from collections import Counter
from itertools import takewhile
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from rich.cells import cell_len
from textual import events
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip
from textual.timer import Timer

from tui.core.dataclass import dataclass
from tui.ui.toolkit.answer_guard import guard_of
from tui.ui.toolkit.base_screen import copy
from tui.ui.widgets.conversation import item_renderer
from tui.ui.widgets.conversation.item_renderer import selected_source
from tui.ui.widgets.conversation.items import (
    SUB_AGENT,
    TERMINAL,
    AssistantItem,
    AttemptItem,
    Item,
    NoticeItem,
    ToolItem,
    UserItem,
)
from tui.ui.widgets.conversation.items_view import ItemsView, PreparedItems
from tui.ui.widgets.conversation.search import ItemSearch
from tui.ui.widgets.conversation.tool_card import WIDEST
from tui.ui.widgets.line_view import RenderedItem, strips
from tui.ui.widgets.line_view.strips import place
from tui.ui.widgets.markdown.text import BLANK, Line

if TYPE_CHECKING:
    from tui.app.dialog_data import ShownLine

SLICES_S = 1 / 30
"""Seconds between two slices of a search."""
SAID_S = 4.0
"""Seconds for which a line about a row is shown in it."""
LETTERS = "-letters"
"""The class of a view while letters are keys in it."""


class _Hit(NamedTuple):
    """A search hit: its item, its row, and the first of its characters (-1: none visible)."""

    item: int
    row: int
    start: int


class _RowNote(NamedTuple):
    """A line about a row, shown at its end."""

    item: Item
    row: int
    text: str


class ConversationView(ItemsView):
    """The items of a conversation. The mouse and Shift select text, the cursor selects items.

    Letters are keys here only if a key gave it the focus; after a click, typing writes a prompt.
    Right after a rewind, `u` undoes it.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "cursor(-1)", "Previous", show=False),
        Binding("down", "cursor(1)", "Next", show=False),
        Binding("enter", "fold", "Fold", show=False),
        Binding("ctrl+y", "copy_item", "Copy", show=False),
        Binding("u", "undo_rewind", "Undo", show=False),
        Binding("k", "letter('cursor(-1)')", "Previous", show=False),
        Binding("j", "letter('cursor(1)')", "Next", show=False),
        Binding("g", "letter('outermost(-1)')", "First", show=False),
        Binding("G", "letter('outermost(1)')", "Last", show=False),
        Binding("n", "letter('next(1)')", "Next prompt", show=False),
        Binding("N", "letter('next(-1)')", "Previous prompt", show=False),
        Binding("y", "letter('copy_item')", "Copy", show=False),
        Binding("B", "letter('ask_line')", "Why", show=False),
        Binding("slash", "letter('screen.find')", "Find", show=False),
        Binding("space", "letter('screen.page(1)')", "Page down", show=False),
    ]

    @dataclass
    class ItemSelected(Message):
        """The cursor was moved onto an item, or it was clicked or opened."""

        item: Item

    @dataclass
    class ItemOpened(Message):
        """Enter was pressed on an item that has a view of its own: a call that is a sub-agent, or a
        step in a terminal."""

        item: ToolItem

    class UndoAsked(Message):
        """The rewind after the last prompt is to be undone."""

    @dataclass
    class Matches(Message):
        """The text was found `total` times so far; the `at`-th, counted from the newest, is visible
        (0: none).

        `more` is true if items are left to search. `last` is true if all were searched and there is
        no hit beyond it in the requested direction.
        """

        at: int
        total: int
        more: bool
        last: bool = False

    opens_terminals = False
    """True where Enter opens the terminal of a call, instead of unfolding its card."""
    _cursor: int | None = None
    _finder: ItemSearch | None = None
    _hit: _Hit | None = None
    _step = 0
    _slices: Timer | None = None
    _unfolded: tuple[Item, ...] = ()  # by a search
    _row_note: _RowNote | None = None

    @property
    def cursor(self) -> Item | None:
        """The item under the cursor."""
        return None if self._cursor is None else self._items[self._cursor]

    def changed(self, item: Item) -> None:
        super().changed(item)
        index = self._index.get(item)
        if self._finder and index is not None and index in self._finder.counts:
            self._finder.recount(index, item)

    def take_out(self, item: Item) -> None:
        index = self._index.get(item)
        super().take_out(item)
        if index is None:
            return
        if self._cursor is not None and self._cursor >= index:
            self._cursor = max(0, self._cursor - 1) if self._items else None
        if self._finder:
            self._finder, self._hit = ItemSearch(self._finder.text, len(self._items)), None

    def clear(self) -> None:
        self._cursor = None
        self._finder = self._hit = None
        super().clear()

    def complete(self, all_: PreparedItems) -> None:
        cursor, more = self._cursor, len(all_.items) - len(self._items)
        self.end_find()
        super().complete(all_)
        if cursor is not None and more >= 0:
            self._cursor = cursor + more

    def renew(self, all_: PreparedItems) -> None:
        self.end_find()
        super().renew(all_)

    def go_to(self, item: Item) -> None:
        """Bring an item into view, with the cursor on it."""
        index = self._index.get(item)
        if index is not None:
            self._viewport.following = False
            self._move_to(index)

    def say(self, text: str) -> None:
        """Show a line for a while where it is about: at the end of the selection, else of the item
        under the cursor."""
        rows, selection = self._viewport.rows, self.text_selection
        at = place(selection.end.y) if selection and selection.end else None
        if at not in rows:
            at = next(
                (one for one in rows if one[0] == self._cursor and one[1] >= self._gap(one[0])),
                None,
            )
        if at is None:
            return
        self._row_note = note = _RowNote(self._items[at[0]], at[1], f" {text} ")
        self.set_timer(SAID_S, lambda: self._unsay(note))
        self.refresh()

    def _unsay(self, note: _RowNote) -> None:
        if self._row_note is note:
            self._row_note = None
            self.refresh()

    # Finding

    def find(self, text: str, *, back: bool = True, from_end: bool = False) -> bool:
        """Go to the next occurrence of `text` (with `back`, the previous one), and mark it.

        `from_end` starts with the newest. Folded items are opened for it. A long conversation is
        searched in slices: after False a hit may still be found, and `Matches` reports it.
        """
        if not text:
            self.end_find()
            return False
        if from_end or self._finder is None or self._finder.text != text:
            self._finder = ItemSearch(text, len(self._items), self._finder)
            self._hit = None
            self._cursor = None if from_end else self._cursor
        return self._seek(-1 if back else 1)

    def end_find(self) -> None:
        """End the search; the cursor stays where it is."""
        self._finder = self._hit = None
        self._step = 0
        self._fold_back()
        self.refresh()

    def _fold_back(self) -> None:
        """Fold what was unfolded for a hit that is no longer the current one."""
        keep = self._items[self._hit.item] if self._hit else None
        for item in self._unfolded:
            if item is not keep and not isinstance(item, AssistantItem) and not item.folded:
                item.folded = True
                super().changed(item)
        self._unfolded = tuple(item for item in self._unfolded if item is keep)

    def _seek(self, step: int) -> bool:
        if self._finder is None:
            return False
        self._step = step
        self.refresh()
        return self._search()

    def _search(self) -> bool:
        """Search one slice. True if it arrived at a hit."""
        finder = self._finder
        if self._slices is not None:
            self._slices.stop()
            self._slices = None
        if finder is None:
            return False
        finder.advance(self._items)
        seeking = bool(self._step)
        moved = seeking and self._go(finder, self._step)
        if moved or finder.done:
            self._step = 0
        if not finder.done:
            self._slices = self.set_timer(SLICES_S, self._search)
        at = 0
        if hit := self._hit:  # its number, counted from the newest
            behind = sum(spot > hit for spot in self._spots(finder, hit.item))
            at = 1 + behind + finder.behind(hit.item)
        last = seeking and not moved and finder.done
        self.post_message(self.Matches(at, finder.total, more=not finder.done, last=last))
        return moved

    def _go(self, finder: ItemSearch, step: int) -> bool:
        # First among the other hits of the same item.
        hit = self._hit
        if hit is not None:
            spots = self._spots(finder, hit.item)
            others = [spot for spot in spots if (spot > hit if step > 0 else spot < hit)]
            if others:
                self._show_hit(others[0 if step > 0 else -1])
                return True
        start = len(self._items) if step < 0 else -1
        start = hit.item if hit else self._cursor if self._cursor is not None else start
        index = finder.nearest(start, step)
        if index is None:
            return False
        spots = self._spots(finder, index)
        # A hit may be hidden: by a shared row, or because its item is folded.
        item = self._items[index]
        if not spots and self._hidden(index):
            self._spread(self._leader(index))
            spots = self._spots(finder, index)
        if not spots and not isinstance(item, AssistantItem) and item.folded:
            self._toggle(index)
            self._unfolded += (item,)
            spots = self._spots(finder, index)
        spots = spots or [_Hit(index, int(self._gap(index)), -1)]
        finder.counts[index] = len(spots)
        self._show_hit(spots[0 if step > 0 else -1])
        return True

    def _spots(self, finder: ItemSearch, index: int) -> list[_Hit]:
        return [
            _Hit(index, row, start)
            for row, line in enumerate(self._lines(index))
            for start, _ in finder.spots(line)
        ]

    def _show_hit(self, hit: _Hit) -> None:
        self._move_to(hit.item)
        self._hit = hit
        self._fold_back()
        viewport = self._viewport
        at = viewport.offset(hit.item) + hit.row
        if not viewport.y <= at < viewport.y + viewport.height:
            self._scroll(max(0, at - viewport.height // 3))

    # Painting

    def _overlay(self, index: int, row: int, line: Line) -> Line:
        if line.block and self._items[index] is self._numbered:
            line = strips.numbered(line, min(self._width, WIDEST), self._look["c-number"])
        if self._finder is not None and (spots := self._finder.spots(line)):
            hit = self._hit.start if self._hit and self._hit[:2] == (index, row) else None
            line = strips.marked(line, spots, self._look["c-match"])
            current = (spot for spot in spots if spot[0] == hit)
            line = strips.marked(line, current, self._look["c-hit"])
        if index == self._cursor and line is not BLANK and (self.has_focus or self._hit):
            line = strips.with_cursor(line, self._look["c-cursor"])
        return line

    def _paint(
        self, y: int, picture: RenderedItem, index: int, row: int, selection: Selection | None
    ) -> Strip:
        pill = self._pill() if y == self._viewport.height - 1 else ""
        if self._row_note and self._row_note[:2] == (self._items[index], row):
            pill = self._row_note.text
        if pill:
            line = self._overlay(index, row, picture.lines[row])
            strip = self._over(line, index, row, selection)
            return self._frame.around(strips.with_pill(strip, pill, self._width, self._look))
        return super()._paint(y, picture, index, row, selection)

    # Selecting

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selected_source(self._items, self._lines, selection), "\n"

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if event.button != 1 or offset is None or self.text_selection is not None:
            return
        if event.chain > 1:  # selects
            return
        pill = self._pill()
        if pill and offset.y == self._viewport.height - 1:
            edge = self._width - 1
            if edge - cell_len(pill) <= offset.x < edge:
                self.action_edge(1)
                return
        if offset.y >= len(self._viewport.rows):
            return
        index, row = self._viewport.rows[offset.y]
        item = self._items[index]
        self._cursor, self._hit = index, None
        last = self._viewport.size(index) - 1
        if row == self._gap(index) or (row == last and item_renderer.shortened(item)):
            self._toggle(index)
        self.post_message(self.ItemSelected(item))
        self.refresh()

    # Whether letters are keys

    def on_focus(self, event: events.Focus) -> None:
        if not event.from_app_focus:
            self.set_class(True, LETTERS, update=False)

    def on_mouse_down(self) -> None:
        self.set_class(False, LETTERS, update=False)
        self.post_message(events.DescendantFocus(self))  # by the mouse: other keys count

    async def action_letter(self, action: str) -> None:
        if not await self.app.run_action(action, self):  # pyright: ignore[reportUnknownMemberType]
            raise SkipAction

    # Actions

    def _toggle(self, index: int) -> None:
        item = self._items[index]
        if self._along(index):
            self._spread(index)
            return
        if isinstance(item, AssistantItem) or not item_renderer.foldable(item):
            return
        item.folded = not item.folded
        self._viewport.following = self._viewport.following and index == len(self._items) - 1
        super().changed(item)

    def _spread(self, index: int) -> None:
        """Give each of the items that share a row a row of its own."""
        for item in (self._items[index], *self._along(index)):
            if isinstance(item, ToolItem | AttemptItem):
                item.alone = True
                super().changed(item)

    def action_fold(self) -> None:
        """Fold or unfold the item under the cursor. If that is out of sight, the cursor only moves
        to one that isn't."""
        if self._cursor is not None:
            if not self._viewport.sees(self._cursor):
                self._mark_in_sight()
                return
            item = self._items[self._cursor]
            opens = {SUB_AGENT, TERMINAL} if self.opens_terminals else {SUB_AGENT}
            if isinstance(item, ToolItem) and item.name in opens:
                self.post_message(self.ItemOpened(item))
                return
            self._toggle(self._cursor)
            self._settle()
            top, rows = self._viewport.offset(self._cursor), self._viewport.ensure(self._cursor)
            hidden = top + rows - self._viewport.y - self._viewport.height
            if hidden > 0:
                self._scroll(min(top, self._viewport.y + hidden))
            self.post_message(self.ItemSelected(self._items[self._cursor]))

    def follow(self) -> None:
        """Go to the end and follow it."""
        if self.size:  # one that was never laid out is there already
            self.action_edge(1)

    def action_fold_tools(self) -> None:
        """Unfold every tool call, also future ones; fold them if they are unfolded."""
        self._tools_open = not self._tools_open
        for item in self._items:
            if isinstance(item, ToolItem | AttemptItem):
                item.alone = False
                if isinstance(item, ToolItem):
                    item.folded = not self._tools_open
                self._pictures.drop(item)
        self._viewport.forget()
        self._touch()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Offer to undo a rewind until something was sent, to a key that was pressed as one."""
        if action == "letter":
            return self.has_class(LETTERS)
        if action != "undo_rewind":
            return True
        if not guard_of(self).deliberate:
            return False
        since = takewhile(lambda item: not isinstance(item, UserItem), reversed(self._items))
        return any(isinstance(item, NoticeItem) and item.can_undo for item in since)

    def action_undo_rewind(self) -> None:
        self.post_message(self.UndoAsked())

    def action_copy_item(self) -> None:
        """Copy the selection, else the source of the item under the cursor, which is first moved
        into sight."""
        text = self.selected_text
        if not text and self._cursor is not None:
            if not self._viewport.sees(self._cursor):
                self._mark_in_sight()
            text = item_renderer.source(self._items[self._cursor])
        if not text:
            raise SkipAction
        copy(self, text)

    def action_ask_line(self) -> None:
        """Ask where a line comes from: the first changed one in sight of the card under the
        cursor, else of the nearest card that has a file."""
        from tui.ui.widgets.asked_line import LineAsked  # noqa: PLC0415 - not for the first frame

        visible = dict.fromkeys(index for index, _ in self._viewport.rows)
        if not visible:
            raise SkipAction
        if self._cursor not in visible:
            self._mark_in_sight()
        at = self._cursor or 0
        lines = map(self._asked_line, sorted(visible, key=lambda index: (abs(index - at), index)))
        if (line := next(filter(None, lines), None)) is not None:
            self.post_message(LineAsked(line))
        else:
            self.say("Choose an edit or a file first.")

    @property
    def has_lines(self) -> bool:
        """True if a card with lines of a file is in sight, which can be asked about."""
        shown = {index for index, _ in self._viewport.rows}
        return any(item_renderer.has_file(self._items[index]) for index in shown)

    def _asked_line(self, index: int) -> ShownLine | None:
        item, skipped = self._items[index], self._gap(index) + 1
        if not isinstance(item, ToolItem):
            return None
        rows = [row - skipped for at, row in self._viewport.rows if at == index and row >= skipped]
        return item_renderer.asked_line(item, rows, self._width, self._look)

    def _mark_in_sight(self) -> None:
        """Put the cursor on the item that takes most of the rows in sight. Nothing scrolls."""
        shown = Counter(index for index, _ in self._viewport.rows)
        self._cursor, self._hit = max(shown, key=shown.__getitem__), None
        self.post_message(self.ItemSelected(self._items[self._cursor]))
        self.refresh()

    def action_next(self, step: int) -> None:
        """Go to the next match of a search, otherwise to the next of the person's prompts; beyond
        the last one, to the end."""
        if self._finder is not None:
            self._seek(-step)  # from the newest, as they are counted
            return
        rows, cursor = self._viewport.rows, self._cursor
        if not rows:
            return
        if cursor is None or not self._viewport.sees(cursor):
            cursor = rows[0][0] - 1 if step > 0 else rows[-1][0] + 1
        stop = len(self._items) if step > 0 else -1
        prompts = (at for at in range(cursor + step, stop, step) if self._is_prompt(at))
        if (index := next(prompts, None)) is None:
            self.action_edge(step)
            return
        self._move_to(index)
        self._scroll(self._viewport.offset(index))

    def _is_prompt(self, index: int) -> bool:
        return isinstance(self._items[index], UserItem)

    def action_cursor(self, step: int) -> None:
        """Move to the item before or after, first scrolling through one that is higher than the
        screen."""
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
        index = max(0, min(self._cursor + step, len(self._items) - 1))
        while 0 < index < len(self._items) - 1 and self._hidden(index):
            index += step
        self._move_to(self._leader(index))

    def action_outermost(self, step: int) -> None:
        """Go to the first or the last item."""
        if self._items:
            self._move_to(self._leader(0 if step < 0 else len(self._items) - 1))
            self.action_edge(step)

    def _move_to(self, index: int) -> None:
        self._cursor, self._hit = index, None
        self._ensure_styled()
        viewport = self._viewport
        height = viewport.ensure(index)
        top = viewport.offset(index)
        if top < viewport.y or height > viewport.height:
            self._scroll(top)
        elif top + height > viewport.y + viewport.height:
            self._scroll(top + height - viewport.height)
        self.post_message(self.ItemSelected(self._items[index]))
        self.refresh()
