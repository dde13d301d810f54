"""A line view of plain text: its lines go on out of sight to the side, or wrap."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from tui.ui.widgets.line_view import LineView, Picture, scrolling
from tui.ui.widgets.markdown.text import Line, Span, chop, line

PICTURES_KEPT = 512
SIDEWAYS = 8
"""Columns that a key goes to the side."""


class TextView(LineView):
    """Each item is one line of a text. A subclass says in `_draw` what it looks like.

    How wide the text is, is known of what has been in sight. Pictures are kept of the lines that
    were drawn last.
    """

    DEFAULT_CSS = """
    TextView { overflow-x: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "rows(-1)", "Up", show=False),
        Binding("down,j", "rows(1)", "Down", show=False),
        Binding("left,h", "columns(-1)", "Left", show=False),
        Binding("right,l", "columns(1)", "Right", show=False),
        Binding("w", "wrap", "Wrap", show=False),
    ]

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._pictures: OrderedDict[int, Picture] = OrderedDict()
        self._wide = 0
        self._wrap = False

    @property
    def wrap(self) -> bool:
        """Whether long lines go on in the next row, or out of sight."""
        return self._wrap

    @wrap.setter
    def wrap(self, wrap: bool) -> None:
        self._wrap = wrap
        self._pictures.clear()

    # What a subclass says

    def _draw(self, index: int) -> list[Line]:
        """The rows of a line, laid with `_laid`."""
        raise NotImplementedError

    # What it looks like

    def _laid(self, spans: Sequence[Span]) -> list[Line]:
        """A line of text in one row, or in as many as it takes."""
        return chop(spans, self._width) if self.wrap else [line(spans)]

    def _picture(self, index: int) -> Picture:
        picture = self._pictures.get(index)
        if picture is None:
            picture = self._pictures[index] = Picture(self._draw(index))
            if len(self._pictures) > PICTURES_KEPT:
                self._pictures.popitem(last=False)
        return picture

    def _redraw(self) -> None:
        self._pictures.clear()

    def _breadth(self) -> int:
        return 1 if self.wrap else self._wide  # the width may give way to a scroll bar yet

    def _settled(self) -> None:
        if not self.wrap:
            seen = (self._picture(index).lines[0].cells for index, _ in self._viewport.rows)
            self._wide = max(self._wide, *seen, 0)

    def _unroll(self) -> None:
        """Back to the first column, of a text of which nothing is known yet."""
        self._pictures.clear()
        self._wide = 0
        scrolling.reset_x(self)

    # Scrolling

    def watch_scroll_x(self, old_value: float, new_value: float) -> None:
        for picture in self._pictures.values():
            picture.strips.clear()
        super().watch_scroll_x(old_value, new_value)

    def action_wrap(self) -> None:
        """Let long lines go on in the next row, or out of sight again."""
        self.wrap = not self.wrap
        scrolling.reset_x(self)
        self._settle()

    def action_columns(self, step: int) -> None:
        """Some columns to the side."""
        self.scroll_to(x=self.scroll_x + SIDEWAYS * step, animate=False)
