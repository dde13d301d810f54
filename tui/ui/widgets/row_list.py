"""A list of rows with a cursor. A frame costs the visible rows, however many there are.

Rows wider than the list end with an ellipsis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, TypeAlias

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui.core.dataclass import dataclass

LOOKS = (
    "text", "muted", "accent", "primary", "secondary", "success", "warning", "error", "heading",
    "cursor",
)  # fmt: skip

Part: TypeAlias = tuple[str, str]
"""A piece of a row and its look, one of LOOKS. The text is drawn as it is: clean it first."""


class RowList(ScrollView, can_focus=True):
    """Draws `count` rows by asking for each when it becomes visible.

    A click on the row under the cursor chooses it, one on another row moves the cursor there; with
    `one_click` it chooses as well.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"rows--{look}" for look in LOOKS}
    DEFAULT_CSS = """
    RowList {
        height: 1fr; background: $background; color: $foreground;
        overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; scrollbar-gutter: stable;
        & > .rows--text { color: $foreground; }
        & > .rows--muted { color: $text-muted; }
        & > .rows--accent { color: $text-accent; }
        & > .rows--primary { color: $text-primary; }
        & > .rows--secondary { color: $text-secondary; }
        & > .rows--success { color: $text-success; }
        & > .rows--warning { color: $text-warning; }
        & > .rows--error { color: $text-error; }
        & > .rows--heading { color: $text-secondary; text-style: bold; }
        & > .rows--cursor { background: $primary-muted; text-style: bold; }
        &:nocolor > .rows--cursor { background: transparent; text-style: bold reverse; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "edge(-1)", show=False),
        Binding("end", "edge(1)", show=False),
        Binding("enter", "choose", show=False),
    ]

    @dataclass
    class Chosen(Message):
        """Enter, or a click that chooses."""

        index: int

    @dataclass
    class Moved(Message):
        """The cursor is on another row."""

        index: int

    def __init__(self, *, id: str | None = None, one_click: bool = False) -> None:  # noqa: A002
        super().__init__(id=id)
        self._one_click = one_click
        self._draw: Callable[[int, int], Sequence[Part]] = lambda _index, _width: ()
        self._count = 0
        self._cursor = 0
        self._styles: dict[str, Style] = {}

    @property
    def cursor(self) -> int:
        """The row under the cursor; 0 if there is none."""
        return self._cursor

    @property
    def row_width(self) -> int:
        """The cells of a row: those beside the scrollbar, whether it is needed or not."""
        return self.scrollable_content_region.width

    def show(
        self, count: int, draw: Callable[[int, int], Sequence[Part]], *, cursor: int = 0
    ) -> None:
        """Show other rows. `draw` gets the index of a row and the width in cells."""
        self._count, self._draw = count, draw
        self.virtual_size = Size(0, count)
        self._cursor = max(0, min(cursor, count - 1))
        self._reveal()
        self.refresh()

    def move_to(self, index: int) -> None:
        """Move the cursor to a row, and bring it into view."""
        index = max(0, min(index, self._count - 1))
        if index == self._cursor or not self._count:
            return
        self._cursor = index
        self._reveal()
        self.refresh()
        self.post_message(self.Moved(index))

    def _reveal(self) -> None:
        if self._count and self.size.height:
            row = Region(0, self._cursor, 1, 1)
            self.scroll_to_region(row, animate=False, force=True)

    def action_move(self, step: int) -> None:
        self.move_to(self._cursor + step)

    def action_page(self, step: int) -> None:
        self.move_to(self._cursor + step * max(1, self.size.height - 1))

    def action_edge(self, step: int) -> None:
        self.move_to(0 if step < 0 else self._count - 1)

    def action_choose(self) -> None:
        if self._count:
            self.post_message(self.Chosen(self._cursor))

    def row_at(self, index: int) -> int | None:
        """Return the row that a click on a row is for; None if it is for none."""
        return index if index < self._count else None

    def covers(self, index: int) -> bool:
        """True if the cursor is on a row."""
        return index == self._cursor

    def on_click(self, event: events.Click) -> None:
        index = self.row_at(round(self.scroll_y) + event.y)
        if index is None:
            return
        chooses = index == self._cursor or self._one_click
        self.move_to(index)
        if chooses:
            self.action_choose()

    def on_resize(self) -> None:
        self._reveal()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles = {}

    def render_line(self, y: int) -> Strip:
        width, index = self.row_width, round(self.scroll_y) + y
        if not self._styles:
            self._styles = {
                look: self.get_component_rich_style(f"rows--{look}", partial=True) for look in LOOKS
            }
        base = self.rich_style
        if index >= self._count:
            return Strip.blank(width, base)
        if self.covers(index):
            base += self._styles["cursor"]
        parts = self._draw(index, width)
        segments = [Segment(text, base + self._styles[look]) for text, look in parts]
        cells = sum(cell_len(text) for text, _ in parts)
        strip = Strip(segments, cells)
        if cells > width > 1:
            last = Segment("…", base + self._styles["muted"])
            strip = Strip([*strip.crop(0, width - 1), last], width)
        return strip.adjust_cell_length(width, base)
