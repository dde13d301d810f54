"""Markdown as text for a pager or a pipe: without colors; at most, headings and code are bold."""

from __future__ import annotations

import re

from rich.color import ColorSystem
from rich.style import Style

from tui.ui.widgets.markdown.document import render
from tui.ui.widgets.markdown.text import RULES

_STYLES = dict.fromkeys(RULES, Style()) | {
    "h1": Style(bold=True, underline=True),
    "h2": Style(bold=True),
    "h3": Style(bold=True),
    "strong": Style(bold=True),
    "em": Style(italic=True),
    "link": Style(underline=True),
    "code": Style(bold=True),
    "head": Style(bold=True),
}
_LANGUAGE = re.compile(r"^```\w+$", re.MULTILINE)


def terminal_text(markdown: str, width: int, *, styled: bool) -> str:
    """Return the text in lines of at most `width` cells. If `styled`, headings and code are bold;
    otherwise a heading keeps its `#`."""
    lines: list[str] = []
    for line in render(_LANGUAGE.sub("```", markdown), _STYLES, width):
        if line.source == "" and line.text.startswith("├"):
            continue  # a rule between two rows; the one under the head has a source
        if styled:
            parts = [
                (s.style or Style()).render(s.text, color_system=ColorSystem.STANDARD)
                for s in line.segments
            ]
            lines.append("".join(parts).rstrip())
        else:
            mark = line.lead if line.lead.startswith("#") else ""
            lines.append((mark + line.text).rstrip())
    return "\n".join(lines) + "\n"
