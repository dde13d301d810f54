"""What an earlier run left open: each call with what is known of it, and the ways on."""

from __future__ import annotations

import asyncio

from tui.agent.interrupted_work import Leftovers, left_open
from tui.app.ports import Agent
from tui.app.resume import known, stopped, told
from tui.core.formatting import plural
from tui.plain.conversation import Talk
from tui.plain.speech_text import said


async def ask_left(talk: Talk, agent: Agent) -> None:
    """Say it, where there is something, and ask what shall become of it."""
    root, records = talk.services.workspace, list(agent.session.records)
    left = await asyncio.to_thread(left_open, records, root)
    while left:
        ways = [("tell", "Tell the model what is known, and let it go on")]
        if left.calls:
            ways.append(("again", "Run what was interrupted again, with the questions it needs"))
        if left.orphans:
            count = len(left.orphans)
            runs = "runs" if count == 1 else "run"
            ways.append(("stop", f"Stop {plural(count, 'command')} that still {runs}"))
        ways.append(("leave", "Leave it: the model sees that it was interrupted"))
        ids = [call.call_id for call in left.calls]
        match await talk.asker.choose(left_lines(left), ways):
            case "tell":
                talk.submit(told(left))
                return
            case "again":
                talk.go_on(ids)
                return
            case "leave":
                await agent.close_calls(ids)
                talk.face.say("Left as it is. The model sees that it was interrupted.")
                return
            case "stop":
                _, words = await stopped(left.orphans, talk.services.clock)
                talk.face.say(words)
                left = Leftovers(left.calls)
            case _:
                return


def left_lines(left: Leftovers) -> list[str]:
    """Each call with what is known of it, each command that still runs."""
    lines = ["The last run of this session was interrupted."]
    lines += [
        said(f"Tool {call.tool} {call.label}".rstrip() + f": {known(call)}.") for call in left.calls
    ]
    lines += [
        said(
            f"Still running: process {each.pid}, {each.command}, since"
            f" {each.started[:16].replace('T', ' ')} UTC."
        )
        for each in left.orphans
    ]
    return lines
