"""The conversation's style names and their rules; see `tui.widgets.markdown.styles`."""

from __future__ import annotations

from rich.style import Style
from textual.widget import Widget

from tui.widgets import markdown

RULES: dict[str, str] = {
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

COMPONENTS = {f"conversation--{name}" for name in RULES} | markdown.COMPONENTS


def css(selector: str) -> str:
    """The rules as nested CSS for the widget `selector`."""
    rules = "\n".join(f"    & > .conversation--{name} {{ {rule} }}" for name, rule in RULES.items())
    plain = "\n".join(  # a terminal's sixteen colours have no tints
        f"    &:ansi > .conversation--{name} {{ background: transparent; }}"
        for name in ("added", "removed", "match")
    )
    plain += "".join(
        f"\n    &:ansi > .conversation--{name}-word {{ background: transparent;"
        f" color: {colour}; text-style: bold underline; }}"
        for name, colour in (("added", "$text-success"), ("removed", "$text-error"))
    )
    return f"{selector} {{\n{rules}\n{plain}\n}}\n" + markdown.css(selector)


def styles(widget: Widget) -> dict[str, Style]:
    """Every name's style, markdown's under its own names, the conversation's behind `c-`."""
    own = {f"c-{name}": widget.get_component_rich_style(f"conversation--{name}") for name in RULES}
    return markdown.styles(widget) | own
