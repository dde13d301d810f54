"""A field for an answer in words, in a dialog."""

from __future__ import annotations

from typing import ClassVar, Final

from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.reactive import reactive

from tui.core.dataclass import dataclass
from tui.ui.widgets.keys import FIELD_KEYS, bindings
from tui.ui.widgets.prompt_areas import KillRingArea

MAX_ROWS: Final = 6
NEW_LINE: Final = ("ctrl+j", "new line")
"""The hint for the foot of a dialog; all terminals send this key."""


class AnswerField(KillRingArea):
    """Takes several lines and grows with them; Enter sends. A long paste is one word in it, as in
    the prompt."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(FIELD_KEYS)]

    DEFAULT_CSS = f"""
    AnswerField, AnswerField:focus {{
        width: 1fr; height: auto; max-height: {MAX_ROWS}; border: none; padding: 0 1;
        background: $background; background-tint: $background 0%; scrollbar-size-vertical: 1;
    }}
    AnswerField .text-area--cursor-line {{ background: transparent; }}
    AnswerField .text-area--placeholder {{ color: $text-muted; }}
    """

    cursor_blink = reactive(False, init=False)

    @dataclass
    class Entered(Message):
        """The person pressed Enter."""

        text: str

    def __init__(self, placeholder: str, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.placeholder = placeholder

    def on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            self.post_message(self.Entered(self.value.strip()))

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.add_paste(event.text)

    def action_newline(self) -> None:
        self._replace_via_keyboard("\n", *self.selection)
