"""A unified diff in colour. The text is shown as it is, never as markup."""

from __future__ import annotations

from rich.cells import cell_len
from textual.content import Content

from tui.widgets.plain import visible

LINES = 2000
"""Lines that are drawn; the rest is counted."""

_STYLES = {"+": "$text-success on $success-muted", "-": "$text-error on $error-muted"}


def diff_content(diff: str) -> Content:
    """One content line per diff line, all equally wide: changes tinted, hunk marks coloured."""
    lines = visible(diff).removesuffix("\n").split("\n")
    width = max((cell_len(line) for line in lines[:LINES]), default=0)
    shown = [
        Content.styled(line + " " * (width - cell_len(line)), _style(line))
        for line in lines[:LINES]
    ]
    if more := len(lines) - len(shown):
        shown.append(Content.styled(f"… and {more:,} more lines", "$text-muted"))
    return Content("\n").join(shown)


def _style(line: str) -> str:
    if line.startswith(("+++", "---")):
        return "bold $foreground"
    if line.startswith("@@"):
        return "$text-secondary"
    return _STYLES.get(line[:1], "$text-muted")


def counts(diff: str) -> str:
    """+3 −1: added and removed lines."""
    body = [line for line in diff.split("\n") if not line.startswith(("+++", "---"))]
    added = sum(line.startswith("+") for line in body)
    return f"+{added} −{sum(line.startswith('-') for line in body)}"
