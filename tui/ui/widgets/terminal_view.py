"""A terminal's screen as its person would see it: colors, cursor, and the lines above it.

A row that was painted before costs next to nothing, and only rows that changed are drawn again. A
screen with many colors is drawn in parts, a few rows in each turn of the loop, so that it keeps no
key waiting.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import ClassVar, Final

from rich.cells import cell_len
from rich.color import Color, ColorParseError, ColorType
from rich.color_triplet import ColorTriplet
from rich.segment import Segment
from rich.style import Style
from textual import events, on
from textual.binding import Binding, BindingType
from textual.geometry import Offset, Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.timer import Timer

from tui.core.dataclass import dataclass
from tui.core.terminal_screen import ScreenRun, TerminalScreen
from tui.core.text_cleaning import clean
from tui.ui.widgets.line_view.scrolling import HorizontalBarRenderer, VerticalBarRenderer

_NAMES: Final = {"brown": "yellow", "brightbrown": "bright_yellow"}
_CURSOR: Final = Style(reverse=True)
_CURSOR_AWAY: Final = Style(underline=True, bold=True)
_WHEEL_ROWS: Final = 3
EMPTY: Final = TerminalScreen(0, 0)


_PART_RUNS: Final = 150
"""Parts of rows, each with a look of its own, that are drawn in one turn of the loop."""
_PART_S: Final = 0.02
"""Seconds between these turns."""


@lru_cache(maxsize=4096)
def run_style(color: str, background: str, style: str) -> Style:
    """Return the style of a run; a color that nothing is known of is the terminal's own."""
    return Style(
        color=_color(color),
        bgcolor=_color(background),
        bold="b" in style or None,
        italic="i" in style or None,
        underline="u" in style or None,
        strike="s" in style or None,
        reverse="r" in style or None,
    )


@lru_cache(maxsize=4096)
def _color(name: str) -> Color | None:
    if not name or name == "default":
        return None
    with suppress(ValueError):
        if len(name) == 6:
            triplet = ColorTriplet(*bytes.fromhex(name))
            return Color(f"#{name}", ColorType.TRUECOLOR, None, triplet)
    named = _NAMES.get(name, name)
    if named.startswith("bright") and not named.startswith("bright_"):
        named = f"bright_{named.removeprefix('bright')}"
    try:
        return Color.parse(named)
    except ColorParseError:
        return None


class TerminalView(ScrollView, can_focus=True):
    """Shows one screen after the other. It follows the end until a person scrolls back."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    TerminalView {
        height: 1fr; background: $surface; color: $foreground; overflow: auto auto;
        scrollbar-size: 1 1;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "rows(-1)", show=False),
        Binding("down,j", "rows(1)", show=False),
        Binding("pageup", "pages(-1)", show=False),
        Binding("pagedown", "pages(1)", show=False),
        Binding("home,g", "first", show=False),
        Binding("end,G", "last", show=False),
        Binding("left,h", "columns(-8)", show=False),
        Binding("right,l", "columns(8)", show=False),
    ]

    @dataclass
    class PastAsked(Message):
        """The person scrolls back by `rows` (negative) from the screen as it is now."""

        rows: int

    class RoomChanged(Message):
        """The view is larger or smaller than before."""

    class NowAsked(Message):
        """The person returns to the screen as it is now."""

    @dataclass
    class Pointed(Message):
        """The person uses the mouse at a cell of the screen while their keys go to it."""

        event: events.MouseEvent
        place: Offset

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.picture = EMPTY
        self.typing = False
        """True while the person's keys go to the terminal: the cursor is drawn whole, and stays in
        sight."""
        self.following = True
        self._strips: dict[int, Strip] = {}
        self._waiting: dict[int, None] = {}
        """Rows that are drawn in the next turns of the loop; until then they look as before."""
        self._turn: Timer | None = None
        self._look: tuple[Style, Style, Style] | None = None
        self.vertical_scrollbar.renderer = VerticalBarRenderer  # pyright: ignore[reportAttributeAccessIssue] - Textual's own example
        self.horizontal_scrollbar.renderer = HorizontalBarRenderer  # pyright: ignore[reportAttributeAccessIssue]

    def show(self, picture: TerminalScreen) -> None:
        """Show a screen in the place of the one before."""
        before, self.picture = self.picture, picture
        past = len(picture.recent)
        sizes = (
            (before.recent, before.rows, before.cols),
            (picture.recent, picture.rows, picture.cols),
        )
        if sizes[0] != sizes[1]:
            self._forget()
            self._let_scroll_sideways()
            self.virtual_size = Size(picture.cols, past + picture.rows)
        else:
            self._repaint(before)
        self._keep_in_sight()

    def show_past(self, picture: TerminalScreen, rows: int) -> None:
        """Show a screen with the lines above it, scrolled by some rows."""
        self.following = False
        self.show(picture)
        self.call_after_refresh(self.scroll_to, y=max(0, self._top + rows), animate=False)

    def type_here(self, typing: bool) -> None:
        """Show whether the person's keys go to the terminal."""
        self.typing = typing
        self.following |= typing
        self.release_mouse()
        self._forget()
        self._keep_in_sight()

    @property
    def whole(self) -> Size:
        """The columns and rows that a terminal may have to be seen whole."""
        return self.outer_size

    @property
    def _room(self) -> Size:
        return self.scrollable_content_region.size

    def _repaint(self, before: TerminalScreen) -> None:
        """Draw only the rows that differ."""
        now, past = self.picture, len(self.picture.recent)
        touched = {before.cursor[0], now.cursor[0]} if before.cursor != now.cursor else set[int]()
        if before.cursor_shown != now.cursor_shown:
            touched.add(now.cursor[0])
        rows = max(len(before.lines), len(now.lines))
        touched |= {row for row in range(rows) if _row(before, row) != _row(now, row)}
        self._draw_soon(past + row for row in sorted(touched))

    def _draw_soon(self, rows: Iterable[int]) -> None:
        self._waiting |= dict.fromkeys(rows)
        if self._turn is None:
            self._draw_some()

    def _draw_some(self) -> None:
        """Draw the next rows that wait, and the others soon."""
        self._turn = None
        top, height = self.scroll_offset.y, self._room.height
        width, room = self._room.width, _PART_RUNS
        while self._waiting and room > 0:
            index = next(iter(self._waiting))
            del self._waiting[index]
            if top <= index < top + height:
                self._strips[index] = self._drawn(index)
                row = _row(self.picture, index - len(self.picture.recent))
                room -= 1 + min(len(row), self._right)
                self.refresh(Region(0, index - top, width, 1))
            else:
                self._strips.pop(index, None)
        if self._waiting:
            self._turn = self.set_timer(_PART_S, self._draw_some)

    def _forget(self) -> None:
        """Draw everything again."""
        self._strips.clear()
        self._waiting.clear()
        self.refresh()
        top = self.scroll_offset.y
        self._draw_soon(range(top, top + self._room.height))

    def _keep_in_sight(self) -> None:
        """Stay at the end, or with the cursor where the terminal is larger than the view."""
        picture, room = self.picture, self._room
        if not self.following or not room.height:
            return
        past, (row, column), top = len(picture.recent), picture.cursor, self._top
        if picture.rows > room.height:  # the part with the cursor
            top = min(top, past + max(0, row - room.height + 1))
        left = column - room.width + 8 if self.typing and column >= room.width - 4 else 0
        self.scroll_to(x=max(0, left), y=max(0, top), animate=False)
        if self.typing and self.has_focus:
            origin = self.content_region.offset - self.scroll_offset
            self.app.cursor_position = origin + Offset(column, past + row)  # pyright: ignore[reportUnknownMemberType]

    def _let_scroll_sideways(self) -> None:
        wide = self.picture.cols > self.outer_size.width > 0
        self.styles.overflow_x = "auto" if wide else "hidden"

    def on_resize(self) -> None:
        self._let_scroll_sideways()
        self._forget()
        self.call_after_refresh(self._keep_in_sight)
        self.post_message(self.RoomChanged())

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._look = None
        self._strips.clear()

    def render_line(self, y: int) -> Strip:
        scrolled, width = self.scroll_offset, self.scrollable_content_region.width
        index = scrolled.y + y
        strip = self._strips.get(index)
        if strip is None and index in self._waiting:
            strip = Strip([])
        elif strip is None:
            strip = self._strips[index] = self._drawn(index)
        return strip.crop_extend(scrolled.x, scrolled.x + width, self._styles[2])

    @property
    def _styles(self) -> tuple[Style, Style, Style]:
        """The styles of the screen, of the lines above it, and of what is beside both."""
        if self._look is None:
            base = self.rich_style
            ground = self.app.theme_variables.get("background", "")  # pyright: ignore[reportUnknownMemberType]
            inner = base + Style(bgcolor=Color.parse(ground)) if ground.startswith("#") else base
            self._look = inner, base, base
        return self._look

    def _drawn(self, index: int) -> Strip:
        picture, (screen, past, _) = self.picture, self._styles
        row = index - len(picture.recent)
        if row < 0:
            return Strip([Segment(clean(picture.recent[index]).replace("\n", " "), past)])
        if row >= picture.rows:
            return Strip([])
        segments = list[Segment]()
        room = self._right
        for run in _row(picture, row):
            text = clean(run.text).replace("\n", " ")
            style = screen + run_style(run.color, run.background, run.style)
            segments.append(Segment(text, style))
            if (room := room - cell_len(text)) <= 0:
                break
        strip = Strip(segments).extend_cell_length(picture.cols, screen)
        if picture.cursor_shown and picture.cursor[0] == row:
            strip = _marked(strip, picture.cursor[1], _CURSOR if self.typing else _CURSOR_AWAY)
        return strip

    @property
    def _right(self) -> int:
        """The columns up to the right edge of what is in sight: only those are drawn."""
        return self.scroll_offset.x + self._room.width

    def watch_scroll_x(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_x(old_value, new_value)
        if round(new_value) > round(old_value):
            self._forget()

    @property
    def _top(self) -> int:
        """The first row in sight at the end."""
        return max(0, len(self.picture.recent) + self.picture.rows - self._room.height)

    # Scrolling back

    def action_rows(self, rows: int) -> None:
        """Scroll some rows; above the screen are the lines that have left it."""
        if self.following and rows < 0 and not self.typing:
            self.post_message(self.PastAsked(rows))
        elif not self.following:
            y = self.scroll_offset.y + rows
            if rows > 0 and y >= self._top:
                self.action_last()
            else:
                self.scroll_to(y=max(0, y), animate=False)

    def action_pages(self, pages: int) -> None:
        self.action_rows(pages * max(1, self._room.height - 1))

    def action_columns(self, columns: int) -> None:
        self.scroll_relative(x=columns, animate=False)

    def action_first(self) -> None:
        self.action_rows(-(1 << 20))

    def action_last(self) -> None:
        """Follow the terminal again."""
        self.following = True
        self.post_message(self.NowAsked())

    # The mouse

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if self._point(event):
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self._point(event)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        if self._point(event):
            self.release_mouse()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        if not self._point(event):
            self.action_rows(-_WHEEL_ROWS)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        if not self._point(event):
            self.action_rows(_WHEEL_ROWS)

    @on(events.MouseScrollLeft)
    @on(events.MouseScrollRight)
    def _scroll_sideways(self, event: events.MouseEvent) -> None:
        self._point(event)

    def _point(self, event: events.MouseEvent) -> bool:
        """Say where the mouse is used while the person types here; a button that is held leads it
        to the edge. False while they don't."""
        event.stop()
        event.prevent_default()
        if not self.typing:
            return False
        picture = self.picture
        x, y = event.offset + self.scroll_offset
        y -= len(picture.recent)
        place = Offset(min(max(x, 0), picture.cols - 1), min(max(y, 0), picture.rows - 1))
        if place == (x, y) or self.app.mouse_captured is self:  # pyright: ignore[reportUnknownMemberType]
            self.post_message(self.Pointed(event, place))
        return True


def _row(picture: TerminalScreen, row: int) -> Sequence[ScreenRun]:
    return picture.lines[row] if 0 <= row < len(picture.lines) else ()


def _marked(strip: Strip, column: int, look: Style) -> Strip:
    """Return a row with the cursor in that column."""
    if column >= strip.cell_length:
        return strip
    before, under, after = strip.divide([column, column + 1, strip.cell_length])
    under = Strip(Segment(text, (style or Style()) + look) for text, style, _ in under)
    wide = cell_len(under.text) != 1
    return Strip.join([before, Strip([Segment(" ", look)]) if wide else under, after])
