"""A question to the person as data, for whoever puts it elsewhere than in the process that asks."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec

from tui.core.questions import PlanReview, UserAnswers, UserQuestion
from tui.core.text_cleaning import one_line, visible
from tui.permissions.types import Answer, Approver, Call, Decision


class AskedCall(msgspec.Struct, frozen=True, tag="call"):
    """A call that the rules leave open."""

    call: Call
    decision: Decision


class AskedQuestions(msgspec.Struct, frozen=True, tag="questions"):
    """The model's own questions, at least one; `agent` is the sub-agent that asks."""

    questions: Annotated[tuple[UserQuestion, ...], msgspec.Meta(min_length=1)]
    agent: str


class AskedPlan(msgspec.Struct, frozen=True, tag="plan"):
    """A plan for approval."""

    title: str
    plan: str


Asked: TypeAlias = AskedCall | AskedQuestions | AskedPlan
Answered: TypeAlias = Answer | UserAnswers | PlanReview


def summary_of(asked: Asked) -> str:
    """The question in a line, safe to draw."""
    match asked:
        case AskedCall(call):
            text = f"{call.tool}({call.subject})"
        case AskedQuestions(questions):
            text = " ".join(one.text for one in questions)
        case AskedPlan(title):
            text = f"a plan to approve: {title}"
    return one_line(visible(text))


async def put(asked: Asked, approver: Approver) -> Answered:
    """Put a question to a person, and return the answer."""
    match asked:
        case AskedCall(call, decision):
            return await approver.ask(call, decision)
        case AskedQuestions(questions, agent):
            return await approver.ask_user(questions, agent)
        case AskedPlan(title, plan):
            return await approver.review_plan(title, plan)


def answer_of(asked: Asked, data: Any) -> Answered:
    """The answer to a question, from plain data. Raises msgspec.ValidationError."""
    match asked:
        case AskedCall():
            return msgspec.convert(data, Answer)
        case AskedQuestions():
            return msgspec.convert(data, UserAnswers)
        case AskedPlan():
            return msgspec.convert(data, PlanReview)
