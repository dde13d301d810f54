"""Draws what the Linux console can't draw with what it can."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

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
