"""The models that can be chosen, and whether the session fits each."""

from __future__ import annotations

from dataclasses import replace

from tui.app.dialog_data import ModelRow
from tui.app.ports import Agent, AppServices


async def rows(services: AppServices, agent: Agent) -> list[ModelRow]:
    """What the picker shows, the model in use first."""
    listed = list(services.models())
    if not any(row.name == agent.model for row in listed):
        listed.insert(0, ModelRow(agent.model, agent.window))
    told: list[ModelRow] = []
    for row in listed:
        info = await services.model_info(row.name)
        now = row.name == agent.model
        window, source = (agent.window, row.source) if now else (info.window, info.source)
        fit = agent.fits(replace(info, window=window))
        told.append(
            replace(row, window=window, source=source, needs=fit.tokens, fits=fit.ok, now=now)
        )
    return sorted(told, key=lambda row: not row.now)
