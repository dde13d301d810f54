"""The picture of a timeline with its cursor in time. A step of the cursor costs two columns."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final, cast

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.color import Color as Hue
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from tui.app.reports.timeline_picture import (
    CACHED,
    PictureRow,
    Unread,
    Window,
    label_width,
    picture,
    whole,
)
from tui.context.timeline import SessionTimeline
from tui.core.dataclass import dataclass
from tui.ui.toolkit.themes import toned

if TYPE_CHECKING:
    from tui.ui.toolkit.base_app import ThemedApp

_COLORS = {
    "system": "$text-secondary",
    "tools": "$text-accent",
    "messages": "$text-primary",
    "results": "$text-success",
    "thinking": "$text-muted",
    "text": "$foreground",
    "muted": "$text-muted",
    "rule": "$rule",
    "primary": "$text-primary",
    "secondary": "$text-secondary",
    "accent": "$text-accent",
    "success": "$text-success",
    "warning": "$text-warning",
    "error": "$text-error",
    "ink": "$background",
}
_LEVELS: Final = {"system": 7.0, "tools": 11.0, "messages": 6.3, "results": 12.0, "thinking": 8.5}
"""The contrast of the parts to the background: none has that of one next to it, so that they differ
for people who don't see the difference of their hues."""
_PALE: Final = 3.0
"""The contrast of a part to the same part from the cache."""
_RULES = "\n".join(f"    & > .timeline--{role} {{ color: {_COLORS[role]}; }}" for role in _COLORS)
_LOW, _HIGH = " ▁▂▃─━", "▄▅▆▇█"
"""The characters that the cursor's line replaces: those of little, and those of a whole color."""
_CLOSEST_S = 0.02
"""Fewest seconds of a column."""


class TimelineView(Widget, can_focus=True):
    """Draws `timeline` in its window. The cursor is on one of its steps."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"timeline--{role}" for role in _COLORS}
    DEFAULT_CSS = (
        "TimelineView {\n    height: 1fr; background: $background; color: $foreground;\n"
        f"{_RULES}\n}}"
    )

    cursor: reactive[int] = reactive(0, repaint=False)

    @dataclass
    class StepChanged(Message):
        """The cursor is on another step."""

        view: TimelineView
        step: int

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.timeline = SessionTimeline()
        self.window: Window | None = None
        """The stretch in sight; None for the whole session, however long it gets."""
        self.extent: Window | None = None
        """All that can come into sight, where that is more than the session."""
        self.left: Unread | None = None
        """What has not been read yet."""
        self._rows: Sequence[PictureRow] = ()
        self._strips: dict[int, Strip] = {}
        self._colors: dict[str, Color | None] = {}
        self._cell_styles: dict[tuple[str, str], Style] = {}

    @property
    def shaded(self) -> bool:
        """False where the parts have textures: too few colors are left for shades of them."""
        app = cast("ThemedApp", self.app)
        return not (app.no_color or app.few_colours)

    @property
    def columns(self) -> int:
        return max(1, self.size.width - label_width(self.size.width) - 1)

    @property
    def sight(self) -> Window:
        """The stretch of time that is drawn."""
        return self.window or self.every

    @property
    def every(self) -> Window:
        """All that can come into sight."""
        if self.extent is None and self.left is not None:
            return self.left.whole
        return self.extent or whole(self.timeline)

    def show(self, timeline: SessionTimeline, cursor: int) -> None:
        """Draw a timeline, or what is new of the one that is shown."""
        self.timeline = timeline
        self.draw()
        self.move_to(cursor)

    def draw(self) -> None:
        """Draw the window again."""
        width, height = self.size
        self._strips = {}
        self._rows = ()
        if width and height:
            self._rows = picture(
                self.timeline, self.sight, width, height, colors=self.shaded, left=self.left
            )
        self.refresh()

    def on_resize(self) -> None:
        self.draw()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._colors, self._cell_styles, self._strips = {}, {}, {}

    # The cursor

    def move_to(self, step: int) -> None:
        """Move the cursor to a step and bring it into sight."""
        steps = self.timeline.steps
        self.cursor = max(0, min(step, len(steps) - 1))
        if steps and (window := self.window) is not None:
            at, width = steps[self.cursor].at, window.end - window.start
            if not window.start <= at < window.end:
                self._show_from(at - width / 2, width)
        self.refresh()
        self.post_message(self.StepChanged(self, self.cursor))

    def move(self, by: int) -> None:
        """Move by columns: at least one step."""
        anchors, steps = self.timeline.anchors, self.timeline.steps
        if not steps:
            return
        sight, at = self.sight, steps[self.cursor].at
        width = (sight.end - sight.start) / self.columns
        column = int((at - sight.start) / width)
        if by > 0:
            step = bisect_left(anchors, sight.start + (column + by) * width)
            self.move_to(max(step, self.cursor + 1))
            return
        edge = sight.start + (column + by + 1) * width
        step = bisect_left(anchors, edge) - 1
        while step > 0 and steps[step].at >= edge:
            step -= 1
        self.move_to(min(step, self.cursor - 1))

    def page(self, by: int) -> None:
        """Move by half of the columns in sight."""
        self.move(by * max(1, self.columns // 2))

    def zoom(self, by: int) -> None:
        """Look closer by a factor of 2, or from further away; 0 shows everything."""
        every, steps = self.every, self.timeline.steps
        sight = self.sight
        width = (sight.end - sight.start) / (2.0**by)
        if by == 0 or width >= every.end - every.start or not steps:
            self.window = None
        else:
            at = steps[self.cursor].at
            share = (at - sight.start) / (sight.end - sight.start)
            width = max(width, self.columns * _CLOSEST_S)
            self._show_from(at - width * max(0.1, min(0.9, share)), width)
        self.draw()

    def _show_from(self, start: float, width: float) -> None:
        every = self.every
        start = max(every.start, min(start, every.end - width))
        self.window = Window(start, start + width)
        self.draw()

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the moment that was clicked."""
        column = event.x - label_width(self.size.width) - 1
        if column < 0 or not self.timeline.steps:
            return
        sight = self.sight
        at = sight.start + (column + 0.5) * (sight.end - sight.start) / self.columns
        self.move_to(bisect_left(self.timeline.anchors, at) - 1)

    # Drawing

    def render_line(self, y: int) -> Strip:
        if y >= len(self._rows):
            return Strip.blank(self.size.width, self.rich_style)
        strip = self._strips.get(y)
        if strip is None:
            strip = self._strips[y] = self._strip(self._rows[y])
        steps, row = self.timeline.steps, self._rows[y]
        if not steps or not row.cells:
            return strip
        place = self.sight.column(steps[self.cursor].at, len(row.cells))
        x = label_width(self.size.width) + 1 + place
        text, fg, bg = row.cells[place]
        if text in _LOW:
            mark = Segment("│", self._style_of("text", ""))
        elif text in _HIGH and not cast("ThemedApp", self.app).no_color:
            mark = Segment("│", self._style_of("ink", fg))
        else:
            mark = Segment(text, self._style_of(fg, bg) + Style(reverse=True))
        return Strip.join([strip.crop(0, x), Strip([mark], 1), strip.crop(x + 1)])

    def _strip(self, row: PictureRow) -> Strip:
        """Make the segments of a row: cells of one look beside each other are one."""
        label = f"{row.label:>{label_width(self.size.width)}} "
        segments = [Segment(label, self._style_of(row.role, ""))]
        text, look = "", ("", "")
        for letter, fg, bg in row.cells:
            if (fg, bg) != look and text:
                segments.append(Segment(text, self._style_of(*look)))
                text = ""
            text, look = text + letter, (fg, bg)
        segments.append(Segment(text, self._style_of(*look)))
        return Strip(segments, len(label) + len(row.cells)).adjust_cell_length(
            self.size.width, self.rich_style
        )

    def _style_of(self, role: str, behind: str) -> Style:
        style = self._cell_styles.get((role, behind))
        if style is None:
            style = self.rich_style + Style(color=self._color(role))
            if behind:
                style += Style(bgcolor=self._color(behind))
            self._cell_styles[role, behind] = style
        return style

    def fill(self, part: str) -> Hue:
        """The color of a part of the context; with CACHED at its end, that of what came from the
        cache."""
        name = part.removesuffix(CACHED)
        color = Hue.from_rich_color(self.get_component_rich_style(f"timeline--{name}").color)
        if not self.shaded:
            return color
        level = _LEVELS[name] if name == part else _LEVELS[name] / _PALE
        return toned(color, self.background_colors[1], level)

    def _color(self, role: str) -> Color | None:
        if role not in self._colors:
            if role.removesuffix(CACHED) in _LEVELS:
                color = self.fill(role).rich_color
            else:
                color = self.get_component_rich_style(f"timeline--{role}", partial=True).color
            self._colors[role] = color
        return self._colors[role]
