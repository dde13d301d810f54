"""/hooks: the person's hooks, what each runs for, and how it ended last."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui.app.reports import Report
from tui.core.formatting import plural
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line
from tui.session.records import Record
from tui.settings.hook_files import Hooks

if TYPE_CHECKING:
    from tui.app.conversation import Conversation


async def hooks(conversation: Conversation, _: str) -> None:
    """List them as they are in the files now."""
    agent, frontend = conversation.open_agent(), conversation.frontend
    if agent is None:
        return
    known_hooks = await asyncio.to_thread(agent.find_hooks)
    if lines := hook_lines(known_hooks, agent.session.records):
        frontend.report(Report(plural(len(known_hooks.all), "hook"), lines))
    else:
        frontend.say("No hooks yet.", hint="Write hooks.json: see /help hooks.")


def hook_lines(found: Hooks, records: Sequence[Record]) -> list[str]:
    """Two lines for each hook, and one for each file that is wrong."""
    runs = [record.data for record in records if record.type == "hook"]
    ended = {(run.get("event"), run.get("command")): run.get("outcome") for run in runs}
    count = Counter((run.get("event"), run.get("command")) for run in runs)
    lines: list[str] = []
    for one in found.all:
        if one.problem:
            continue  # it is among the problems
        this = one.event, one.command
        times = f"ran {plural(count[this], 'time')}, last {ended[this]}" if this in ended else ""
        where = shorten(one.path) if one.path else ""
        blocks = "blocks if it fails" if one.on_error == "block" else ""
        facts = (where, f"at most {one.timeout_s:g} s", blocks, times)
        when = f"{one.event} {one.matcher}".rstrip()
        lines += [
            f"{one_line(when)}: {one_line(one.command)}",
            f"    {' · '.join(filter(None, facts))}",
        ]
    return [*lines, *map(one_line, found.problems)]
