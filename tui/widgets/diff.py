"""A unified diff in colour. The text is shown as it is, never as markup, and never cut off."""

from __future__ import annotations

from rich.cells import cell_len, chop_cells
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from tui.widgets.plain import visible

LINES = 2000
"""Lines that are drawn; the rest is counted."""

_STYLES = {"+": "$text-success on $success-muted", "-": "$text-error on $error-muted"}


def diff_rows(diff: str, width: int) -> list[Content]:
    """The rows of a diff, each exactly `width` cells: long lines go on in the next row."""
    lines = visible(diff).removesuffix("\n").split("\n")
    rows: list[Content] = []
    for line in lines[:LINES]:
        pieces = chop_cells(line, width) or [""]
        padded = (piece + " " * (width - cell_len(piece)) for piece in pieces)
        rows += [Content.styled(piece, _style(line)) for piece in padded]
    if len(lines) > LINES:
        rows.append(Content.styled(f"… and {len(lines) - LINES:,} more lines", "$text-muted"))
    return rows


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


class DiffView(Widget):
    """As high as its diff is at its width."""

    DEFAULT_CSS = """
    DiffView { width: 1fr; height: auto; }
    """

    def __init__(self, diff: str) -> None:
        super().__init__()
        self._diff = diff

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return len(diff_rows(self._diff, max(1, width)))

    def render(self) -> Content:
        return Content("\n").join(diff_rows(self._diff, max(1, self.content_size.width)))
