"""One line to type: the title of a session, say."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static


class AskText(ModalScreen[str | None]):
    """Dismissed with what was typed, in one line; None for Esc or for nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,ctrl+c", "leave", "back", show=False)]
    AUTO_FOCUS: ClassVar[str | None] = "#text"

    DEFAULT_CSS = """
    AskText { align: center middle; background: $background 55%; }
    AskText #box {
        width: 76; max-width: 96%; height: auto; background: $surface;
        border: round $primary; padding: 1 2;
        border-title-color: $text-primary; border-title-style: bold;
    }
    AskText #text, AskText #text:focus {
        border: none; height: 1; padding: 0 1; background: $background;
        background-tint: $background 0%;
    }
    AskText #keys { height: 1; margin: 1 0 0 0; }
    """

    def __init__(self, title: str, value: str = "") -> None:
        super().__init__()
        self._title = title
        self._value = value

    def compose(self) -> ComposeResult:
        with Vertical(id="box") as box:
            box.border_title = Content(self._title)
            field = Input(self._value, id="text")
            field.cursor_blink = False
            yield field
            keys = Content.assemble(
                ("enter", "$text-accent"), (" keep it   ", "$text-muted"),
                ("esc", "$text-accent"), (" back", "$text-muted"),
            )  # fmt: skip
            yield Static(keys, id="keys", markup=False)

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        self.dismiss(" ".join(event.value.split()) or None)

    def action_leave(self) -> None:
        self.dismiss(None)
