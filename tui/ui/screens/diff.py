"""/diff: one scrollable diff of all that a session changed."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll

from tui.ui.widgets.dialog import SCROLL, Dialog
from tui.ui.widgets.diff import DiffView


class DiffScreen(Dialog[None]):
    """Closed by Esc, q or Enter; `y` copies the diff."""

    DEFAULT_CSS = """
    DiffScreen #box { width: 96%; background: $background; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,ctrl+c", "dismiss", "close", show=False),
        Binding("y", "copy", "copy", show=False),
        Binding("j", "scroll(1)", show=False),
        Binding("k", "scroll(-1)", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#box"

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title, self.text = title, text

    def compose(self) -> ComposeResult:
        box = VerticalScroll(can_focus=True)
        with self.framed(box, self._title, SCROLL, ("y", "copy"), ("esc", "close")):
            yield DiffView(self.text)

    def action_scroll(self, rows: int) -> None:
        self.query_one("#box").scroll_relative(y=rows, animate=False)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self.text)  # pyright: ignore[reportUnknownMemberType]
        self.show_keys(("y", "copied"), ("esc", "close"))
