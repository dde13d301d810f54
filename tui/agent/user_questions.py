"""Questions to the person: a call of `ask_user`, from the question to its result, and what a tool
asks while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tui.agent.agent_context import AgentContext
from tui.core.dataclass import dataclass, replace
from tui.core.facts import Notice, QuestionAnswered, QuestionAsked
from tui.core.messages import ToolOutput
from tui.core.questions import (
    SecretAnswer,
    SecretQuestion,
    UserAnswer,
    UserAnswers,
    UserQuestion,
    answer_json,
    padded,
    question_json,
)
from tui.core.text_cleaning import one_line
from tui.permissions.types import secret_asker
from tui.tools.ask_user import AskUser, AskUserParams
from tui.tools.base import ToolContext

_DECIDE: Final = "Decide yourself, continue, and say in your answer what you decided and why."
_HIDDEN: Final = "Secret"
_TYPED: Final = "answered, and shown to nobody"
_NOT_TYPED: Final = "not answered"
_NOT_HERE: Final = "It can only be typed in the full screen or in plain lines."
_NOBODY: Final = f"Nobody can be asked here. {_DECIDE}"
_UNANSWERED: Final = (
    "The user didn't answer. Don't ask the same again: decide yourself what can be undone and say "
    "what you decided, or stop and say what you need to know."
)


@dataclass(frozen=True, slots=True)
class UserQuestions:
    """Puts the questions of one agent to the person, one call at a time."""

    ctx: AgentContext

    async def run(self, params: AskUserParams, tool: ToolContext) -> ToolOutput:
        """Carry out a call. Cancelling it takes the questions back."""
        questions = params.asked
        answered = await put(self.ctx, tool.call_id, AskUser.name, questions)
        tool.host.waited()
        answers = list(map(answer_json, questions, padded(questions, answered)))
        return replace(
            _output(questions, answered), details={"answers": answers, "by": answered.by}
        )


async def put(
    ctx: AgentContext, call_id: str, tool: str, questions: Sequence[UserQuestion]
) -> UserAnswers:
    """Put questions to the person when nothing else is asked, and publish question and answer.
    Cancelling it takes them back."""
    server = questions[0].server
    async with ctx.rules.asking:
        shown = tuple(map(question_json, questions))
        ctx.publish(QuestionAsked(call_id, tool, shown, server))
        asked = [replace(one, call=call_id) for one in questions]
        asking = ctx.rules.approver.ask_user(asked, ctx.role)
        # A server's question is part of a call that runs, which a pause lets finish.
        answered = await (asking if server else ctx.state.pause.question(asking))
    answers = tuple(map(answer_json, questions, padded(questions, answered)))
    ctx.publish(QuestionAnswered(call_id, tool, answers, answered.by, server))
    for question, answer in zip(questions, answered.answers, strict=False):
        for choice in question.choices:
            if choice.notice and choice.label in answer.chosen:
                ctx.publish(Notice(choice.notice))
    return answered


async def put_secret(
    ctx: AgentContext, call_id: str, tool: str, question: SecretQuestion
) -> SecretAnswer | None:
    """Ask the person for a secret when nothing else is asked; None where nobody can be asked. That
    it was asked and answered is published, or that it can't be, and nothing of the answer."""
    approver = secret_asker(ctx.rules.approver)
    if approver is None:
        program = f"{one_line(question.command)} in {question.terminal}"
        ctx.publish(Notice(f"{program} waits for a secret. {_NOT_HERE}"))
        return None
    async with ctx.rules.asking:
        text = f"{question.command} in {question.terminal} reads a secret: {question.prompt}"
        shown = question_json(UserQuestion(_HIDDEN, text, ()))
        ctx.publish(QuestionAsked(call_id, tool, (shown,)))
        answer = None
        try:
            answer = await ctx.state.pause.question(approver.ask_secret(question))
        finally:
            chosen = [_TYPED if answer is not None else _NOT_TYPED]
            given = {"header": _HIDDEN, "chosen": chosen, "text": ""}
            ctx.publish(QuestionAnswered(call_id, tool, (given,), "person"))
    return answer


def _output(questions: Sequence[UserQuestion], given: UserAnswers) -> ToolOutput:
    """The result, with what was asked and what was answered."""
    asked = [f"- {one_line(one.text)}" for one in questions]
    if given.by == "default":
        return ToolOutput.text("\n".join([_NOBODY, "", *asked]), summary="nobody to ask")
    if not any(given.answers):
        text = "\n".join([_UNANSWERED, "", *asked])
        return ToolOutput.text(text, summary="not answered")
    lines = ["The user answered:"]
    for line, answer in zip(asked, padded(questions, given), strict=True):
        lines += [line, f"  {_in_words(answer)}"]
    summary = " · ".join(one_line(one.summary) for one in given.answers if one)
    return ToolOutput.text("\n".join(lines), summary=summary)


def _in_words(answer: UserAnswer) -> str:
    if not answer:
        return "(not answered: decide yourself, and say what you decided)"
    parts = [", ".join(answer.chosen)] if answer.chosen else []
    parts += [f"in their own words: {answer.text}"] if answer.text else []
    return "; ".join(parts)
