"""/hooks: the person's hooks, where there is no panel for them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tui.app.reports import Report
from tui.app.reports.hooks import ABOUT, NONE, hook_lines, hook_rows, untrusted_rows
from tui.core.formatting import plural

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.app.conversation import Conversation
    from tui.app.reports import Row
    from tui.app.services import AppServices


async def hooks(conversation: Conversation, _: str) -> None:
    """List them as they are in the files now."""
    agent, frontend = conversation.open_agent(), conversation.frontend
    if agent is None:
        return
    if rows := await rows_of_hooks(agent, conversation.services):
        count = sum(row.mark != "!" for row in rows)
        frontend.report(Report(plural(count, "hook"), hook_lines(rows)))
    else:
        frontend.say(f"{NONE} {ABOUT}", hint="Write hooks.json: see /help hooks.")


async def rows_of_hooks(agent: Agent, services: AppServices) -> list[Row]:
    """Return the hooks as they are in the files now, those that don't count too."""
    found = await asyncio.to_thread(agent.find_hooks)
    brought = await asyncio.to_thread(services.brought)
    untrusted = untrusted_rows(brought, services.trust(), services.workspace)
    return [*hook_rows(found, agent.session.records), *untrusted]
