"""/btw: a question beside the conversation, answered from what the cache holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui.app.dialog_data import YesNoQuestion
from tui.core.errors import HoldfastError

if TYPE_CHECKING:
    from tui.agent.side_questions import SidePrice
    from tui.app.conversation import Conversation

USAGE: Final = "/btw QUESTION asks on the side; the agent keeps working and never sees it."


async def btw(conversation: Conversation, question: str) -> None:
    """Ask, and show the answer; what is not cheap is asked about first."""
    agent, question = conversation.open_agent(to_write=True), question.strip()
    if agent is None:
        return
    price = agent.side_questions.price(question=question)
    if not question:
        conversation.frontend.say(USAGE, hint=f"Now: {price.sentence}.")
        return
    if not price.cheap and not await conversation.frontend.confirm(_confirmation(price)):
        conversation.frontend.say("Not asked.")
        return
    if conversation.agent is not agent:  # another session was opened meanwhile
        return
    conversation.frontend.say(f"Asking on the side: {price.sentence}.")

    async def ask() -> None:
        try:
            await agent.side_questions.ask(question)
        except HoldfastError as error:
            conversation.frontend.say(error.message, "warning", hint=error.hint)

    await conversation.run_reading("answering on the side", ask)


def _confirmation(price: SidePrice) -> YesNoQuestion:
    return YesNoQuestion(
        "Ask on the side?",
        f"Little of the conversation is in the cache: {price.sentence}.",
        "Ask",
        "Don't ask",
    )
