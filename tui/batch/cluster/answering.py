"""The driver's side of questions: they are put to the person, and the answers into the store.

A question counts while its worker has the task. One that is void is taken off the screen, and an
answer that comes too late moves nothing.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import Final

from tui.batch.cluster.lease import StoredTask
from tui.batch.cluster.question import (
    QuestionError,
    QuestionState,
    TaskQuestion,
    answer_to,
    message_of,
    question_ref,
    read_question,
)
from tui.batch.cluster.task_store import StoreError, TaskStore
from tui.batch.events import EventSink, FromAgent
from tui.batch.state import PlacedRun
from tui.core.clock import Clock
from tui.core.dataclass import dataclass, replace
from tui.core.facts import (
    Fact,
    Notice,
    PermissionAnswered,
    PermissionAsked,
    QuestionAnswered,
    QuestionAsked,
)
from tui.core.questions import UserAnswers, answer_json, padded, question_json
from tui.permissions.asked import Answered, AskedCall, AskedPlan, AskedQuestions
from tui.permissions.types import Answer, Approver
from tui.tools.ask_user import AskUser
from tui.tools.present_plan import PresentPlan

_AGAIN_S: Final = 2.0
"""Seconds until an answer that the store didn't take is put again."""
_VOID: Final = "Its worker no longer waits for the answer."


@dataclass(slots=True)
class _OpenQuestion:
    """A question before the person: its commit, the task that asks, and the work of asking."""

    commit: str
    index: int
    question: TaskQuestion
    work: asyncio.Task[None]


class TaskQuestions:
    """The questions of all tasks of a run. `read` what the store has of them, then `review` it.

    `told`: workers' own events tell that they ask and have the answer; those that are gone do not.
    """

    def __init__(
        self,
        store: TaskStore,
        approver: Approver,
        sink: EventSink,
        clock: Clock,
        *,
        told: bool = False,
    ) -> None:
        self._store, self._approver = store, approver
        self._sink, self._clock, self._told = sink, clock, told
        self._seen: dict[str, tuple[str, QuestionState | None]] = {}
        """The last question of each task: its commit, and its state, None if it can't be read."""
        self._open: dict[str, _OpenQuestion] = {}

    @property
    def waiting(self) -> Mapping[int, str]:
        """The question of each task that waits for the person, in a line that is safe to draw."""
        waits = (one for one in self._open.values() if not one.work.done())
        return {one.index: one.question.summary for one in waits}

    def read(self, refs: Mapping[str, str]) -> None:
        """Read what is new of the questions' commits, by their refs. Blocks; raises StoreError."""
        seen, commits = self._seen, {ref.rpartition("/")[2]: one for ref, one in refs.items()}
        new = {key: one for key, one in commits.items() if seen.get(key, ("", None))[0] != one}
        self._store.fetch({ref: one for ref, one in refs.items() if one in new.values()})
        messages = self._store.messages(new.values())
        now = {key: (commit, _state_of(messages.get(commit, ""))) for key, commit in new.items()}
        kept = {key: one for key, one in seen.items() if key in commits}
        self._seen = {**kept, **now}

    def review(self, placed: PlacedRun, tasks: Mapping[str, StoredTask]) -> None:
        """Put new questions of a run to the person, and take back those that are void."""
        seen = self._seen
        for key, one in [*self._open.items()]:
            if one.work.done():
                one.work.result()
            is_same = seen.get(key, ("", None))[0] == one.commit
            if not (is_same and key in tasks and one.question.is_of(tasks[key].entry)):
                del self._open[key]
                if one.work.cancel():
                    self._say(one.index, _void(one.question))
        for key, (commit, state) in seen.items():
            if key in self._open or key not in tasks or not isinstance(state, TaskQuestion):
                continue
            entry = tasks[key].entry
            if state.run == placed.run and state.is_of(entry):
                indexes = placed.keys[key]
                index = state.task if state.task in indexes else indexes[0]
                work = asyncio.create_task(self._settle(commit, index, state, entry.host))
                self._open[key] = _OpenQuestion(commit, index, state, work)

    async def close(self) -> None:
        """Take all questions off the screen. They stay in the store, for the next driver."""
        works = [one.work for one in self._open.values()]
        self._open = {}
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)

    async def _settle(self, commit: str, index: int, question: TaskQuestion, host: str) -> None:
        """Ask the person, and put the answer into the store."""
        if not self._told:
            self._say(index, _asked(question))
        answer = await self._ask(question, index, "" if host == socket.gethostname() else host)
        message = message_of(answer_to(answer))
        ref, made = question_ref(question.run, question.key), ""
        while True:
            try:
                made = made or await asyncio.to_thread(self._store.commit, message, upon=commit)
                is_in_time = await asyncio.to_thread(self._store.move, {ref: (commit, made)})
                break
            except StoreError as error:
                self._sink.show(
                    Notice(f"The answer to task {index + 1} can't be sent yet: {error}")
                )
                await self._clock.sleep(_AGAIN_S)
        if not is_in_time:
            self._say(index, _void(question))
        elif not self._told:
            self._say(index, _answered(question, answer))

    async def _ask(self, question: TaskQuestion, index: int, host: str) -> Answered:
        task = f"task {index + 1} on {host}" if host else f"task {index + 1}"

        def named(agent: str) -> str:
            return f"{task}, {agent}" if agent else task

        match question.asked:
            case AskedCall(call, decision):
                return await self._approver.ask(replace(call, agent=named(call.agent)), decision)
            case AskedQuestions(questions, agent):
                return await self._approver.ask_user(questions, named(agent))
            case AskedPlan(title, plan):
                return await self._approver.review_plan(f"{title} ({task})", plan)

    def _say(self, index: int, fact: Fact) -> None:
        self._sink.show(FromAgent(index, fact))


def _state_of(message: str) -> QuestionState | None:
    try:
        return read_question(message)
    except QuestionError:
        return None


def _asked(question: TaskQuestion) -> Fact:
    match question.asked:
        case AskedCall(call, decision):
            return PermissionAsked(call.id, call.tool, decision.reason)
        case AskedQuestions(questions):
            shown = tuple(map(question_json, questions))
            first = next(iter(questions), None)
            id_, server = (first.call, first.server) if first else ("", "")
            return QuestionAsked(id_, AskUser.name, shown, server)
        case AskedPlan():
            return QuestionAsked("", PresentPlan.name, ())


def _answered(question: TaskQuestion, answer: Answered) -> Fact:
    match question.asked, answer:
        case AskedCall(call), Answer():
            return PermissionAnswered(
                call.id, call.tool, answer.answer, answer.by, answer.reason, subject=call.subject
            )
        case AskedQuestions(questions), UserAnswers():
            id_ = questions[0].call if questions else ""
            given = tuple(map(answer_json, questions, padded(questions, answer)))
            return QuestionAnswered(id_, AskUser.name, given, answer.by)
        case _:
            return QuestionAnswered("", PresentPlan.name, (), answer.by)


def _void(question: TaskQuestion) -> Fact:
    """A question that ends without an answer that counts."""
    match question.asked:
        case AskedCall():
            return _answered(question, Answer("no", _VOID, by="default"))
        case _:
            return _answered(question, UserAnswers(by="default"))
