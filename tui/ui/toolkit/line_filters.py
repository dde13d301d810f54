"""Filters of all that is drawn: on the Linux console what it can't draw is drawn with what it can;
without colors (NO_COLOR) what they marked is reversed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

from tui.ui.toolkit import themes

STANDS_OUT = 2.0
"""Contrast (WCAG, 1 to 21) from which a background carries meaning: it marks a place."""

SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

ALIKE: Final[Mapping[str, str]] = {
    "✓": "+", "◆": "■", "◇": "·", "▌": "┃", "▐": "┃", "▓": "#", "▞": "=", "▀": "█", "▄": "█",
    **dict.fromkeys("▁▂▃", "_"), **dict.fromkeys("▅▆▇", "█"),
    **dict(zip("○◌◦◍◐▪▚▏▎✂⋯⌕↪↻‖⏎", "o·o**■%│┃x…/→»║¶", strict=True)),
    **dict(zip(SPINNER, "|/-\\" * 3, strict=False)),
}  # fmt: skip
"""Characters that none of Debian's console fonts has (console-setup 1.221: Fixed, Terminus and VGA,
Lat15 and Uni2), and those of the same width that all of them have."""

_TABLE = str.maketrans(dict(ALIKE))


class ConsoleGlyphs(LineFilter):
    """Exchanges them in everything that is drawn, and leaves out links, whose code older consoles
    draw too."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002
        return [
            segment
            if text.isascii() and not (style and style.link)
            else Segment(text.translate(_TABLE), style and style.update_link(None), control)
            for segment in segments
            for text, style, control in (segment,)
        ]


class Colourless(LineFilter):
    """Removes every color (NO_COLOR); a background that marked something becomes reverse."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            Segment(text, style and colourless(style, background), control)
            for text, style, control in segments
        ]


@lru_cache(2048)
def colourless(style: Style, background: Color) -> Style:
    """Return a style without its colors, on a widget with this background."""
    marks = style.bgcolor is not None and not style.bgcolor.is_default
    marks = (
        marks and themes.contrast(Color.from_rich_color(style.bgcolor), background) >= STANDS_OUT
    )
    return Style(
        bold=style.bold,
        dim=style.dim,
        italic=style.italic,
        underline=style.underline,
        strike=style.strike,
        reverse=style.reverse or marks or None,
        link=style.link,
        meta=style.meta or None,
    )


COLOURLESS: Final = Colourless()
CONSOLE: Final = ConsoleGlyphs()
