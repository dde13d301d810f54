"""A question of a task to the person, and its answer, as the store has them.

A worker puts its question on the task's ref of questions, and whoever sits at the run's screen
answers by moving that ref to a commit made upon the question's. So a question gets one answer, and
an answer fits one question alone: the commit below it names the run, the task, the attempt and its
holder, a random number, and the whole call. Each next question is made upon the last answer.
"""

from __future__ import annotations

import json
from typing import Any, TypeAlias, TypeVar

import msgspec

from tui.batch.cluster.entry import TaskEntry
from tui.batch.cluster.task_store import QUESTIONS
from tui.core.errors import HoldfastError
from tui.core.redaction import mask_values
from tui.permissions.asked import Answered, Asked, summary_of

T = TypeVar("T")


class QuestionError(HoldfastError):
    """A commit in the store isn't a question, or its answer isn't one."""


class TaskQuestion(msgspec.Struct, frozen=True, kw_only=True, tag="asked"):
    """A question that is open. `task` is the place in the task file of what asks, `attempt` and
    `holder` are the worker's as the task's entry has them; `number` is random."""

    run: str
    key: str
    task: int
    attempt: int
    holder: str
    number: str
    asked: Asked

    def is_of(self, entry: TaskEntry) -> bool:
        """True if the worker that asks has the task."""
        return (
            (entry.state, entry.cancelled) == ("running", False)
            and (entry.key, entry.attempt, entry.holder) == (self.key, self.attempt, self.holder)
        )  # fmt: skip

    @property
    def summary(self) -> str:
        """The question in a line, safe to draw."""
        return summary_of(self.asked)


class TaskAnswer(msgspec.Struct, frozen=True, tag="answered"):
    """The answer to the question that its commit is made upon: an Answer, UserAnswers or a
    PlanReview, by what was asked."""

    answer: Any

    def read(self, type_: type[T]) -> T:
        """The answer as what was asked for. Raises QuestionError."""
        try:
            return msgspec.convert(self.answer, type=type_)
        except msgspec.ValidationError as error:
            raise QuestionError(f"The store has an answer that can't be read: {error}.") from error


class WithdrawnQuestion(msgspec.Struct, frozen=True, tag="withdrawn"):
    """Nobody waits for an answer any more."""


QuestionState: TypeAlias = TaskQuestion | TaskAnswer | WithdrawnQuestion


def question_ref(run: str, key: str) -> str:
    """The ref of a task's questions."""
    return f"{QUESTIONS}{run}/{key}"


def answer_to(answer: Answered) -> TaskAnswer:
    """The state of a question that was answered."""
    return TaskAnswer(msgspec.to_builtins(answer))


def message_of(state: QuestionState, *, redact: bool = False) -> str:
    """The message of a state's commit; secrets of known shapes are masked if the record's are."""
    data: dict[str, Any] = msgspec.to_builtins(state, enc_hook=str)  # of paths
    if redact:
        data, _ = mask_values(data)
    # in ASCII: a call may hold what is no valid text
    return f"holdfast: a question is {data['type']}\n\n{json.dumps(data, ensure_ascii=True)}\n"


def read_question(message: str) -> QuestionState:
    """The state of a question that a commit's message has. Raises QuestionError."""
    try:
        data: object = json.loads(message.partition("\n\n")[2])
        return msgspec.convert(data, type=QuestionState, dec_hook=lambda kind, value: kind(value))
    except (ValueError, RecursionError) as error:
        raise QuestionError(f"The store has a question that can't be read: {error}.") from error
