"""The panes' frame: widgets that keep their rows while others change, titles, a splitter.

Textual asks every widget that overlaps the redrawn part of the screen for all its rows, and goes
through them one by one. While a conversation streams, that is most of a frame.
"""

from __future__ import annotations

from collections.abc import Iterable

from textual import events
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.filter import LineFilter
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from tui.core.dataclass import dataclass


def hanging(head: Content, lines: Iterable[Content]) -> list[Content]:
    """Return lines with a head before the first, the others indented below it."""
    blank = Content(" " * head.cell_length)
    return [Content.assemble(blank if at else head, line) for at, line in enumerate(lines)]


class TextLines(Widget):
    """As high as its text is in the available width."""

    def lines(self, width: int) -> list[Content]:
        """Return the text in rows of `width` cells."""
        raise NotImplementedError

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return len(self.lines(width))

    def render(self) -> Content:
        return Content("\n").join(self.lines(self.content_size.width))


class CachedRender(Widget):
    """Keeps its rows, as they are painted, until it changes."""

    _rows: tuple[Region, tuple[LineFilter, ...], list[Strip]] | None = None

    def _set_dirty(self, *regions: Region) -> None:
        self._rows = None
        super()._set_dirty(*regions)

    def render_lines(self, crop: Region) -> list[Strip]:
        filters = tuple(self.get_line_filters())
        kept = self._rows
        if kept is None or kept[1] != filters or not kept[0].contains_region(crop):
            kept = self._rows = crop, filters, super().render_lines(crop)
        area, _, rows = kept
        if area == crop:
            return rows
        if area.column_span != crop.column_span:
            return super().render_lines(crop)
        return rows[crop.y - area.y : crop.bottom - area.y]


class CachedHorizontal(Horizontal, CachedRender):
    """A `Horizontal` of which only the children change."""


class CachedVertical(Vertical, CachedRender):
    """A `Vertical` of which only the children change."""


class PaneRule(CachedRender):
    """A horizontal line of one row.

    `title` and `right` are content, `joint` the column at which a vertical line ends here (None for
    none). It is `lit` while the pane under it has the focus.
    """

    DEFAULT_CSS = """
    PaneRule { height: 1; width: 1fr; color: $rule; }
    PaneRule.-lit { color: $primary; }
    """

    joint: reactive[int | None] = reactive[int | None](None)
    lit: reactive[bool] = reactive(False, toggle_class="-lit")

    def __init__(self, title: str = "", *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._title, self._right = Content.styled(title, "$text-muted"), Content("")

    # Not reactives: those compare the text alone, and switching tabs changes only colors.

    @property
    def title(self) -> Content:
        return self._title

    @title.setter
    def title(self, title: Content) -> None:
        if _differ(title, self._title):
            self._title = title
            self.refresh()

    @property
    def right(self) -> Content:
        return self._right

    @right.setter
    def right(self, right: Content) -> None:
        if _differ(right, self._right):
            self._right = right
            self.refresh()

    def render(self) -> Content:
        width = self.size.width
        right = self.right.truncate(max(0, width - 8), ellipsis=True)
        tail = right.cell_length + 4 if right else 0
        title = self.title.truncate(max(0, width - tail - 5), ellipsis=True)
        if self.lit:
            title = title.stylize("bold $text-primary")
        line = ["─"] * width
        if self.joint is not None and 0 < self.joint < width:
            line[self.joint] = "┴"
        head = title.cell_length + 4 if title else 0
        body = "".join(line)
        parts: list[Content | str] = []
        if title:
            parts += [body[:2], " ", title, " "]
        parts.append(body[head : width - tail])
        if right:
            parts += [" ", right, " ", body[-2:]]
        return Content.assemble(*parts)


def _differ(one: Content, other: Content) -> bool:
    return one.plain != other.plain or one.spans != other.spans


class Splitter(CachedRender):
    """A column of one cell."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    Splitter { width: 1; height: 1fr; color: $rule; pointer: ew-resize; }
    Splitter:hover, Splitter.-dragged { color: $primary; }
    """

    @dataclass
    class Dragged(Message):
        """The mouse pulled the line to column `x` of the screen."""

        x: int

    class Dropped(Message):
        """The mouse released the line."""

    def render(self) -> Content:
        return Content("\n".join(["┬", *["│"] * (self.size.height - 1)]))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        event.stop()
        self.add_class("-dragged")
        self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self.has_class("-dragged"):
            self.post_message(self.Dragged(event.screen_x))

    def on_mouse_up(self, event: events.MouseUp) -> None:
        event.stop()
        if self.has_class("-dragged"):
            self.remove_class("-dragged")
            self.release_mouse()
            self.post_message(self.Dropped())
