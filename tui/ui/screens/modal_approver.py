"""Asks the agent's questions in modal dialogs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from textual.app import App

from tui.core.questions import (
    PlanReview,
    SecretAnswer,
    SecretQuestion,
    UserAnswers,
    UserQuestion,
)
from tui.permissions.types import Answer, Call, Decision
from tui.ui.toolkit.base_screen import BaseScreen

if TYPE_CHECKING:
    from tui.app.frontend import AgentHolder
    from tui.ui.widgets.dialog import Beneath, Dialog, LeaveKey

T = TypeVar("T")


class ModalApprover:
    """Asks the person in modal dialogs, one question at a time. `beneath` keeps in sight above a
    dialog what it is about; `leave_key` leaves a question unanswered. `asker` names whose question
    it is, where another session is in sight. `holder` has the agent whose programs
    ask for secrets."""

    asks_secrets = True

    def __init__(
        self,
        app: App[Any],
        beneath: Beneath | None = None,
        leave_key: LeaveKey | None = None,
        asker: str = "",
    ) -> None:
        self._app, self._beneath, self._leave_key = app, beneath, leave_key
        self._asker = asker
        self.holder: AgentHolder | None = None
        self._asking = asyncio.Lock()

    async def ask(self, call: Call, decision: Decision) -> Answer:
        """Show the question and wait. Cancelling the wait removes the question."""
        from tui.ui.widgets.approval import ApprovalModal  # noqa: PLC0415 - not for the first frame

        async with self._asking:
            modal = ApprovalModal(call, decision, self._beneath)
            return await self._answered(modal) or Answer("no")

    async def ask_user(self, questions: Sequence[UserQuestion], agent: str) -> UserAnswers:
        from tui.ui.widgets.questionnaire import QuestionnaireModal  # noqa: PLC0415 - as above

        async with self._asking:
            modal = QuestionnaireModal(questions, agent, self._beneath)
            return UserAnswers(await self._answered(modal) or ())

    async def review_plan(self, title: str, plan: str) -> PlanReview:
        from tui.ui.screens.plan import PlanModal  # noqa: PLC0415 - as above

        async with self._asking:
            modal = PlanModal(title, plan)
            return await self._answered(modal) or PlanReview("none", plan)

    async def ask_secret(self, question: SecretQuestion) -> SecretAnswer | None:
        from tui.ui.screens.secret import SecretModal  # noqa: PLC0415 - as above

        async with self._asking:
            answer = await self._answered(SecretModal(question))
        if answer == "stop":
            await self._stop(question.terminal)
            return None
        return answer

    async def _stop(self, name: str) -> None:
        """Stop the program in a terminal for the person."""
        agent = self.holder.agent if self.holder is not None else None
        for owned in agent.jobs.all if agent is not None else ():
            job = owned.job
            if job.id == name and job.terminal is not None and not job.ended:
                await job.stop("person")

    async def _answered(self, modal: Dialog[T]) -> T | None:
        """Show a dialog and wait for its result."""
        from tui.ui.widgets.dialog import answer_of  # noqa: PLC0415 - as above

        modal.leave_key, modal.about = self._leave_key, self._beneath
        top = cast("object", self._app.screen)
        screens = (one for one in self._app.screen_stack if isinstance(one, BaseScreen))
        if top is not self._beneath and any(one.shows_others for one in screens):
            modal.asker = self._asker
        try:
            return await answer_of(self._app, modal)
        finally:
            if self._beneath is not None:
                self._beneath.leave_room(None)
