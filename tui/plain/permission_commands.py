"""Commands about what the agent may do."""

from __future__ import annotations

from typing import Final

from tui.app.commands.permissions import widened
from tui.app.permission_log import decisions, rule_lines
from tui.core.errors import UsageError
from tui.core.formatting import plural
from tui.core.paths import shorten
from tui.permissions.types import Mode
from tui.plain.conversation import Talk, opened
from tui.plain.speech_text import said

_DECISIONS: Final = 20


async def plan(talk: Talk, wanted: str) -> None:
    """/plan: into plan mode or back; /plan edits accepts edits, /plan ask asks again."""
    agent = opened(talk)
    modes: dict[str, Mode] = {
        "": "ask" if agent.mode == "plan" else "plan",
        "edits": "accept_edits",
        "accept edits": "accept_edits",
        "ask": "ask",
        "off": "ask",
        "on": "plan",
    }
    mode = modes.get(wanted.strip().lower())
    if mode is None:
        raise UsageError(f"/plan {wanted} is not known.", hint="/plan, /plan edits or /plan ask")
    agent.mode = mode
    told = {
        "ask": "Mode: the agent asks before it changes anything.",
        "accept_edits": "Mode: edits of files are accepted; commands are asked for. /plan ask"
        " leaves it.",
        "plan": "Plan mode: the agent only reads. /plan again leaves it.",
    }
    talk.face.say(told[mode])


async def permissions(talk: Talk, _: str) -> None:
    agent = opened(talk)
    rules = rule_lines(
        talk.services.permissions(),
        mode=agent.mode,
        elevated=talk.teller.elevated,
        folders=[shorten(folder) for folder in agent.folders],
    )
    talk.face.say("Rules in force; deny counts before ask, ask before allow.")
    talk.face.say(*(f"{name}: {said(value)}." for name, value in rules))
    found = decisions(agent.session.records)
    talk.face.say(f"{plural(len(found), 'decision')}." if found else "No decision yet.")
    talk.face.say(
        *(
            said(f"{one.time}, {one.tool} {one.subject}: {one.answer} by {one.by}. {one.reason}")
            for one in found[-_DECISIONS:]
        )
    )


async def add_dir(talk: Talk, folder: str) -> None:
    text, _, hint = widened(opened(talk), talk.services.workspace, folder)
    talk.face.say(f"{text} {hint}".rstrip())
