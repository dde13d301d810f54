"""/skills: the skills there are, where there is no panel for them."""

from __future__ import annotations

import asyncio

from tui.app.conversation import Conversation
from tui.app.reports import Report
from tui.app.reports.skills import ABOUT, NOT_OFFERED, skill_lines, skill_rows
from tui.core.formatting import plural
from tui.core.paths import shorten


async def skills(conversation: Conversation, _: str) -> None:
    """Show them; what can be done where there are none."""
    own, frontend = conversation.user_commands, conversation.frontend
    await asyncio.to_thread(own.load)
    installed = own.skills
    if installed is None or not (installed.skills or installed.problems):
        place = shorten(conversation.services.folders.config / "skills")
        frontend.say(f"No skills here. {ABOUT}", hint=f"Put them into {place}: see /help skills.")
        return
    lines = skill_lines(skill_rows(installed))
    if installed.skills and conversation.agent and not conversation.agent.offers_skills:
        lines.append(NOT_OFFERED)
    frontend.report(Report(plural(len(installed.skills), "skill"), lines))
