"""An answer to choose: a key and a few words, for the mouse and for Tab or arrows and Enter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widget import Widget


class Choice(Widget, can_focus=True):
    """One row high. Posts `Chosen` when it is clicked, or entered while it has the focus."""

    DEFAULT_CSS = """
    Choice {
        width: auto; height: 1; padding: 0 1; margin: 0 1 0 0;
        background: $panel; color: $foreground; pointer: pointer;
    }
    Choice:hover { background: $primary-muted; }
    Choice:focus { background: $primary; color: $background; text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,space", "choose", show=False),
        Binding("left", "app.focus_previous", show=False),
        Binding("right", "app.focus_next", show=False),
    ]

    @dataclass
    class Chosen(Message):
        """`name` is the choice's."""

        name: str

    def __init__(self, key: str, label: str, name: str) -> None:
        super().__init__(name=name, id=name)
        self._key, self._label = key, label

    def render(self) -> Content:
        style = "" if self.has_focus else "$text-accent"
        return Content.assemble((self._key, style), f" {self._label}")

    def action_choose(self) -> None:
        self.post_message(self.Chosen(self.name or ""))

    def on_click(self) -> None:
        self.action_choose()
