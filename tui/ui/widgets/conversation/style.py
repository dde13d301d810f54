"""The conversation's style names and their rules, and helpers to lay out an item's parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.style import Style
from textual.widget import Widget

from tui.ui.widgets import markdown
from tui.ui.widgets.markdown.text import Line, Styles, decoration, prefixed

STYLE_RULES: dict[str, str] = {
    "you-text": "color: $text;",
    "you-bar": "color: $primary;",
    "queued": "color: $text-muted;",
    "queued-bar": "color: $text-muted;",
    "reply": "color: $text-accent;",
    "thinking": "color: $text-muted; text-style: italic;",
    "fold": "color: $text-muted;",
    "tool": "color: $text-primary;",
    "label": "color: $text;",
    "number": "color: $text-accent;",
    "detail": "color: $text-muted;",
    "rail": "color: $text-muted 60%;",
    "running": "color: $text-accent;",
    "ok": "color: $text-success;",
    "warning": "color: $text-warning;",
    "error": "color: $text-error;",
    "info": "color: $text-muted;",
    "badge": "color: $text-warning;",
    "added": "color: $text-success; background: $success 12%;",
    "removed": "color: $text-error; background: $error 12%;",
    "added-word": "color: $text; background: $success 38%;",
    "removed-word": "color: $text; background: $error 38%;",
    "hunk": "color: $text-muted;",
    "match": "color: $text; background: $warning-muted;",
    "hit": "color: $background; background: $text-warning; text-style: bold;",
    "cursor": "color: $accent; text-style: bold;",
    "pill": "color: $text; background: $primary-muted; text-style: bold;",
}

_OF_DIFFS = (
    *("added", "removed", "added-word", "removed-word"),
    *("label", "rail", "tool", "hunk", "fold"),
)
DIFF_RULES = {name: STYLE_RULES[name] for name in _OF_DIFFS}
"""The styles of diffs."""


def components(rules: Iterable[str]) -> set[str]:
    """Return the component classes of these names."""
    return {f"conversation--{name}" for name in rules}


def css(selector: str, rules: Mapping[str, str]) -> str:
    """Return the rules as nested CSS for the widget `selector`."""
    return markdown.css(selector, rules, prefix="conversation")


def styles(widget: Widget, rules: Iterable[str]) -> dict[str, Style]:
    """Return the style of every name, prefixed with `c-`; markdown's have no prefix."""
    return {f"c-{name}": widget.get_component_rich_style(f"conversation--{name}") for name in rules}


def railed(rows: list[Line], styles: Styles, look: Style) -> list[Line]:
    """Return the inside of an item after a rail; lines beyond the limit are counted."""
    if len(rows) > BODY_MAX:
        more = f"… +{len(rows) - BODY_MAX:,} lines"
        rows = [*rows[:BODY_MAX], decoration([(more, styles["c-fold"])])]
    rail = [("   ", look), ("│ ", styles["c-rail"])]
    return [prefixed(row, rail) for row in rows]


MARGIN = 3
BODY_MAX = 400
"""Lines drawn of an item's inside; the rest is counted."""


def inner(width: int) -> int:
    """Return the cells for an item's text: there is a margin on both sides."""
    return max(8, width - MARGIN - 1)
