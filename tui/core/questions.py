"""Questions of the model or an MCP server to the person: what a front end shows, and what it
returns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, TypeAlias

from tui.core.dataclass import dataclass

Answerer: TypeAlias = Literal["person", "default"]
"""The one who answered: the person, or the program if nobody can be asked."""


@dataclass(frozen=True, slots=True)
class AnswerChoice:
    """One of the answers that are offered; `description` explains it in a line. `notice` stays in
    the conversation once the answer was chosen."""

    label: str
    description: str = ""
    notice: str = ""


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another way to deal with a question than to answer it, such as to leave it out. `ends`: the
    questions after it are not asked any more."""

    label: str
    description: str = ""
    ends: bool = False


@dataclass(frozen=True, slots=True)
class UserQuestion:
    """A question with its choices. `header` names it in a word or two. `several`: more than one
    choice may be taken. `own` is the position of the row for the person's own words, if there is
    one. `server` is the MCP server that asks; "" for the model. `call` is the id of the call that
    asks."""

    header: str
    text: str
    choices: tuple[AnswerChoice, ...]
    several: bool = False
    own: Literal["first", "last", "none"] = "last"
    ways: tuple[Alternative, ...] = ()
    server: str = ""
    call: str = ""


@dataclass(frozen=True, slots=True)
class UserAnswer:
    """The person's choices, by their labels, and their own words; or the label of another way. All
    empty: not answered."""

    chosen: tuple[str, ...] = ()
    text: str = ""
    way: str = ""

    def __bool__(self) -> bool:
        return bool(self.chosen or self.text or self.way)

    def ends(self, question: UserQuestion) -> bool:
        """True if no further question is asked after this answer."""
        return any(one.ends and one.label == self.way for one in question.ways)

    @property
    def summary(self) -> str:
        """The answer in a line, for the person."""
        return ", ".join(filter(None, (*self.chosen, self.text, self.way)))


@dataclass(frozen=True, slots=True)
class UserAnswers:
    """One answer per question, in order; none at all if nobody can be asked."""

    answers: tuple[UserAnswer, ...] = ()
    by: Answerer = "person"


def question_json(question: UserQuestion) -> dict[str, Any]:
    """A question as events have it."""
    return {
        "header": question.header,
        "question": question.text,
        "choices": [
            {"label": one.label, "description": one.description}
            for one in (*question.choices, *question.ways)
        ],
        "several": question.several,
    }


def answer_json(question: UserQuestion, answer: UserAnswer) -> dict[str, Any]:
    """An answer as events and records have it; nothing chosen and no text: not answered."""
    chosen = [*answer.chosen, *([answer.way] if answer.way else ())]
    return {"header": question.header, "chosen": chosen, "text": answer.text}


def padded(questions: Sequence[UserQuestion], given: UserAnswers) -> tuple[UserAnswer, ...]:
    """An answer for each question; those that were not reached have none."""
    return (*given.answers, *(UserAnswer() for _ in questions[len(given.answers) :]))


@dataclass(frozen=True, slots=True)
class SecretQuestion:
    """A program in a terminal reads a line that it doesn't show, such as a password. `terminal` is
    the terminal's job, `command` what was started in it, `prompt` the line of the screen that asks,
    `program` the name of the one that reads, "" if it isn't known, and `typed` what the model typed
    last, which may have started it."""

    terminal: str
    command: str
    prompt: str
    program: str = ""
    typed: str = ""

    @property
    def asker(self) -> str:
        """The program that reads, and how it came there, for the person who decides about it."""
        reads = f"{self.program} reads it." if self.program else ""
        typed = f"The model typed last: {self.typed}" if self.typed else ""
        return " ".join(filter(None, (reads, typed)))


@dataclass(slots=True)
class SecretAnswer:
    """A line that the person typed, without its end. Whoever has used it calls `wipe`. It goes
    to the terminal and nowhere else: into no record, event, log, draft or history."""

    data: bytearray

    def wipe(self) -> None:
        """Overwrite it in memory."""
        self.data[:] = bytes(len(self.data))

    def __repr__(self) -> str:
        return "SecretAnswer(…)"


AskPerson: TypeAlias = Callable[[Sequence[UserQuestion]], Awaitable[UserAnswers]]
"""Puts questions to the person, one after the other. Cancelling it withdraws them."""

Verdict: TypeAlias = Literal["ask", "accept_edits", "change", "none"]
"""The verdict on a plan: approved, with the mode to carry it out in; to be changed; or none."""


@dataclass(frozen=True, slots=True)
class PlanReview:
    """The person's review of a plan. `plan` is the plan as they left it, `comment` what is to be
    changed."""

    verdict: Verdict
    plan: str
    comment: str = ""
    by: Answerer = "person"

    @property
    def approved(self) -> bool:
        return self.verdict in {"ask", "accept_edits"}


PLAN_CHOICES: tuple[tuple[Verdict, str], ...] = (
    ("ask", "Approve it; ask before each change"),
    ("accept_edits", "Approve it; accept edits without asking"),
    ("change", "Say what to change"),
)
"""The possible verdicts on a plan, in the order of its dialog."""
