"""The questions of a watched session, put in the same dialogs as at home, the oldest first. None
stays once nobody waits for its answer."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, cast

from textual.worker import WorkerCancelled, WorkerFailed

from tui.app.door.lines import AskedLine, RequestOutcome
from tui.permissions.asked import Answered, put
from tui.ui.screens.chat import ChatScreen
from tui.ui.screens.modal_approver import ModalApprover
from tui.ui.toolkit.base_app import ThemedApp
from tui.ui.widgets.dialog import LeaveKey

if TYPE_CHECKING:
    from textual.worker import Worker


class Answering(Protocol):
    """Takes the answers to questions, by their numbers, for the session with a name."""

    @property
    def name_of_session(self) -> str: ...

    async def answer(self, to: str, answer: Answered) -> RequestOutcome: ...

    def action_leave(self) -> None:
        """Leave the question that is put unanswered."""


class QuestionDialogs:
    """Puts questions over `screen`. The key that leads to the desk leaves one unanswered."""

    def __init__(self, screen: ChatScreen, answering: Answering) -> None:
        self._screen, self._answering = screen, answering
        self._waiting: dict[str, AskedLine] = {}
        self._asked: AskedLine | None = None
        self._given = False
        self._asking: Worker[None] | None = None

    def ask(self, line: AskedLine) -> None:
        """Put a question once those before it are answered."""
        self._waiting[line.number] = line
        self._next()

    def settle(self, number: str, why: str) -> None:
        """Put a question no more, and say why if the person has it before them."""
        self._waiting.pop(number, None)
        if self._asked is None or self._asked.number != number or self._given:
            return
        self._stop()
        self._screen.notice.say(why, "warning")
        self._next()

    async def close(self) -> None:
        """Put no more questions, and wait until the dialog has gone."""
        self._waiting.clear()
        asking = self._asking
        self._stop()
        if asking is not None:
            with suppress(WorkerFailed, WorkerCancelled):
                await asking.wait()

    def _stop(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
        self._asked = self._asking = None

    def _next(self) -> None:
        if self._asked is None and self._waiting:
            self._asked, self._given = next(iter(self._waiting.values())), False
            work = self._put(self._asked)
            self._asking = self._screen.run_worker(work, group="questions")  # pyright: ignore[reportUnknownMemberType]

    async def _put(self, line: AskedLine) -> None:
        """Put a question until it is answered, or nobody waits for the answer."""
        app = cast("ThemedApp", self._screen.app)  # pyright: ignore[reportUnknownMemberType]
        keys = app.own_keys["desk"]
        leave_key = LeaveKey(keys[0] if keys else "", self._answering.action_leave)
        asker = f"{self._answering.name_of_session} asks:"
        approver = ModalApprover(app, self._screen, leave_key, asker)
        while line.number in self._waiting:
            self._given = False
            answer = await put(line.asked, approver)
            self._given = True
            outcome = await self._answering.answer(line.number, answer)
            if outcome.outcome != "refused":
                break
            self._screen.notice.say(outcome.text, "error", hint=outcome.hint)
            await asyncio.sleep(0)  # what settles it may have come with the refusal
        self._waiting.pop(line.number, None)
        self._asked = self._asking = None
        self._next()
