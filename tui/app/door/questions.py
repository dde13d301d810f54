"""Questions to the person, put in more than one place: where the session is open, and to all who
watch it. The first answer counts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from itertools import count
from secrets import token_hex
from typing import Any, Final, Protocol, cast

import msgspec

from tui.core.cancellation import to_the_end
from tui.core.dataclass import dataclass, replace
from tui.core.errors import UsageError
from tui.core.questions import (
    PLAN_CHOICES,
    PlanReview,
    SecretAnswer,
    SecretQuestion,
    UserAnswer,
    UserAnswers,
    UserQuestion,
)
from tui.permissions.asked import (
    Answered,
    Asked,
    AskedCall,
    AskedPlan,
    AskedQuestions,
    answer_of,
    put,
)
from tui.permissions.types import Answer, Approver, Call, Decision, offered, secret_asker

_RUN: Final = f"{os.getpid()}-{token_hex(6)}"
"""Makes the numbers of this process's questions its own."""
_numbers = count(1)


@dataclass(slots=True, eq=False)
class OpenQuestion:
    """A question that waits: its number, and the answer once a watcher has given one."""

    number: str
    asked: Asked
    answered: asyncio.Future[Answered]


class QuestionBoard(Protocol):
    """Shows the open questions."""

    def asked(self, question: OpenQuestion) -> None:
        """A question waits."""
        ...

    def settled(self, question: OpenQuestion) -> None:
        """It no longer does."""
        ...


class SharedApprover:
    """Puts each question to the approver of the front end and to all who watch. The first answer
    counts; the other question is withdrawn.

    `board` hears of questions as they come and go. One that the front end answers at once, since
    nobody can be asked there, is put to nobody else.
    """

    def __init__(self, inner: Approver, board: QuestionBoard) -> None:
        self.open: dict[str, OpenQuestion] = {}
        """The questions that wait, by their numbers, the oldest first."""
        self._inner, self._board = inner, board

    async def ask(self, call: Call, decision: Decision) -> Answer:
        return cast("Answer", await self._ask(AskedCall(call, decision)))

    async def ask_user(self, questions: Sequence[UserQuestion], agent: str) -> UserAnswers:
        return cast("UserAnswers", await self._ask(AskedQuestions(tuple(questions), agent)))

    async def review_plan(self, title: str, plan: str) -> PlanReview:
        return cast("PlanReview", await self._ask(AskedPlan(title, plan)))

    async def ask_secret(self, question: SecretQuestion) -> SecretAnswer | None:
        """Ask at the front end alone: no line to another process has a secret."""
        inner = secret_asker(self._inner)
        return await inner.ask_secret(question) if inner else None

    @property
    def asks_secrets(self) -> bool:
        return secret_asker(self._inner) is not None

    def answer(self, number: str, data: Any) -> None:
        """Answer an open question with plain data. Raises UsageError where it doesn't wait any
        more, or the answer is none of those that are offered."""
        question = self.open.get(number)
        if question is None or question.answered.done():
            raise UsageError("That question doesn't wait any more: it was answered, or withdrawn.")
        try:
            given = answer_of(question.asked, data)
        except (msgspec.ValidationError, RecursionError) as error:
            raise UsageError(f"That is no answer to this question: {error}.") from error
        question.answered.set_result(checked(question.asked, given))

    async def _ask(self, asked: Asked) -> Answered:
        here = asyncio.create_task(put(asked, self._inner), name="question")
        question = None
        try:
            await asyncio.sleep(0)
            if not here.done():
                future = asyncio.get_running_loop().create_future()
                question = OpenQuestion(f"{_RUN}-{next(_numbers)}", asked, future)
                self.open[question.number] = question
                self._board.asked(question)
                await asyncio.wait({here, future}, return_when=asyncio.FIRST_COMPLETED)
                if future.done():
                    return future.result()
            return await here
        finally:
            if question is not None:
                del self.open[question.number]
                question.answered.cancel()
                self._board.settled(question)
            if not here.done():
                here.cancel()
                await to_the_end(_over(here))


async def _over(task: asyncio.Task[Answered]) -> None:
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # nobody else asks for it


def _check(question: UserQuestion, answer: UserAnswer) -> None:
    labels = {one.label for one in question.choices}
    ways = {"", *(one.label for one in question.ways)}
    if not labels.issuperset(answer.chosen) or answer.way not in ways:
        raise UsageError(f"An answer to {question.text!r:.60} is none of its choices.")
    if answer.chosen[1:] and not question.several:
        raise UsageError(f"{question.text!r:.60} takes one choice.")
    if answer.text and question.own == "none":
        raise UsageError(f"{question.text!r:.60} takes no words of your own.")


def checked(asked: Asked, given: Answered) -> Answered:
    """An answer from elsewhere, if it is one of those that the question offers; a person gave it.
    Raises UsageError."""
    match asked, given:
        case AskedCall(call, decision), Answer():
            if given.changed is not None:
                raise UsageError("A call can't be changed from here: say no, and why.")
            if given.answer not in {"once", "no", *offered(call, decision)}:
                raise UsageError(f"The answer {given.answer!r} isn't offered for this call.")
        case AskedQuestions(questions), UserAnswers(answers):
            if len(answers) > len(questions):
                raise UsageError("There are more answers than questions.")
            for question, answer in zip(questions, answers, strict=False):
                _check(question, answer)
        case AskedPlan(_, plan), PlanReview():
            if given.verdict not in {"none", *(one for one, _ in PLAN_CHOICES)}:
                raise UsageError(f"The verdict {given.verdict!r} isn't offered.")
            if given.verdict == "none":
                return PlanReview("none", plan)
        case _:
            raise UsageError("That is no answer to this question.")
    return replace(given, by="person")
