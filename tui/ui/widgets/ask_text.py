"""One line to type: the title of a session, say."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input

from tui.ui.widgets.dialog import Dialog


class AskText(Dialog[str | None]):
    """Dismissed with what was typed, in one line; None for Esc or for nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,ctrl+c", "leave", "back", show=False)]
    AUTO_FOCUS: ClassVar[str | None] = "#text"

    DEFAULT_CSS = """
    AskText #text, AskText #text:focus {
        border: none; height: 1; padding: 0 1; background: $background;
        background-tint: $background 0%;
    }
    """

    def __init__(self, title: str, value: str = "") -> None:
        super().__init__(classes="-question")
        self._title = title
        self._value = value

    def compose(self) -> ComposeResult:
        keys = (("enter", "keep"), ("esc", "back"))
        with self.framed(Vertical(), self._title, *keys):
            field = Input(self._value, id="text")
            field.cursor_blink = False
            yield field

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        self.dismiss(" ".join(event.value.split()) or None)

    def action_leave(self) -> None:
        self.dismiss(None)
