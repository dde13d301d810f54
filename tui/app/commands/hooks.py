"""/hooks: the person's hooks, what each runs for, and how it ended last."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from tui.core.formatting import plural
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line

if TYPE_CHECKING:
    from tui.app.conversation import Conversation


async def hooks(conversation: Conversation, _: str) -> None:
    """List them as they are in the files now."""
    agent, frontend = conversation.open_agent(), conversation.frontend
    if agent is None:
        return
    found = await asyncio.to_thread(agent.find_hooks)
    runs = [record.data for record in agent.session.records if record.type == "hook"]
    count = Counter(str(run.get("command")) for run in runs)
    last = {str(run.get("command")): str(run.get("outcome")) for run in runs}
    lines: list[str] = []
    for one in found.all:
        ran = f" · ran {plural(count[one.command], 'time')}, last {last[one.command]}"
        where = shorten(one.path) if one.path else ""
        lines += [
            f"{one.event} {one.matcher}".rstrip() + f": {one_line(one.command)}",
            f"    {where} · at most {one.timeout_s:g} s{ran if one.command in last else ''}",
        ]
    lines += map(one_line, found.problems)
    if lines:
        frontend.report(plural(len(found.all), "hook"), lines)
    else:
        frontend.say("No hooks yet.", hint="Write hooks.json: see /help hooks.")
