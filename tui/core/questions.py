"""Questions that the model or an MCP server puts to the person: what a front end shows, and what it
gives back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Answerer: TypeAlias = Literal["person", "default"]
"""Who answered: the person, or the program where nobody can be asked."""


@dataclass(frozen=True, slots=True)
class AnswerChoice:
    """One of the answers that are offered; `description` says what it means, in a line. `notice`
    stays in the conversation once it was taken."""

    label: str
    description: str = ""
    notice: str = ""


@dataclass(frozen=True, slots=True)
class Alternative:
    """Something that can be done with a question but answer it, such as to leave it out. `ends`:
    the questions after it are not asked any more."""

    label: str
    description: str = ""
    ends: bool = False


@dataclass(frozen=True, slots=True)
class UserQuestion:
    """A question with its choices. `header` names it in a word or two. `several`: more than one
    choice may be taken. `own`: where the row for the person's own words is, if there is one.
    `server` is the MCP server that asks; "" for the model."""

    header: str
    text: str
    choices: tuple[AnswerChoice, ...]
    several: bool = False
    own: Literal["first", "last", "none"] = "last"
    ways: tuple[Alternative, ...] = ()
    server: str = ""


@dataclass(frozen=True, slots=True)
class UserAnswer:
    """What the person took, by its labels, and what they wrote; or the label of another way. None
    of them: not answered."""

    chosen: tuple[str, ...] = ()
    text: str = ""
    way: str = ""

    def __bool__(self) -> bool:
        return bool(self.chosen or self.text or self.way)

    def ends(self, question: UserQuestion) -> bool:
        """Whether no more is asked after this answer."""
        return any(one.ends and one.label == self.way for one in question.ways)

    @property
    def summary(self) -> str:
        """In a line, for the person."""
        return ", ".join(filter(None, (*self.chosen, self.text, self.way)))


@dataclass(frozen=True, slots=True)
class UserAnswers:
    """One answer a question, in their order; none at all where nobody can be asked."""

    answers: tuple[UserAnswer, ...] = ()
    by: Answerer = "person"


AskPerson: TypeAlias = Callable[[Sequence[UserQuestion]], Awaitable[UserAnswers]]
"""Puts questions to the person, one after the other. Cancelling it takes them back."""

Verdict: TypeAlias = Literal["ask", "accept_edits", "change", "none"]
"""What becomes of a plan: approved, with the mode to carry it out in; to be changed; or nothing."""


@dataclass(frozen=True, slots=True)
class PlanReview:
    """What the person says of a plan. `plan` is the plan as they left it, `comment` what is to be
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
"""What can be said of a plan, in the order of its dialog."""
