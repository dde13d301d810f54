"""A unified diff as a widget, drawn as in the conversation: what is asked about, or all changes."""

from __future__ import annotations

from typing import ClassVar

from textual.geometry import Size
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from tui.core.text_cleaning import visible
from tui.ui.widgets.conversation import style
from tui.ui.widgets.conversation.diff import draw_diff
from tui.ui.widgets.conversation.selection import copied
from tui.ui.widgets.line_view import strips
from tui.ui.widgets.markdown.text import Line

LINES = 2_000
"""Lines that are drawn; the rest is counted."""


def counts(diff: str) -> str:
    """+3 −1: added and removed lines."""
    body = [line for line in diff.split("\n") if not line.startswith(("+++", "---"))]
    added = sum(line.startswith("+") for line in body)
    return f"+{added} −{sum(line.startswith('-') for line in body)}"


class DiffView(Widget):
    """As high as its diff is at its width. What could hide in the text is spelt out in it."""

    ALLOW_SELECT = True
    COMPONENT_CLASSES: ClassVar[set[str]] = style.COMPONENTS
    DEFAULT_CSS = "DiffView { width: 1fr; height: auto; background: $background; }\n" + style.css(
        "DiffView"
    )

    def __init__(self, diff: str) -> None:
        super().__init__()
        self._diff = diff
        self._lines: list[Line] = []
        self._width = 0

    def lines(self, width: int) -> list[Line]:
        """What is drawn in `width` cells."""
        if width != self._width or not self._lines:
            self._width = width
            look = style.styles(self)
            self._lines = draw_diff(visible(self._diff), width, look, names=True, rows_max=LINES)
        return self._lines

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return len(self.lines(max(8, width)))

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._lines = []

    def render_line(self, y: int) -> Strip:
        width = max(8, self.content_size.width)
        lines = self.lines(width)
        if y >= len(lines):
            return Strip.blank(width, self.rich_style)
        line, selection = lines[y], self.text_selection
        span = selection.get_span(y) if selection is not None else None
        if span is not None:
            line = strips.selected(line, span, self.selection_style)
        return strips.make(line, width, self.rich_style).apply_offsets(0, y)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        start, end = selection
        last = (end.y, end.x) if end else (len(self._lines), 1 << 30)
        return copied(self._lines, (start.y, start.x) if start else (0, 0), last), "\n"
