"""/diff: one scrollable diff of all that a session changed."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen

from tui.widgets.diff import DiffView


class DiffScreen(ModalScreen[None]):
    """Closed by Esc, q or Enter; `y` copies the diff."""

    DEFAULT_CSS = """
    DiffScreen { align: center middle; background: $background 55%; }
    DiffScreen #box {
        width: 96%; height: 96%; background: $background; border: round $primary; padding: 0 1;
        border-title-color: $text-primary; border-title-style: bold;
        border-subtitle-color: $text-muted; scrollbar-size-vertical: 1;
    }
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
        with VerticalScroll(id="box", can_focus=True) as box:
            box.border_title = Content(self._title)
            box.border_subtitle = Content("y copies · esc closes")
            yield DiffView(self.text)

    def action_scroll(self, rows: int) -> None:
        self.query_one("#box").scroll_relative(y=rows, animate=False)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self.text)  # pyright: ignore[reportUnknownMemberType]
        self.query_one("#box").border_subtitle = Content("copied · esc closes")
