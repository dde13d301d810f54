"""Opens the terminal that a card is about, live or as its recording; and records that the person
typed in one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from tui.core.facts import JobFinished
from tui.core.retold import retold
from tui.ui.screens.jobs import job_screen
from tui.ui.widgets.conversation.items import ToolItem, terminal_of

if TYPE_CHECKING:
    from tui.ui.frontend import ScreenFrontend


async def open_terminal(frontend: ScreenFrontend, item: ToolItem) -> None:
    """Show the terminal of a call as it is, or replay its recording."""
    from tui.ui.screens.replay import ReplayScreen  # noqa: PLC0415 - it has the emulator

    agent, name = frontend.conversation.agent, terminal_of(item)
    if agent is None or not name:
        frontend.say("This call has no terminal.")
        return
    for owned in agent.jobs.all:
        if owned.job.id == name and not owned.owner and owned.job.terminal is not None:
            frontend.app.push_screen(job_screen(owned))
            return
    ends = (fact for _, fact in retold(agent.session.records) if isinstance(fact, JobFinished))
    last = next((end for end in reversed([*ends]) if end.id == name), None)
    if last is None:
        frontend.say(f"{name} isn't known any more.")
    elif not last.path or not await asyncio.to_thread(Path(last.path).is_file):
        frontend.say(f"The recording of {name} is gone.", "warning", hint=last.path)
    else:
        frontend.app.push_screen(ReplayScreen(Path(last.path), f"{name} {last.command}"))


async def record_typing(frontend: ScreenFrontend, job: str) -> None:
    """Record that the person typed in a terminal, without what it was, and show it."""
    if (agent := frontend.conversation.agent) is not None:
        for event in await agent.note(f"You typed in {job}."):
            frontend.show(event)
