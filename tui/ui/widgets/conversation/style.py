"""The conversation's style names and their rules, and the places of an item's parts."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rich.style import Style
from textual.widget import Widget

from tui.ui.widgets import markdown

STYLE_RULES: dict[str, str] = {
    "you": "color: $text-primary; text-style: bold;",
    "you-text": "color: $text;",
    "you-bar": "color: $primary;",
    "queued": "color: $text-muted;",
    "queued-bar": "color: $text-muted;",
    "reply": "color: $text-accent;",
    "thinking": "color: $text-muted; text-style: italic;",
    "fold": "color: $text-muted;",
    "tool": "color: $text-primary;",
    "label": "color: $text;",
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

OF_DIFFS = (
    *("added", "removed", "added-word", "removed-word"),
    *("label", "rail", "tool", "hunk", "fold"),
)
"""What a diff is drawn with."""

COMPONENTS = {f"conversation--{name}" for name in STYLE_RULES} | markdown.COMPONENTS
COMPONENTS_OF_DIFFS = {f"conversation--{name}" for name in OF_DIFFS}


def css(selector: str) -> str:
    """The rules as nested CSS for the widget `selector`."""
    return _css(selector, STYLE_RULES) + markdown.css(selector)


def css_of_diffs(selector: str) -> str:
    """The same, of what a diff is drawn with."""
    return _css(selector, OF_DIFFS)


def _css(selector: str, names: Collection[str]) -> str:
    rules = "\n".join(f"    & > .conversation--{name} {{ {STYLE_RULES[name]} }}" for name in names)
    return f"{selector} {{\n{rules}\n}}\n"


def styles(widget: Widget) -> dict[str, Style]:
    """Every name's style, markdown's under its own names, the conversation's behind `c-`."""
    return markdown.styles(widget) | _styles(widget, STYLE_RULES)


def styles_of_diffs(widget: Widget) -> dict[str, Style]:
    """The same, of what a diff is drawn with."""
    return _styles(widget, OF_DIFFS)


def _styles(widget: Widget, names: Iterable[str]) -> dict[str, Style]:
    return {f"c-{name}": widget.get_component_rich_style(f"conversation--{name}") for name in names}


MARGIN = 3
BODY_MAX = 400
"""Lines of an item's inside that are drawn; the rest is counted."""


def inner(width: int) -> int:
    """The cells that an item's text gets: a margin on both sides."""
    return max(8, width - MARGIN - 1)
