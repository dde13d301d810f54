"""A worker's questions to the person at the run's screen, by way of the store."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final, Protocol, TypeVar

from tui.batch.cluster.lease import Lease, LeaseLostError
from tui.batch.cluster.question import (
    QuestionError,
    TaskAnswer,
    TaskQuestion,
    WithdrawnQuestion,
    message_of,
    question_ref,
    read_question,
)
from tui.batch.cluster.task_store import StoreError, TaskStore
from tui.core.clock import Clock
from tui.core.dataclass import replace
from tui.core.questions import PlanReview, UserAnswers, UserQuestion
from tui.core.redaction import mask
from tui.permissions.asked import Asked, AskedCall, AskedPlan, AskedQuestions
from tui.permissions.types import Answer, Call, Decision

T = TypeVar("T")

_POLL_S: Final = 0.5
"""Seconds between two reads of a question's ref, at first."""
_POLL_MOST_S: Final = 2.0
_SLOWER: Final = 30.0
"""The pause is so small a part of the time waited: a question may stay for hours."""
_AGAIN_S: Final = 5.0
"""Seconds until a store that can't be reached is tried again."""


class AskingWorker(Protocol):
    """The worker of a task that asks."""

    lease: Lease

    @property
    def task(self) -> int:
        """The place in the task file of what it works on."""
        ...


class StoreApprover:
    """Asks by way of the store, one question at a time, and waits for as long as it takes.

    `redact`: secrets of known shapes are masked in what is asked.
    """

    def __init__(
        self, store: TaskStore, run: str, worker: AskingWorker, clock: Clock, *, redact: bool
    ) -> None:
        self._store, self._run, self._worker = store, run, worker
        self._clock, self._redact = clock, redact
        self._asking = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "questions")
        """Moves the ref: a question that is withdrawn while it is put is withdrawn after that."""
        self._open = ""
        """The commit of the question that waits."""

    async def ask(self, call: Call, decision: Decision) -> Answer:
        return await self._answer(AskedCall(call, decision), Answer)

    async def ask_user(self, questions: Sequence[UserQuestion], agent: str) -> UserAnswers:
        return await self._answer(AskedQuestions(tuple(questions), agent), UserAnswers)

    async def review_plan(self, title: str, plan: str) -> PlanReview:
        shown = AskedPlan(title, plan)
        review = await self._answer(shown, PlanReview)
        # with its secrets masked it is no edited one
        return replace(review, plan=plan) if review.plan == self._as_put(shown) else review

    def _as_put(self, shown: AskedPlan) -> str:
        """A plan as the person gets it."""
        return mask(shown.plan)[0] if self._redact else shown.plan

    async def _answer(self, asked: Asked, type_: type[T]) -> T:
        """Put a question and wait for its answer. Never returns where the task is lost."""
        async with self._asking:
            try:
                while True:
                    question = await self._reach(partial(self._put, asked, self._worker.task))
                    if question and (answer := await self._reply(question)) is not None:
                        with suppress(QuestionError):  # it is asked again
                            return answer.read(type_)
            except LeaseLostError:
                await asyncio.Event().wait()  # until the run, which ends now, cancels it
                raise
            finally:
                self._thread.submit(self._withdraw)

    async def _reply(self, question: str) -> TaskAnswer | None:
        """Wait until the ref leaves a question's commit, and read what it has then; None where that
        is no answer to this question."""
        began = self._clock.monotonic()
        while not await self._reach(partial(self._is_moved, question)):
            waited = self._clock.monotonic() - began
            await self._clock.sleep(min(max(_POLL_S, waited / _SLOWER), _POLL_MOST_S))
        return await self._reach(partial(self._answer_to, question))

    async def _reach(self, step: Callable[[], T]) -> T:
        """Take a step in the store, which is waited for. Raises LeaseLostError."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                return await loop.run_in_executor(self._thread, step)
            except StoreError:
                await self._clock.sleep(_AGAIN_S)

    # In the thread

    @property
    def _ref(self) -> str:
        return question_ref(self._run, self._worker.lease.stored.entry.key)

    def _put(self, asked: Asked, task: int) -> str:
        """Put a task's question upon whatever the ref has. Returns its commit, "" where the ref was
        moved meanwhile. Raises LeaseLostError, StoreError."""
        self._hold()
        entry = self._worker.lease.stored.entry
        question = TaskQuestion(
            run=self._run,
            key=entry.key,
            task=task,
            attempt=entry.attempt,
            holder=entry.holder,
            number=secrets.token_hex(16),
            asked=asked,
        )
        before = self._store.refs(self._ref).get(self._ref, "")
        self._store.fetch({self._ref: before} if before else {})
        made = self._store.commit(message_of(question, redact=self._redact), upon=before)
        self._open = made if self._store.move({self._ref: (before, made)}) else ""
        return self._open

    def _is_moved(self, question: str) -> bool:
        """True if the ref no longer has a question's commit. Raises StoreError."""
        return self._store.refs(self._ref).get(self._ref) != question

    def _answer_to(self, question: str) -> TaskAnswer | None:
        """The answer that the ref has now, if it was made upon a question's commit. Raises
        LeaseLostError, StoreError."""
        self._hold()
        commit = self._store.refs(self._ref).get(self._ref)
        if commit is None:
            return None
        self._store.fetch({self._ref: commit})
        if self._store.parents(commit) != [question]:
            return None
        try:
            state = read_question(self._store.message(commit))
        except QuestionError:
            return None
        self._open = ""
        return state if isinstance(state, TaskAnswer) else None

    def _hold(self) -> None:
        """Make sure that nobody can have the task instead: a machine may have slept. Raises
        LeaseLostError, StoreError."""
        if not self._worker.lease.is_fresh:
            self._worker.lease.renew()

    def _withdraw(self) -> None:
        """Take the question back that is open still. No failure of that counts: it is void with its
        worker."""
        before, self._open = self._open, ""
        if before:
            with suppress(StoreError):
                made = self._store.commit(message_of(WithdrawnQuestion()), upon=before)
                self._store.move({self._ref: (before, made)})
