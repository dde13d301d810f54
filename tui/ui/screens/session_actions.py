"""Actions on the browser's sessions: preview, rename, fork, export, delete."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any, cast

from textual import work
from textual.app import App, ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.timer import Timer

from tui.app.conversation import Conversation
from tui.app.dialog_data import AnswerOption, ChoiceQuestion, PickedSession, YesNoQuestion
from tui.app.session_repository import Format, SessionPreview, SessionRepository
from tui.core.dataclass import dataclass
from tui.core.errors import HoldfastError
from tui.core.formatting import plural
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line
from tui.ui.screens.session_rows import preview_title
from tui.ui.widgets.conversation.view import ConversationView
from tui.ui.widgets.notices import Kind, NoticeText
from tui.ui.widgets.panes import PaneRule
from tui.ui.widgets.questions import ChoiceDialog
from tui.ui.widgets.record_items import entry_of, items_of


@dataclass(frozen=True, slots=True)
class ActionOutcome(NoticeText):
    """The result of an action, for the person. `changed` is true if the list has to be read
    again."""

    kind: Kind = "success"
    changed: bool = False


@dataclass(frozen=True, slots=True)
class SessionActions:
    """Actions on what is under the cursor. Each returns its outcome, or None if the person changed
    their mind.

    `current` is the file of the open session, that of the `conversation`.

    Raises:
        HoldfastError: If an action fails.
    """

    app: App[Any]
    repository: SessionRepository
    current: Path | None = None
    conversation: Conversation | None = None

    async def rename(self, picked: PickedSession) -> ActionOutcome | None:
        """Give the session a title that the person types."""
        from tui.ui.widgets.questions import AskText  # noqa: PLC0415 - on demand

        row = picked.row
        if row.agent:
            return _foreign(row.agent, "renamed")
        ask = AskText("Rename session", row.title)
        title = await self.app.push_screen_wait(ask)
        if title is None:
            return None
        if row.path == self.current and self.conversation is not None:
            self.conversation.rename(title)
        else:
            await asyncio.to_thread(self.repository.rename, row, title)
        return ActionOutcome(f"Renamed to “{title}”.", changed=True)

    async def fork(self, picked: PickedSession) -> ActionOutcome | None:
        """Copy the session, up to the message found in a search, or completely."""
        if picked.row.agent:
            return _foreign(picked.row.agent, "forked")
        await asyncio.to_thread(self.repository.fork, picked.row, picked.message)
        what = "Forked up to that message." if picked.message else "Forked."
        return ActionOutcome(what, changed=True)

    async def export(self, picked: PickedSession) -> ActionOutcome | None:
        """Write the session into the workspace, in the format that the person chooses."""
        where = shorten(self.repository.workspace)
        question = ChoiceQuestion(
            "Export session",
            f"Saves the session in {where}. Known kinds of keys are removed.",
            (
                AnswerOption("m", "Markdown", "md"),
                AnswerOption("h", "HTML (one file)", "html"),
                AnswerOption("j", "JSON lines (every record)", "jsonl"),
            ),
        )
        chosen = await self.app.push_screen_wait(ChoiceDialog(question))
        if chosen not in {"md", "html", "jsonl"}:
            return None
        format_ = cast("Format", chosen)
        path, secrets = await asyncio.to_thread(self.repository.export, picked.row, format_)
        removed = f"Removed {plural(secrets, 'secret')}." if secrets else ""
        return ActionOutcome(f"Written to {shorten(path)}.", hint=removed)

    async def delete(self, picked: PickedSession) -> ActionOutcome | None:
        """Move the session to the trash, if the person confirms."""
        from tui.ui.widgets.questions import Confirmation  # noqa: PLC0415 - on demand

        row = picked.row
        if row.agent:
            return _foreign(row.agent, "deleted")
        if row.path == self.current:
            return ActionOutcome(
                "This session is open here.", "warning", hint="Leave it with /new first."
            )
        question = YesNoQuestion(
            "Delete this session?",
            "It moves to the trash folder, with those of its sub-agents; you can move it back.",
            yes="Delete",
            no="Cancel",
            details=(one_line(row.title) or "(no prompts)", shorten(row.path)),
        )
        if not await self.app.push_screen_wait(Confirmation(question)):
            return None
        await asyncio.to_thread(self.repository.delete, row)
        trash = shorten(self.repository.folders.data / "trash")
        return ActionOutcome(f"Moved to the trash: {trash}.", changed=True)


def _foreign(agent: str, what: str) -> ActionOutcome:
    return ActionOutcome(
        f"Holdfast never changes {agent}'s own files: they can't be {what}.",
        "warning",
        hint="Press Enter to open a copy.",
    )


REST_S = 0.06
"""Seconds that the cursor has to rest before a session is read."""


class PreviewSide(Vertical):
    """Shows the session given to `follow`, once that has not changed for a moment."""

    def __init__(self, repository: SessionRepository) -> None:
        super().__init__(id="preview-side")
        self._repository = repository
        self._picked: PickedSession | None = None
        self._soon: Timer | None = None

    def compose(self) -> ComposeResult:
        yield PaneRule(id="preview-rule")
        view = ConversationView(id="preview")
        view.can_focus = False
        yield view

    def follow(self, picked: PickedSession | None) -> None:
        """Show this soon; what is followed already is not read again."""
        if not _same(picked, self._picked):
            self._picked = picked
            if self._soon is not None:
                self._soon.stop()
            self._soon = self.set_timer(REST_S, partial(self._show, picked))

    def forget(self) -> None:
        """Read the session again when it is followed: its text may have changed."""
        self._picked = None

    @work(exclusive=True, group="preview")
    async def _show(self, picked: PickedSession | None) -> None:
        if not self.display:  # not displayed, so nothing has styled it
            self.forget()
            return
        rule, view = self.query_one(PaneRule), self.query_one(ConversationView)
        if picked is None:
            rule.title = Content.styled("nothing chosen", "$text-muted")
            view.clear()
            return
        try:
            preview = await asyncio.to_thread(self._repository.preview, picked.row, picked.message)
            rule.title = preview_title(picked.row)
        except (HoldfastError, OSError) as error:
            preview = SessionPreview(())
            rule.title = Content.styled(one_line(str(error)), "$text-error")
        items = items_of(preview.records)
        view.clear()
        view.extend(items)
        if preview.message and (item := entry_of(preview.records, preview.message, items)):
            view.go_to(item)
        else:
            view.action_edge(1)

    def on_conversation_view_item_selected(self, event: ConversationView.ItemSelected) -> None:
        event.stop()  # a preview is only for looking


def _same(one: PickedSession | None, other: PickedSession | None) -> bool:
    """True if both are the same place in the same file."""
    if one is None or other is None:
        return one is other
    return (one.row.path, one.message) == (other.row.path, other.message)
