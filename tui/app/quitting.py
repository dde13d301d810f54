"""The fate of running work when the person quits: nothing ends without a question."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tui.app.dialog_data import AnswerOption, ChoiceQuestion
from tui.app.passing_questions import answer_while, until
from tui.app.to_background import bg
from tui.core.formatting import plural, shortened
from tui.core.text_cleaning import one_line

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.app.conversation import Conversation

Quit: TypeAlias = Literal["end", "leave"]
"""The fate of commands: they end with the program, or run on for the next start of the session."""

_COMMANDS: Final = (
    AnswerOption("l", "Leave them running and quit", "leave"),
    AnswerOption("e", "End them and quit", "end"),
)
_TURN: Final = (
    AnswerOption("b", "Continue in the background", "background"),
    AnswerOption("e", "Stop and quit", "end"),
)
_SHOWN: Final = 5
_CHARS: Final = 70


async def ask_to_quit(conversation: Conversation, *, again: bool = False) -> Quit | None:
    """Ask how to quit. None where the person stays, or where the turn was handed to the background,
    which quits itself. Without a question where nothing runs, or nobody could take it over.
    `again`: the question comes by itself, in the place of one that does not hold any more."""
    agent = conversation.agent
    if agent is None or agent.session.read_only or agent.session.path is None:
        return "end"
    question = _question(conversation, agent)
    if question is None:
        return "end"
    asking = conversation.frontend.choose(replace(question, unasked=again))
    over = _no_longer(conversation, agent, question)
    answer = await answer_while(asking, over, "changed")
    match answer:
        case "changed":
            return await ask_to_quit(conversation, again=True)
        case "background":
            await bg(conversation, "")
            return None
        case "leave":
            return "leave"
        case "end":
            return "end"
        case _:
            return None


async def _no_longer(conversation: Conversation, agent: Agent, question: ChoiceQuestion) -> None:
    """Wait until a question doesn't hold any more: the turn or all commands have ended."""
    if question.options is _TURN:
        await conversation.at_rest()
    else:
        jobs = [owned.job for owned in agent.jobs.all]
        await until(lambda: all(job.ended for job in jobs))


def _question(conversation: Conversation, agent: Agent) -> ChoiceQuestion | None:
    running = [owned.job for owned in agent.jobs.all if not owned.job.ended]
    named = [shortened(one_line(job.command), _CHARS) for job in running[:_SHOWN]]
    if more := len(running) - _SHOWN:
        named += [f"and {more} more"] if more > 0 else []
    if conversation.in_turn and conversation.services.background_options() is not None:
        along = ", and so do its commands" if running else ""
        text = f"In the background it continues without a screen{along}."
        return ChoiceQuestion("The agent is working", text, _TURN, named)
    if running:
        text = f"{plural(len(running), 'command')} in the background. The next start shows them."
        return ChoiceQuestion("Commands are still running", text, _COMMANDS, named)
    return None
