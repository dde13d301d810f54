"""/skills: the skills there are, where they are from, and what is wrong with others."""

from __future__ import annotations

import asyncio

from tui.app.conversation import Conversation
from tui.app.reports import Report
from tui.core.formatting import plural
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line
from tui.settings.skills import skill_lines


async def skills(conversation: Conversation, _: str) -> None:
    """Show them; what can be done where there are none."""
    own, frontend = conversation.user_commands, conversation.frontend
    await asyncio.to_thread(own.load)
    installed = own.skills
    if installed is None or not (installed.skills or installed.problems):
        place = shorten(conversation.services.folders.config / "skills")
        frontend.say("No skills here.", hint=f"Put their folders into {place}: /help skills.")
        return
    lines = skill_lines(installed.skills.values())
    if installed.skills and conversation.agent and not conversation.agent.offers_skills:
        lines.append("This session began without skills; /reload offers them to the model.")
    lines += [f"Not used: {one_line(problem)}" for problem in installed.problems]
    frontend.report(Report(plural(len(installed.skills), "skill"), lines))
