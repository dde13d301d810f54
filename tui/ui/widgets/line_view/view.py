"""A scrolled view of items that are drawn as lines: visible rows, scrolling, painting.

A frame costs the visible rows, and a row that was painted before costs next to nothing: its strip
is kept with its line, so that everything Textual derives from a strip is kept too.
"""

from __future__ import annotations

from asyncio import Handle, get_running_loop
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, ClassVar

from rich.style import Style
from textual import events
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.geometry import Offset, Region, Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.timer import Timer

from tui.core import gc_pause
from tui.core.dataclass import dataclass, field
from tui.ui.toolkit.compositor import draw_now
from tui.ui.widgets.keys import PANE_KEYS, bindings
from tui.ui.widgets.line_view import scrolling, strips
from tui.ui.widgets.line_view.scrolling import HorizontalBarRenderer, VerticalBarRenderer
from tui.ui.widgets.line_view.strips import LAST_ROW, Caret, StripFrame, key, place
from tui.ui.widgets.line_view.viewport import Viewport
from tui.ui.widgets.markdown.text import Line

SELECTED_S = 0.5
"""Seconds after which keys that select are done."""
FRAME_S = 0.1
"""Seconds between frames for arriving items; drawing them never takes more than an eighth of the
time."""
_POSTPONE_S = 0.001
"""Seconds that a frame waits each time a key is on its way."""


@dataclass(slots=True)
class RenderedItem:
    """The lines of an item, and the strips painted of them."""

    lines: Sequence[Line]
    strips: dict[int, Strip] = field(default_factory=dict[int, Strip])


class LineView(ScrollView, can_focus=True):
    """Follows the end while it is at the end. Padding is kept at the sides; borders are not drawn.

    A subclass draws its items by `_picture`, `_styles` and `_redraw`, and may lay something over a
    line in `_overlay`.
    """

    ALLOW_SELECT = True
    DEFAULT_CSS = """
    LineView {
        height: 1fr; background: $background; color: $text;
        overflow-y: auto; scrollbar-size: 1 1;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "edge(-1)", "First", show=False),
        Binding("end", "edge(1)", "Last", show=False),
        Binding("ctrl+u", "half(-1)", "Half a page up", show=False),
        Binding("ctrl+d", "half(1)", "Half a page down", show=False),
        Binding("escape", "unselect", "Clear the selection", show=False),
        *bindings(PANE_KEYS),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._viewport = Viewport(self._measure)
        self._look: dict[str, Style] = {}
        self._width = 0
        self._frame = StripFrame(0, 0, Style.null())
        self._blank = Strip([])
        self._stale = False
        self._shown: list[Line] = []
        self._frame_due: Handle | None = None
        self._arrived = False  # something, since the last frame was taken in
        self._frame_after = 0.0
        self._caret = Caret()
        self._selected_timer: Timer | None = None

    @property
    def following(self) -> bool:
        """True if the end is visible and stays so."""
        return self._viewport.following

    # Provided by a subclass

    def _picture(self, index: int) -> RenderedItem:
        """Return an item as drawn in `_width` cells and `_look`; the same object as long as it is
        unchanged."""
        raise NotImplementedError

    def _styles(self) -> dict[str, Style]:
        """Return the styles by name; "text" is the base."""
        raise NotImplementedError

    def _redraw(self) -> None:
        """Forget all pictures: the width or the styles have changed."""
        raise NotImplementedError

    def _overlay(self, index: int, row: int, line: Line) -> Line:  # noqa: ARG002
        """Return the line with its current overlay, or the line itself."""
        return line

    def _breadth(self) -> int:
        """Return the cells that can be scrolled through sideways."""
        return self._width

    def _pour(self) -> None:
        """Take in what has arrived: a frame is due."""

    def _settled(self) -> None:
        """Handle a change of what is visible."""

    # Layout

    def _measure(self, index: int) -> int:
        return len(self._picture(index).lines)

    def _touch(self) -> None:
        """Settle once, after everything else in this turn of the loop."""
        if not self._stale:
            self._stale = True
            self.call_later(self._settle)

    def _soon(self) -> None:
        """Settle when the next frame is due."""
        self._arrived = True
        if self._frame_due is None and self.is_running:
            due = max(0.001, self._frame_after - monotonic())
            self._frame_due = get_running_loop().call_later(due, self._next_frame)

    def _next_frame(self) -> None:
        """Take in what has arrived. It is drawn in another turn of the loop: keys come between, and
        draw nothing of it."""
        if self._postponed(self._next_frame):
            return
        self._frame_due, self._arrived = None, False
        if not self.is_running:
            return
        started = monotonic()
        self._pour()
        arranged = self._arrange()
        for picture, _, row in self._rows_in_sight():
            picture.lines[row]  # is drawn, and kept
        taken_s = monotonic() - started
        self._frame_due = get_running_loop().call_soon(self._draw_frame, arranged, taken_s)

    def _draw_frame(self, arranged: bool, taken_s: float) -> None:
        if self._postponed(self._draw_frame, arranged, taken_s):
            return
        self._frame_due = None
        if not self.is_running:
            return
        started = monotonic()
        if self._stale:  # an item has changed since, or is gone
            arranged = self._arrange()
        if arranged:
            self._apply()
        draw_now(self, self.vertical_scrollbar)
        ended = monotonic()
        self._frame_after = ended + max(FRAME_S, 8 * (taken_s + ended - started))
        if self._arrived:
            self._soon()

    def _postponed(self, step: Callable[..., None], *args: Any) -> bool:
        """True if a key is on its way to the screen; the step of a frame is then taken later."""
        if gc_pause.key_pending():
            self._frame_due = get_running_loop().call_later(_POSTPONE_S, step, *args)
            return True
        return False

    def _settle(self) -> None:
        """Update what is visible."""
        if self._arrange():
            self._apply()

    def _arrange(self) -> bool:
        """Find the rows that are visible now. False where there is no room for any."""
        width, height = self.scrollable_content_region.size
        if not width or not height:
            return False
        self._stale = False
        if width != self._width or not self._look:
            self._restyle(width)
        self._viewport.height = height
        self._viewport.settle()
        return True

    def _restyle(self, width: int) -> None:
        """Forget what was drawn in another width or in other styles."""
        self._width, self._look = width, self._look or self._styles()
        self._shown = []
        left = self.styles.padding.left
        right = max(0, self.region.width - left - self._width)
        base = self._look["text"]
        filters, (_, background) = tuple(self.get_line_filters()), self.background_colors
        self._frame = StripFrame(left, right, base, filters, background)
        self._blank = self._frame.around(Strip.blank(self._width, base))
        self._redraw()
        self._viewport.forget()

    def _ensure_styled(self, width: int = 0) -> None:
        """Find out how it looks before anything is drawn, where a layout that is still to come
        would: a key may scroll before it."""
        if not self._look:
            self._restyle(width or self._width)

    def _apply(self) -> None:
        """Set the scroll position and the scroll bar from the viewport, and repaint."""
        viewport = self._viewport
        self._settled()  # what is visible may be wider than anything before
        scrolling.resize(self, Size(self._breadth(), viewport.total))
        scrolling.jump(self, viewport.y)
        self._repaint()

    def _repaint(self, *rows: int) -> None:
        """Repaint from the first to the last row that shows another line, and `rows`."""
        lines = [picture.lines[row] for picture, _, row in self._rows_in_sight()]
        before, self._shown = self._shown, lines
        if len(before) != len(lines):
            self.refresh()
            return
        changed = [y for y, line in enumerate(lines) if line is not before[y]]
        changed += rows
        if changed:
            first, last = min(changed), max(changed)
            self.refresh(Region(0, first, self._width, last - first + 1))

    def _scroll(self, y: int) -> None:
        self._ensure_styled()
        self._viewport.scroll(y)
        self._apply()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if round(new_value) != self._viewport.y:
            # A widget that grows is first scrolled back, then told its new size.
            width, height = self.scrollable_content_region.size
            self._ensure_styled(width)
            self._viewport.height = height or self._viewport.height
            # The size lacks what came since the last frame: the end is the one shown.
            at_end = self._viewport.following and new_value >= self.max_scroll_y
            self._viewport.scroll(self._viewport.end if at_end else round(new_value))
            self._apply()

    def on_mount(self) -> None:
        self.vertical_scrollbar.renderer = VerticalBarRenderer  # pyright: ignore[reportAttributeAccessIssue] - Textual's own example
        self.horizontal_scrollbar.renderer = HorizontalBarRenderer  # pyright: ignore[reportAttributeAccessIssue]
        if self._viewport.count:
            scrolling.expect(self, self._viewport.total)

    def on_resize(self) -> None:
        self._settle()

    # A scroll bar that appears or disappears changes the room, without a Resize.

    def watch_show_vertical_scrollbar(self) -> None:
        self._touch()

    def watch_show_horizontal_scrollbar(self) -> None:
        self._touch()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._look = {}
        self._touch()

    # Painting

    def render_lines(self, crop: Region) -> list[Strip]:
        if self._stale:
            self._settle()
        selection, top = self.text_selection, crop.y
        rows = self._rows_in_sight(top, crop.bottom) if self._look else []
        painted = [self._paint(y, *row, selection) for y, row in enumerate(rows, top)]
        painted += [self._blank] * (crop.height - len(painted))
        if crop.column_span != (0, self.region.width):
            painted = [strip.crop(*crop.column_span) for strip in painted]
        return painted

    def render_line(self, y: int) -> Strip:
        """Return a row with the offsets that selecting needs."""
        if not self._look or y >= len(self._viewport.rows):
            return Strip.blank(self.size.width, self.rich_style)
        index, row = self._viewport.rows[y]
        line, x = self._overlay(index, row, self._picture(index).lines[row]), self.scroll_offset.x
        strip = self._over(line, index, row, self.text_selection)
        hidden = len(strips.make(line, x, self._frame.base).text) if x else 0
        return strip.apply_offsets(hidden, key(index, row))

    def _rows_in_sight(
        self, first: int = 0, end: int | None = None
    ) -> list[tuple[RenderedItem, int, int]]:
        """Return (picture, item, row in it) of visible rows; each item is looked up once."""
        rows = self._viewport.rows[first:end]
        pictures = {index: self._picture(index) for index in dict(rows)}
        return [(pictures[index], index, row) for index, row in rows]

    def _paint(
        self,
        y: int,  # noqa: ARG002
        picture: RenderedItem,
        index: int,
        row: int,
        selection: Selection | None,
    ) -> Strip:
        """Return a row as it looks on the screen."""
        plain = picture.lines[row]
        line = self._overlay(index, row, plain)
        if line is plain and (selection is None or selection.get_span(key(index, row)) is None):
            strip = picture.strips.get(row)
            if strip is None:
                strip = self._frame.around(self._cut(line))
                picture.strips[row] = strip
            return strip
        return self._frame.around(self._over(line, index, row, selection))

    def _over(self, line: Line, index: int, row: int, selection: Selection | None) -> Strip:
        span = None if selection is None else selection.get_span(key(index, row))
        if span is not None:
            line = strips.selected(line, span, self.selection_style)
        return self._cut(line)

    def _cut(self, line: Line) -> Strip:
        x, width, base = self.scroll_offset.x, self._width, self._frame.base
        if not x:
            return strips.make(line, width, base)
        return strips.make(line, x + width, base).crop(x, x + width)

    # Selecting

    @property
    def selected_text(self) -> str:
        """The selected text, as it is copied; "" for none."""
        selection = self.text_selection
        part = self.get_selection(selection) if selection is not None else None
        return part[0] if part else ""

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the source of the selection: for whole lines, their own."""
        start, end = selection
        first, row = place(start.y) if start else (0, 0)
        final = self._viewport.count - 1
        last, stop = place(end.y) if end else (final, LAST_ROW)
        rows: list[Line] = []
        for index in range(first, min(last, final) + 1):
            if index == last:
                stop += len(rows)
            rows += self._picture(index).lines
        upto = (stop, end.x if end else 1 << 30)
        return strips.copied(rows, (row, start.x if start else 0), upto), "\n"

    def _in_sight(self) -> list[tuple[Offset, Line]]:
        rows = self._viewport.rows
        return [(Offset(0, key(*at)), self._picture(at[0]).lines[at[1]]) for at in rows]

    # Actions

    def action_select(self, rows: int, columns: int) -> None:
        """Move the end of the selection. With nothing selected, it starts with the first visible
        row, or backwards with the last."""
        rows_visible, caret = self._in_sight(), self._caret
        if not rows_visible:
            return
        back = rows < 0 or columns < 0
        anchor = caret.begin(self.text_selection)
        if anchor is None or caret.at is None:
            origin, line = rows_visible[-1 if back else 0]
            caret.goal = strips.extent(line)[back]
            anchor = caret.at = Offset(caret.goal, origin.y)
        at = strips.nearest_row(rows_visible, caret.at)
        if beyond := min(0, at + rows) + max(0, at + rows - len(rows_visible) + 1):
            self.action_rows(beyond)
            rows_visible = self._in_sight()
            at = strips.nearest_row(rows_visible, caret.at)
        if columns:
            caret.across(rows_visible, at, columns)
        else:
            caret.along(rows_visible, at + rows)
        self.screen.selections = {self: Selection.from_offsets(anchor, caret.at)}
        if self._selected_timer is not None:
            self._selected_timer.stop()
        self._selected_timer = self.set_timer(SELECTED_S, self._end_selection)

    def on_click(self, event: events.Click) -> None:
        """Select the word at a double click, the row at a third: Textual would select all."""
        if event.chain < 2 or event.button != 1:
            return
        event.prevent_default()
        _, at = self.screen.get_widget_and_offset_at(event.screen_x, event.screen_y)
        if at is None:
            return
        index, row = place(at.y)
        line = self._picture(index).lines[row]
        span = strips.word_at(line, at.x) if event.chain == 2 else strips.extent(line)
        if span[0] < span[1]:
            start, end = (Offset(x, at.y) for x in span)
            self.screen.selections = {self: Selection.from_offsets(start, end)}
            self._end_selection()

    def _end_selection(self) -> None:
        """Tell what is told of the mouse when it is released."""
        self._selected_timer = None
        self.screen.post_message(events.TextSelected())

    def action_unselect(self) -> None:
        """Clear the selection; without one, Esc has other uses."""
        if self.text_selection is None:
            raise SkipAction
        self.screen.clear_selection()

    def action_rows(self, step: int) -> None:
        """Scroll a row up or down."""
        self._scroll(self._viewport.y + step)

    def action_page(self, step: int) -> None:
        """Scroll a screen up or down, with a row in common."""
        self._scroll(self._viewport.y + step * max(1, self._viewport.height - 1))

    def action_half(self, step: int) -> None:
        """Scroll half a screen up or down."""
        self._scroll(self._viewport.y + step * max(1, self._viewport.height // 2))

    def action_edge(self, step: int) -> None:
        """Go to the first or the last row."""
        self._scroll(0 if step < 0 else self._viewport.end)
