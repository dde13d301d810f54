"""A line view of plain text, with long lines wrapped or not; and the colors of output."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import ClassVar

from rich.color import Color
from rich.style import Style
from textual.binding import Binding, BindingType

from tui.core.text_cleaning import clean
from tui.ui.widgets.line_view import LineView, RenderedItem, scrolling
from tui.ui.widgets.markdown.text import Line, Span, chop, line, linked

_SGR = re.compile(r"\x1b\[([0-9;:]*)m")
TAB = 8

_SET: dict[int, Style] = {
    1: Style(bold=True),
    2: Style(dim=True),
    3: Style(italic=True),
    4: Style(underline=True),
    7: Style(reverse=True),
    9: Style(strike=True),
    21: Style(underline=True),
    22: Style(bold=False, dim=False),
    23: Style(italic=False),
    24: Style(underline=False),
    27: Style(reverse=False),
    29: Style(strike=False),
}


def _colour(codes: list[int]) -> Color | None:
    """Return the color after a 38 or 48; takes what it needs off the front of `codes`."""
    mode = codes.pop(0) if codes else 0
    if mode == 5 and codes:
        return Color.from_ansi(min(255, codes.pop(0)))
    if mode == 2 and len(codes) >= 3:
        red, green, blue = (min(255, codes.pop(0)) for _ in range(3))
        return Color.from_rgb(red, green, blue)
    return None


_LINK = Style(underline=True)


@lru_cache(maxsize=1024)
def apply(style: Style, base: Style, parameters: str) -> Style:
    """Return `style` after the parameters of an SGR sequence; a reset goes back to `base`."""
    codes = [int(code[:4]) if code else 0 for code in re.split("[;:]", parameters)]
    while codes:
        code = codes.pop(0)
        if code == 0:
            style = base
        elif code in _SET:
            style += _SET[code]
        elif 30 <= code <= 37 or 90 <= code <= 97:
            style += Style(color=Color.from_ansi(code - 30 if code < 90 else code - 82))
        elif 40 <= code <= 47 or 100 <= code <= 107:
            style += Style(bgcolor=Color.from_ansi(code - 40 if code < 100 else code - 92))
        elif code == 39:
            style += Style(color=base.color)
        elif code == 49:
            style += Style(bgcolor=base.bgcolor)
        elif code in {38, 48}:
            colour = _colour(codes)
            if colour is not None:
                style += Style(color=colour) if code == 38 else Style(bgcolor=colour)
    return style


def coloured(text: str, base: Style) -> list[Span]:
    """Return the spans of a line of output (without its line end), URLs as links; tabs are
    expanded."""
    if text.isascii() and text.isprintable():
        return linked(text, base, _LINK)
    drawn: list[Span] = []
    column = 0
    style = base
    for index, part in enumerate(_SGR.split(text)):
        if index % 2:
            style = apply(style, base, part)
            continue
        bare = clean(part).replace("\n", "")
        if "\t" in bare:
            offset = column % TAB
            bare = (" " * offset + bare).expandtabs(TAB)[offset:]
        if bare:
            drawn += linked(bare, style, _LINK)
            column += len(bare)
    return drawn


def plain(rows: Iterable[str]) -> str:
    """Return lines of output without their escape sequences."""
    base = Style.null()
    return "\n".join("".join(text for text, _ in coloured(row, base)) for row in rows)


PICTURES_KEPT = 512
SIDEWAYS = 8
"""Columns that a key scrolls sideways."""


class TextView(LineView):
    """Each item is one line of a text. A subclass draws it in `_draw`.

    The width of the text is known from the lines that have been visible. Pictures are kept for the
    lines drawn last.
    """

    DEFAULT_CSS = "TextView { overflow-x: auto; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "rows(-1)", "Up", show=False),
        Binding("down,j", "rows(1)", "Down", show=False),
        Binding("left,h", "columns(-1)", "Left", show=False),
        Binding("right,l", "columns(1)", "Right", show=False),
        Binding("g", "edge(-1)", "First", show=False),
        Binding("G", "edge(1)", "Last", show=False),
        Binding("w", "wrap", "Wrap", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._pictures: OrderedDict[int, RenderedItem] = OrderedDict()
        self._wide = 0
        self._wrap = False

    @property
    def wrap(self) -> bool:
        """True if long lines wrap, False if they continue outside the view."""
        return self._wrap

    @wrap.setter
    def wrap(self, wrap: bool) -> None:
        self._wrap = wrap
        self._pictures.clear()
        self._lay()

    # Provided by a subclass

    @property
    def _wraps(self) -> bool:
        """True if long lines are wrapped now."""
        return self._wrap

    def _lay(self) -> None:
        """Set the heights of lines: wrapped, or one row each."""

    def _draw(self, index: int) -> list[Line]:
        """Return the rows of a line, laid with `_laid`."""
        raise NotImplementedError

    # What it looks like

    def _laid(self, spans: Sequence[Span]) -> list[Line]:
        """Return a line of text in one row, or in as many as it takes."""
        return chop(spans, self._width) if self._wraps else [line(spans)]

    def _picture(self, index: int) -> RenderedItem:
        picture = self._pictures.get(index)
        if picture is None:
            picture = self._pictures[index] = RenderedItem(self._draw(index))
            if len(self._pictures) > PICTURES_KEPT:
                self._pictures.popitem(last=False)
        return picture

    def _redraw(self) -> None:
        self._pictures.clear()

    def _breadth(self) -> int:
        return 1 if self._wraps else self._wide  # a scroll bar may still take some of the width

    def _settled(self) -> None:
        if not self._wraps:
            cell_counts = (self._picture(index).lines[0].cells for index, _ in self._viewport.rows)
            self._wide = max(self._wide, *cell_counts, 0)

    def _unroll(self) -> None:
        """Go back to the first column of a text of which nothing is known yet."""
        self._pictures.clear()
        self._wide = 0
        scrolling.reset_x(self)

    # Scrolling

    def watch_scroll_x(self, old_value: float, new_value: float) -> None:
        for picture in self._pictures.values():
            picture.strips.clear()
        super().watch_scroll_x(old_value, new_value)

    def action_wrap(self) -> None:
        """Wrap long lines, or stop wrapping them."""
        self.wrap = not self.wrap
        scrolling.reset_x(self)
        self._settle()

    def action_columns(self, step: int) -> None:
        """Scroll some columns sideways."""
        self.scroll_to(x=self.scroll_x + SIDEWAYS * step, animate=False)
