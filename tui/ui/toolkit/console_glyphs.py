"""Draws what the fonts of the Linux console lack with what they have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

ALIKE: Final[Mapping[str, str]] = {
    "✓": "+", "◆": "■", "◇": "·", "▌": "┃", "▐": "┃", "▓": "▒", "▀": "█", "▄": "█",
    **dict.fromkeys("▁▂▃", "_"), **dict.fromkeys("▅▆▇", "█"),
    **dict(zip(SPINNER, "|/-\\" * 3, strict=False)),
}  # fmt: skip
"""Characters that none of Debian's console fonts has (console-setup 1.221: Fixed, Terminus and VGA,
Lat15 and Uni2), and those of the same width that all of them have."""

_TABLE = str.maketrans(dict(ALIKE))


class ConsoleGlyphs(LineFilter):
    """Exchanges them in everything that is drawn."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002
        return [
            segment
            if segment.text.isascii()
            else Segment(segment.text.translate(_TABLE), *segment[1:])
            for segment in segments
        ]
