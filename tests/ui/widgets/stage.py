"""An app that holds one widget, in one of the program's own themes or of Textual's."""

from __future__ import annotations

from pathlib import Path

from textual.app import App, ComposeResult
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from tui.ui.toolkit import themes
from tui.ui.widgets.conversation.view import ConversationView
from tui.ui.widgets.file_viewer.pane import FilePane


class Stage(App[None]):
    """`heard` keeps what a conversation said; the widget has the focus."""

    CSS = "Screen { background: $background; }"
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, widget: Widget, theme: str = "midnight") -> None:
        super().__init__()
        self.widget = widget
        self.heard: list[Message] = []
        self._name = theme

    def compose(self) -> ComposeResult:
        yield self.widget

    def on_mount(self) -> None:
        if self._name not in self.available_themes:
            self.register_theme(themes.load(self._name, Path("/nonexistent")).theme)
        self.theme = self._name
        self.widget.focus()

    def on_conversation_view_item_selected(self, message: ConversationView.ItemSelected) -> None:
        self.heard.append(message)

    def rows(self) -> list[str]:
        """The text on the screen."""
        size = self.widget.size
        strips = self.widget.render_lines(size.region)
        return [strip.text.rstrip() for strip in strips]


def search_status(pane: FilePane) -> str:
    """What the row for searching says."""
    return str(pane.query(".search Static").last(Static).render())
