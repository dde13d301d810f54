"""Beside the list: the end of the session under the cursor, or the place that was found in it."""

from __future__ import annotations

import asyncio

from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.timer import Timer

from tui.app.dialog_data import Picked
from tui.app.session_repository import Preview, SessionRepository
from tui.core.errors import HoldfastError
from tui.core.text_cleaning import one_line
from tui.ui.screens.sessions.labels import about
from tui.ui.widgets.conversation.view import Conversation
from tui.ui.widgets.pane_title import PaneRule
from tui.ui.widgets.record_items import entry_of, items_of

REST_S = 0.06
"""So long the cursor stands still before a session is read."""


class PreviewSide(Vertical):
    """Shows what it is told to `follow`, once that has not changed for a moment."""

    def __init__(self, shelf: SessionRepository) -> None:
        super().__init__(id="preview-side")
        self._shelf = shelf
        self._picked: Picked | None = None
        self._read: Picked | None = None
        self._soon: Timer | None = None

    def compose(self) -> ComposeResult:
        yield PaneRule(id="preview-rule")
        view = Conversation(id="preview")
        view.can_focus = False
        yield view

    def follow(self, picked: Picked | None) -> None:
        """Show this soon; what is shown already is not read again."""
        self._picked = picked
        if self._soon is not None:
            self._soon.stop()
        self._soon = self.set_timer(REST_S, self._rested)

    def forget(self) -> None:
        """What is shown may be another text by now: read it again when it is followed."""
        self._read = None

    def _rested(self) -> None:
        if not _same(self._picked, self._read):
            self._read = self._picked
            self._show(self._picked)

    @work(exclusive=True, group="preview")
    async def _show(self, picked: Picked | None) -> None:
        rule, view = self.query_one(PaneRule), self.query_one(Conversation)
        if picked is None:
            rule.title = Content.styled("nothing chosen", "$text-muted")
            view.clear()
            return
        try:
            seen = await asyncio.to_thread(self._shelf.preview, picked.row, picked.message)
            rule.title = about(picked.row)
        except (HoldfastError, OSError) as error:
            seen = Preview(())
            rule.title = Content.styled(one_line(str(error)), "$text-error")
        items = items_of(seen.records)
        view.clear()
        view.extend(items)
        if seen.message and (item := entry_of(seen.records, seen.message, items)):
            view.go_to(item)
        else:
            view.action_edge(1)

    def on_conversation_item_selected(self, event: Conversation.ItemSelected) -> None:
        event.stop()  # the preview is only looked at


def _same(one: Picked | None, other: Picked | None) -> bool:
    """Whether both are the same place of the same file."""
    if one is None or other is None:
        return one is other
    return (one.row.path, one.message) == (other.row.path, other.message)
