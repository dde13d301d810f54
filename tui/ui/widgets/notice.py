"""One line above the prompt for a word to the person: a mistyped command, a failed turn."""

from __future__ import annotations

from typing import Literal, TypeAlias

from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive
from textual.widget import Widget

from tui.core.text_cleaning import one_line

Kind: TypeAlias = Literal["info", "warning", "error", "success"]

_MARKS: dict[Kind, tuple[str, str]] = {
    "info": ("·", "$text-secondary"),
    "success": ("✓", "$text-success"),
    "warning": ("!", "$text-warning"),
    "error": ("✗", "$text-error"),
}
_MARK = 2
"""The cells of a mark."""


class NoticeLine(Widget):
    """Hidden when there is nothing to say. At most three rows; the text is never markup."""

    DEFAULT_CSS = """
    NoticeLine { height: auto; max-height: 3; width: 1fr; padding: 0 1; display: none; }
    NoticeLine.-shown { display: block; }
    """

    content: reactive[Content] = reactive(Content(""), layout=True)

    def say(self, text: str, kind: Kind = "info", *, hint: str = "") -> None:
        """Show a text until the next one, or until `clear`."""
        glyph, style = _MARKS[kind]
        self.content = Content.assemble(
            (f"{glyph} ", f"bold {style}"),
            (one_line(text), style if kind in {"warning", "error"} else "$foreground"),
            (f" {one_line(hint)}" if hint else "", "$text-muted"),
        )
        self.add_class("-shown")

    def clear(self) -> None:
        self.remove_class("-shown")

    @property
    def text(self) -> str:
        """What is shown now, "" when nothing is."""
        return self.content.plain if self.has_class("-shown") else ""

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return len(self._rows(width))

    def render(self) -> Content:
        return Content("\n").join(self._rows(self.content_size.width))

    def _rows(self, width: int) -> list[Content]:
        """What is said, beside its mark."""
        mark, said = self.content[:_MARK], self.content[_MARK:]
        rows = said.wrap(max(8, width - _MARK))
        beside = Content(" " * _MARK)
        return [Content.assemble(beside if at else mark, row) for at, row in enumerate(rows)]
