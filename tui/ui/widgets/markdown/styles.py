"""The names of the styles that markdown is drawn with, and how they follow from the theme.

A widget that draws markdown adds `COMPONENTS` to its component classes and `css(selector)` to its
DEFAULT_CSS; `styles(widget)` then gives every name's style. A style sheet may restyle any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from rich.style import Style

if TYPE_CHECKING:
    from textual.widget import Widget

Styles: TypeAlias = Mapping[str, Style]

RULES: dict[str, str] = {
    "text": "color: $text;",
    "muted": "color: $text-muted;",
    "h1": "color: $text-primary; text-style: bold underline;",
    "h2": "color: $text-primary; text-style: bold;",
    "h3": "color: $text-accent; text-style: bold;",
    "h4": "color: $text; text-style: bold;",
    "strong": "text-style: bold;",
    "em": "text-style: italic;",
    "strike": "text-style: strike;",
    "link": "color: $text-accent; text-style: underline;",
    "code": "color: $text-secondary; background: $surface;",
    "bullet": "color: $text-primary;",
    "done": "color: $text-success;",
    "quote": "color: $text-muted; text-style: italic;",
    "bar": "color: $primary;",
    "border": "color: $text-muted 60%;",
    "head": "color: $text-primary; text-style: bold;",
    "fence": "color: $text; background: $surface;",
    "label": "color: $text-muted; background: $surface;",
    "keyword": "color: $text-accent; background: $surface;",
    "name": "color: $text-primary; background: $surface;",
    "builtin": "color: $text-secondary; background: $surface;",
    "string": "color: $text-success; background: $surface;",
    "number": "color: $text-secondary; background: $surface;",
    "comment": "color: $text-muted; background: $surface; text-style: italic;",
    "invalid": "color: $text-error; background: $surface;",
    "added": "color: $text-success; background: $surface;",
    "removed": "color: $text-error; background: $surface;",
}
_OVERLAYS = frozenset({"strong", "em", "strike", "link"})
"""Laid over the style of the text around them, as is "code"."""

COMPONENTS = {f"markdown--{name}" for name in RULES}


def css(selector: str) -> str:
    """The rules as nested CSS for the widget `selector`."""
    rules = "\n".join(f"    & > .markdown--{name} {{ {rule} }}" for name, rule in RULES.items())
    return f"{selector} {{\n{rules}\n}}\n"


def styles(widget: Widget) -> dict[str, Style]:
    """Every name's style as it is for `widget` now; ask again when its styles are updated."""
    found = {
        name: widget.get_component_rich_style(f"markdown--{name}", partial=name in _OVERLAYS)
        for name in RULES
    }
    found["code"] = Style(color=found["code"].color, bgcolor=found["code"].bgcolor)
    return found
