"""/model: which model answers, and whether the session fits it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from tui.app.conversation import Conversation
from tui.app.dialog_data import ModelQuestion, ModelRow, YesNoQuestion
from tui.app.services import AppServices
from tui.core.formatting import money, tokens

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.provider.base import ModelInfo
    from tui.provider.prices import Payer


async def model(conversation: Conversation, name: str) -> None:
    """Choose the model of the next request, or name it."""
    if conversation.open_agent() is None:
        return
    if name:
        await _switch(conversation, name)
    else:
        await choose_model(conversation)


async def choose_model(conversation: Conversation) -> bool:
    """Let the person choose. Returns True if another model is asked now."""
    agent = conversation.agent
    if agent is None:
        return False
    await conversation.services.refresh_models()
    choices = await rows(conversation.services, agent)
    name = await conversation.frontend.choose(ModelQuestion(choices))
    return name is not None and await _switch(conversation, name)


async def rows(services: AppServices, agent: Agent) -> list[ModelRow]:
    """The models that can be chosen, the one in use first."""
    model_rows: list[ModelRow] = []
    for row in await listed(services, agent.models.current):
        info = await services.model_info(row.name)
        window = agent.models.window if row.now else row.window
        fit = agent.models.fits(replace(info, window=window))
        fitted = replace(row, window=window, needs=fit.tokens, fits=fit.ok)
        model_rows.append(_with_next(agent, fitted, info))
    return model_rows


async def listed(services: AppServices, chosen: str) -> list[ModelRow]:
    """The models that are known, with their windows, whatever session is open. The chosen one comes
    first, and needn't be known."""
    known = list(services.models())
    if not any(row.name == chosen for row in known):
        known.insert(0, ModelRow(chosen, 0))
    model_rows: list[ModelRow] = []
    for row in known:
        info = await services.model_info(row.name)
        now = row.name == chosen
        model_rows.append(replace(row, window=info.window, source=info.source, now=now))
    return sorted(model_rows, key=lambda row: not row.now)


def _with_next(agent: Agent, row: ModelRow, info: ModelInfo) -> ModelRow:
    """Return a row with what the next prompt costs, and how many of its tokens are sent again."""
    usd, sends = next_prompt_words(agent, info)
    if not usd:
        return replace(row, sends="Nothing was sent yet, so switching costs nothing.")
    if row.now and not agent.models.next_prompt(info).cached:
        return replace(row, next=usd, sends="In use. Staying with it costs nothing extra.")
    return replace(row, next=usd, sends=sends)


def next_prompt_words(agent: Agent, info: ModelInfo, payer: Payer | None = None) -> tuple[str, str]:
    """Price the next prompt if a model gets it, and say in a sentence why; "" before the first.
    `payer` is another than the one in use."""
    found = agent.models.next_prompt(info, payer)
    if not found.tokens:
        return "", ""
    usd = f"≈ {money(found.usd)}" if found.usd is not None else "—"
    again, price = found.tokens - found.cached, f": {usd}" if found.usd is not None else ""
    sends = f"sends all {tokens(again)} tokens again"
    if found.cached:
        new = f", {tokens(again)} new" if again else ""
        sends = f"reads {tokens(found.cached)} tokens from the cache{new}"
    return usd, f"The next prompt {sends}{price}."


async def use_model(conversation: Conversation, name: str) -> None:
    """Ask another model from the next request on."""
    if agent := conversation.agent:
        for event in agent.models.use(await conversation.services.model_info(name)):
            conversation.frontend.show(event)
        conversation.frontend.refresh()


async def _switch(conversation: Conversation, name: str) -> bool:
    """Ask another model from the next request on; one that is too small only if that is meant."""
    agent, frontend = conversation.open_agent(to_write=True), conversation.frontend
    if agent is None:
        return False
    name = await asyncio.to_thread(conversation.services.whole_name, name)
    if name == agent.models.current:
        frontend.say(f"Already using {name}.")
        return False
    info = await conversation.services.model_info(name)
    if not await fits_or_meant(conversation, agent, info):
        return False
    before = agent.models.current
    cost = _with_next(agent, ModelRow(name, 0), info)
    await use_model(conversation, name)
    text = f"Switched to {name}. {cost.sends}" if cost.next else f"Switched to {name}."
    frontend.say(text, "success", hint=f"/model {before} switches back.")
    return True


async def fits_or_meant(conversation: Conversation, agent: Agent, info: ModelInfo) -> bool:
    """True if the session fits a model, or the person wants it all the same."""
    fit = agent.models.fits(info)
    if fit.ok:
        return True
    question = YesNoQuestion(
        f"Switch to {info.id}?",
        f"The session needs {tokens(fit.tokens)} tokens including the next answer, but"
        f" its window holds {tokens(fit.window)}. The oldest part would be shortened.",
        yes="Switch",
        no="Cancel",
    )
    return await conversation.frontend.confirm(question)


def fallback_for(services: AppServices, model: str) -> str:
    """Return the model that is asked where `model` cannot answer, "" for none."""
    ranked = sorted((row.fallback, row.name) for row in services.models() if row.fallback)
    return next((name for _, name in ranked if name != model), "")
