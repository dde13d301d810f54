"""/effort: how deep the model thinks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.app.dialog_data import AnswerOption, ChoiceQuestion

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.app.conversation import Conversation


async def effort(conversation: Conversation, wanted: str) -> None:
    """Take another level from the next request on, after its price was shown; or say which holds.

    Where there is a price, no turn may run.
    """
    agent, say = conversation.open_agent(), conversation.frontend.say
    if agent is None:
        return
    level = wanted.strip().lower()
    if not agent.efforts:
        say(f"{agent.model} has no levels of effort.")
    elif not level:
        own = f"; {agent.own_effort} is the model's own" if agent.own_effort else ""
        say(f"The effort is {agent.effort}{own}.", hint=f"/effort {'|'.join(agent.efforts)}")
    elif level not in agent.efforts:
        say(f"{agent.model} has no effort {level}.", "warning", hint=" ".join(agent.efforts))
    elif await _is_wanted(conversation, agent, level):
        for event in await agent.use_effort(level):
            conversation.frontend.show(event)
        say(f"From the next request on: effort {agent.effort}.", "success")


async def next_effort(conversation: Conversation) -> None:
    """The level above the one that holds, behind the highest the lowest."""
    agent = conversation.open_agent()
    if agent is None:
        return
    levels = agent.efforts
    place = levels.index(agent.effort) + 1 if agent.effort in levels else 0
    await effort(conversation, levels[place % len(levels)] if levels else "")


async def _is_wanted(conversation: Conversation, agent: Agent, level: str) -> bool:
    cost = agent.effort_cost(level)
    if cost is None:
        return True
    if conversation.idle_agent() is not agent:
        return False
    question = ChoiceQuestion(
        f"Change the effort to {level}?",
        f"With this model the cache begins anew: {cost.price}.",
        (AnswerOption("c", "Change", "change"), AnswerOption("b", "Back", "back")),
    )
    chosen = await conversation.frontend.choose(question)
    return chosen == "change" and conversation.agent is agent
