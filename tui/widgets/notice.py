"""One line above the prompt for a word to the person: a mistyped command, a failed turn."""

from __future__ import annotations

from typing import Literal, TypeAlias

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from tui.widgets.plain import one_line

Kind: TypeAlias = Literal["info", "warning", "error", "success"]

_MARKS: dict[Kind, tuple[str, str]] = {
    "info": ("·", "$text-secondary"),
    "success": ("✓", "$text-success"),
    "warning": ("!", "$text-warning"),
    "error": ("✗", "$text-error"),
}


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

    def render(self) -> Content:
        return self.content
