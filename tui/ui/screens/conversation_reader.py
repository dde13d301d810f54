"""The screen of a conversation that is only read: a sub-agent's, another session's."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from tui.ui.screens.table_screen import whole_words
from tui.ui.toolkit.base_screen import BaseScreen
from tui.ui.widgets.conversation.view import ConversationView
from tui.ui.widgets.keys import Keys, in_rows
from tui.ui.widgets.panes import PaneRule


class ConversationReader(BaseScreen, Screen[None]):  # pyright: ignore[reportIncompatibleMethodOverride] - Textual's own arrange
    """A title, a conversation and its keys. Closed by Esc or q."""

    CSS_PATH = "conversation_reader.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "back", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "ConversationView"

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield ConversationView(id="read-conversation")
        yield PaneRule(id="keys-rule")
        yield Static(id="keys", markup=False)

    @property
    def view(self) -> ConversationView:
        return self.query_one(ConversationView)

    def on_resize(self) -> None:
        self.show_head()

    def head(self) -> tuple[str, str, Keys]:
        """Return the name of the conversation, what is to know of it, and the keys."""
        raise NotImplementedError

    def show_head(self) -> None:
        """Draw the title and the keys."""
        width = self.size.width
        name, facts, keys = self.head()
        title = Content.assemble(
            (whole_words(name, max(20, width // 2)), "bold"), (f"  {facts}", "$text-muted")
        )
        self.query_one("#title", Static).update(title)
        self.query_one("#keys", Static).update(in_rows(keys, width - 2, rows=1))

    def on_conversation_view_item_selected(self, event: ConversationView.ItemSelected) -> None:
        event.stop()  # its outputs are not the chat's
        self.show_head()

    def action_page(self, step: int) -> None:
        self.view.action_page(step)
