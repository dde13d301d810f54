"""ask_user: put questions to the person, who chooses an answer or writes one."""

from __future__ import annotations

from typing import Annotated, ClassVar

from tui.core.questions import AnswerChoice, UserQuestion
from tui.tools.base import AgentTool, Effect, Params, about


# Docstrings would go into the tool's schema.
class ChoiceParams(Params, frozen=True):
    label: Annotated[str, about("The answer, in one to five words.", min_length=1)]
    description: Annotated[str, about("What it means or costs, in a line.")] = ""


class QuestionParams(Params, frozen=True):
    header: Annotated[str, about("What it is about, in one or two words.", min_length=1)]
    question: Annotated[str, about("The whole question.", min_length=1)]
    choices: Annotated[
        list[ChoiceParams], about("Two to six, the best first.", min_length=2, max_length=6)
    ]
    several: Annotated[bool, about("Whether more than one choice may be taken.")] = False


class AskUserParams(Params, frozen=True):
    questions: Annotated[list[QuestionParams], about("One to four.", min_length=1, max_length=4)]

    @property
    def asked(self) -> tuple[UserQuestion, ...]:
        """Return the questions as a front end takes them."""
        return tuple(
            UserQuestion(
                one.header,
                one.question,
                tuple(AnswerChoice(choice.label, choice.description) for choice in one.choices),
                one.several,
            )
            for one in self.questions
        )


class AskUser(AgentTool[AskUserParams]):
    name: ClassVar[str] = "ask_user"
    effect: ClassVar[Effect] = "none"
    params: ClassVar[type[Params]] = AskUserParams

    def label(self, params: AskUserParams) -> str:
        if len(params.questions) == 1:
            return params.questions[0].question
        return ", ".join(one.header for one in params.questions)
