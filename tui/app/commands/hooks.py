"""/hooks: the person's hooks, where there is no panel for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.app.reports import Report
from tui.app.reports.hooks import ABOUT, NONE, hook_lines, rows_of_hooks
from tui.core.formatting import plural

if TYPE_CHECKING:
    from tui.app.conversation import Conversation


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
