"""One line of a program's output → spans: its colours kept, every other control removed."""

from __future__ import annotations

import re
from functools import lru_cache

from rich.color import Color
from rich.style import Style

from tui.core.text_cleaning import clean
from tui.ui.widgets.markdown.text import Span

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
    """The colour behind a 38 or 48; takes what it needs off the front of `codes`."""
    mode = codes.pop(0) if codes else 0
    if mode == 5 and codes:
        return Color.from_ansi(min(255, codes.pop(0)))
    if mode == 2 and len(codes) >= 3:
        red, green, blue = (min(255, codes.pop(0)) for _ in range(3))
        return Color.from_rgb(red, green, blue)
    return None


@lru_cache(maxsize=1024)
def apply(style: Style, base: Style, parameters: str) -> Style:
    """`style` after the parameters of an SGR sequence; `base` is what a reset goes back to."""
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


def spans(text: str, base: Style) -> list[Span]:
    """The spans of a line of output (without its line end); tabs are expanded."""
    if text.isascii() and text.isprintable():
        return [(text, base)] if text else []
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
            drawn.append((bare, style))
            column += len(bare)
    return drawn
