"""/effort and /think: how deep the model thinks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.agent.prompts import parse
from tui.app.dialog_data import AnswerOption, ChoiceQuestion
from tui.core.fact_words import price_before

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
    models, level = agent.models, wanted.strip().lower()
    if not models.efforts:
        say(f"{models.current} has no effort levels.")
    elif not level:
        own = f"; {models.own_effort} is the model's default" if models.own_effort else ""
        to_come = models.effort_to_come
        later = f"; {to_come} applies when the cache restarts" if to_come else ""
        say(f"Effort is {models.effort}{own}{later}.", hint=f"/effort {'|'.join(models.efforts)}")
    elif level not in models.efforts:
        hint = " ".join(models.efforts)
        say(f"{models.current} has no effort level {level}.", "warning", hint=hint)
    elif conversation.open_agent(to_write=True) is None:
        return
    elif when := await _when(conversation, agent, level):
        for event in await models.use_effort(level, wait=when == "wait"):
            conversation.frontend.show(event)
        if to_come := models.effort_to_come:
            say(
                f"Effort changes to {to_come} when the cache restarts,",
                hint="such as after /compact or /reload.",
            )
        else:
            # /think goes one level up from what was chosen
            more = "" if models.effort == level else f": one above {level}, since /think is on"
            say(f"Effort is now {models.effort}{more}.", "success")


async def next_effort(conversation: Conversation, step: int = 1) -> None:
    """The level above the one that holds, after the highest the lowest; or with -1 below it."""
    agent = conversation.open_agent()
    if agent is None:
        return
    levels = agent.models.efforts
    place = levels.index(agent.models.effort) + step if agent.models.effort in levels else 0
    await effort(conversation, levels[place % len(levels)] if levels else "")


async def think(conversation: Conversation, typed: str) -> None:
    """Send a prompt that begins with /think, after the price was shown of switching it."""
    agent, switched = conversation.agent, parse(typed).changes.get("think")
    cost = agent.models.think_cost(bool(switched)) if agent and switched is not None else None
    if agent is None or cost is None:
        conversation.submit(typed)
        return
    title = f"Switch /think {'on' if switched else 'off'}?"
    when = await _asked(conversation, agent, title, price_before(cost))
    if when:
        conversation.submit(typed, waits=when == "wait")
    else:
        conversation.frontend.say("Nothing was sent.", hint="↑ brings the prompt back.")


async def _when(conversation: Conversation, agent: Agent, level: str) -> str:
    """Ask when another level is wanted: "now", "wait" for the next break, or "" for never."""
    cost = agent.models.effort_cost(level)
    if cost is None:
        return "now"
    if conversation.idle_agent() is not agent:
        return ""
    return await _asked(conversation, agent, f"Change the effort to {level}?", price_before(cost))


async def _asked(conversation: Conversation, agent: Agent, title: str, price: str) -> str:
    question = ChoiceQuestion(
        title,
        f"This restarts the model's cache: {price}. When it restarts anyway,"
        " such as after /compact, the change costs nothing extra.",
        (
            AnswerOption("n", "Now", "now"),
            AnswerOption("w", "When the cache restarts anyway", "wait"),
        ),
    )
    chosen = await conversation.frontend.choose(question)
    return chosen if chosen in {"now", "wait"} and conversation.agent is agent else ""
