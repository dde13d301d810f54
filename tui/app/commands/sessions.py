"""Commands about the session as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui.app import error_options
from tui.app.damage_report import damage_findings
from tui.app.dialog_data import AnswerOption, ChoiceQuestion, SessionRow
from tui.app.open_session import ask_damaged, forked, switch_session
from tui.app.services import SessionChoice
from tui.core.formatting import plural
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line
from tui.session.naming import named

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.app.conversation import Conversation
    from tui.app.session_repository import Format
    from tui.session.session import Session

_FORMATS: Final[dict[str, Format]] = {
    "md": "md",
    "markdown": "md",
    "html": "html",
    "jsonl": "jsonl",
}

_CHOICES: Final = 9
"""Sessions that are offered where a title fits several."""
_INIT: Final = (
    "Look at this folder and write AGENTS.md for whoever works here next. Read the README, the"
    " build and test configuration and a few typical files first. Say in under 60 lines: what the"
    " project is, how to build, test and check it (the exact commands), how it is laid out, and"
    " the conventions that aren't obvious. Only what you have verified. If AGENTS.md is"
    " there already, improve it and keep what is right."
)
"""The prompt of /init."""


async def new(conversation: Conversation, _: str) -> None:
    if await conversation.save_memory_first():
        await switch_session(conversation, SessionChoice())


async def resume(conversation: Conversation, wanted: str) -> None:
    """Open a session that is chosen, or named by its id or title; at the message whose id follows
    an id."""
    if conversation.opening:
        conversation.frontend.say("A session is being opened. Answer its question first.")
        return
    if not wanted:
        if choice := await conversation.frontend.pick_session():
            await switch_session(conversation, choice)
        return
    id_, _, message = wanted.partition(" ")
    rows = await conversation.services.list_sessions()
    matches = [row for row in rows if row.id.startswith(id_)]
    if not matches:
        matches, message = named(wanted, ((row.title, row) for row in rows)), ""
    if not matches:
        text = f"No session in this folder is called {wanted}, by id or title."
        conversation.frontend.say(text, "warning", hint="See /sessions.")
        return
    if row := matches[0] if len(matches) == 1 else await _one_of(conversation, matches):
        await switch_session(conversation, SessionChoice(row.path, message=message.strip()))


async def _one_of(conversation: Conversation, rows: Sequence[SessionRow]) -> SessionRow | None:
    """Let the person choose the session that they mean; None for none of them."""
    shown = rows[:_CHOICES]
    answers = tuple(
        AnswerOption(str(n), f"{one_line(row.title) or '(no prompts)'} · {row.id}", f"session-{n}")
        for n, row in enumerate(shown, 1)
    )
    more = len(rows) - len(shown)
    about = f"{plural(len(rows), 'session')} of this folder fit"
    about += f"; {more} more: see /sessions." if more > 0 else "."
    answer = await conversation.frontend.choose(ChoiceQuestion("Which session?", about, answers))
    return dict(zip((one.name for one in answers), shown, strict=True)).get(answer or "")


async def fork(conversation: Conversation, _: str) -> None:
    """Continue in a copy of the session, as it is in memory."""
    if agent := _begun(conversation, "fork"):
        choice = await forked(agent.session, conversation.services)
        await switch_session(conversation, choice)


async def rename(conversation: Conversation, title: str) -> None:
    if not title:
        conversation.frontend.say("Give a title:", hint="/rename a few words")
    elif _begun(conversation, "rename") and conversation.open_agent(to_write=True):
        conversation.rename(title)


async def export(conversation: Conversation, format_: str) -> None:
    """Write the session, as it is in memory, into the workspace."""
    say = conversation.frontend.say
    wanted = _FORMATS.get(format_.lower() or "md")
    if wanted is None:
        say(f"Unknown format {format_}.", "warning", hint="Use /export md, html or jsonl.")
        return
    agent = _begun(conversation, "export")
    if agent is None:
        return
    root = conversation.services.workspace
    path, secrets = await asyncio.to_thread(_write, agent.session, root, wanted)
    removed = f"Removed {plural(secrets, 'secret')}." if secrets else ""
    say(f"Written to {shorten(path)}.", "success", hint=removed)


async def repair(conversation: Conversation, _: str) -> None:
    """Show what is damaged; after a refused request, the ways on from it."""
    agent, say = _begun(conversation, "repair"), conversation.frontend.say
    if agent is None:
        return
    if agent.context.repair_levels():
        await error_options.retry(conversation, "")
        return
    if not conversation.says_idle():
        return
    findings = damage_findings((*agent.session.findings, *agent.context.view().findings))
    now = SessionChoice(agent.session.path)
    if not findings:
        say("This session needs no repair.", "success")
    elif now.path is None:
        say(f"Repaired in memory: {plural(len(findings), 'place')}.")
    else:
        choice = await ask_damaged(conversation, agent, now, findings)
        if choice is not None and choice != now:
            await switch_session(conversation, choice)


async def init(conversation: Conversation, _: str) -> None:
    """Let the model write AGENTS.md."""
    conversation.submit(_INIT)


def _begun(conversation: Conversation, what: str) -> Agent | None:
    """The agent whose session holds something; else a message says that there is nothing yet."""
    agent = conversation.agent
    if agent is None or not agent.session.records:
        conversation.frontend.say(f"Nothing to {what} yet.")
        return None
    return agent


def _write(session: Session, root: Path, wanted: Format) -> tuple[Path, int]:
    """Write a session, as it is in memory, as a document into a folder. Blocks."""
    from tui.app.session_repository import write_document  # noqa: PLC0415 - on demand, as below
    from tui.session.reader import LoadedSession  # noqa: PLC0415

    loaded = LoadedSession(session.path or root, session.header, tuple(session.records), ())
    return write_document(loaded, root, session.id, wanted, session.title)
