"""The agent's questions, as modal dialogs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from textual.app import App

from tui.permissions.types import Answer, Call, Decision
from tui.ui.screens.chat import ChatScreen

if TYPE_CHECKING:
    from tui.ui.widgets.approval import ApprovalModal


class ModalApprover:
    """Asks the person by a modal, one question at a time."""

    def __init__(self, app: App[Any], chat: ChatScreen) -> None:
        self._app, self._chat = app, chat
        self._asking = asyncio.Lock()

    async def ask(self, call: Call, decision: Decision) -> Answer:
        """Show the question and wait. Cancelling the wait takes the question away."""
        from tui.ui.widgets.approval import ApprovalModal  # noqa: PLC0415 - not for the first frame

        async with self._asking:
            answered: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()

            def take(answer: Answer | None) -> None:
                if not answered.done():
                    answered.set_result(answer)

            chat = self._chat
            modal = ApprovalModal(call, decision, chat.clock, chat.prompt.insert, chat.leave_room)
            self._app.push_screen(modal, take)
            try:
                return await answered or Answer("no")
            except asyncio.CancelledError:
                self._withdraw(modal)
                raise
            finally:
                chat.leave_room(None)

    def _withdraw(self, modal: ApprovalModal) -> None:
        """Take a question away; what lies above it is left alone, and it goes once that has."""
        if self._app.screen is modal:
            modal.dismiss(None)
        elif modal in self._app.screen_stack:

            def withdraw_when_on_top(_: object) -> None:
                if self._app.screen is modal:
                    self._app.call_later(self._withdraw, modal)

            self._app.screen_change_signal.subscribe(modal, withdraw_when_on_top)  # pyright: ignore[reportUnknownMemberType]
