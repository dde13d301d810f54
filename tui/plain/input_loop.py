"""Takes what the person types, and passes it to the conversation.

What is typed while a turn runs joins it; a command is carried out at once. Everything happens in
the order in which it was typed.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tui.app.commands.table import COMMANDS
from tui.app.conversation import Conversation
from tui.app.error_options import offer_recovery
from tui.app.mcp_offers import prompts_of, resources_of
from tui.app.open_session import RECHECK_S, SessionWatch
from tui.app.quitting import ask_to_quit
from tui.app.router import route
from tui.app.work import explained
from tui.core.errors import HoldfastError
from tui.plain.frontend import PlainFrontend
from tui.plain.speech_text import sentence

log = logging.getLogger(__name__)

DRAFT_S: Final = 0.5
"""Seconds between looks at what is typed: there is no event for a key."""

_MATCHES: Final = 100


async def converse(frontend: PlainFrontend) -> None:
    """Converse until the person leaves. A session is open, or could not be opened."""
    conversation = frontend.conversation
    ahead = asyncio.create_task(_take_typed_ahead(frontend), name="typed ahead")
    try:
        while not frontend.leaving:
            if conversation.busy:
                await conversation.at_rest()
            elif frontend.approver.asking:  # a command that was typed ahead asks
                await frontend.approver.answered()
            elif failed := frontend.failed:
                frontend.failed = None
                await _guarded(frontend, offer_recovery(conversation, failed))
            elif work := frontend.interrupted:
                frontend.interrupted = None
                await _guarded(frontend, frontend.ask_about_interrupted_work(work))
            elif (typed := await frontend.next_prompt()) is not None:
                await _guarded(frontend, _submit(frontend, typed))
    finally:
        ahead.cancel()


async def leave(frontend: PlainFrontend) -> None:
    """End everything: save notes unless the terminal has gone, then close the session."""
    with suppress(HoldfastError):
        if not (frontend.terminal.gone or frontend.terminal.ended):
            await frontend.conversation.at_rest()
            how = frontend.quitting or await ask_to_quit(frontend.conversation)
            frontend.quitting = how or "leave"  # without an answer, nothing is lost
            await frontend.conversation.save_memory_first()
        hung_up = frontend.terminal.gone or frontend.terminal.ended_by == signal.SIGHUP
        await frontend.conversation.close(leave=hung_up or frontend.quitting == "leave")
    frontend.speaker.stop()


async def watch_session(frontend: PlainFrontend) -> None:
    """Report problems with saving, and that a session was taken over. Runs until cancelled."""
    watch = SessionWatch()
    while True:
        await frontend.services.clock.sleep(RECHECK_S)
        if await watch.check(frontend.conversation) and (agent := frontend.conversation.agent):
            frontend.terminal.say(
                sentence(
                    f"Another program took over this session. {agent.session.lost}",
                    "This one is now read-only",
                    "/fork continues with everything you have",
                )
            )


async def keep_drafts(frontend: PlainFrontend) -> None:
    """Keep what is typed. Runs until cancelled."""
    while True:
        await asyncio.sleep(DRAFT_S)
        frontend.conversation.drafts.touch()


async def _take_typed_ahead(frontend: PlainFrontend) -> None:
    """Submit what is typed while nothing is asked."""
    while True:
        await _guarded(frontend, _submit(frontend, await frontend.heard.get()))


async def _guarded(frontend: PlainFrontend, work: Awaitable[None]) -> None:
    """Run work so that the conversation continues after any failure, which is reported."""
    try:
        await work
    except Exception as error:
        log.exception("what was typed failed")
        frontend.show(explained(error))


async def _submit(frontend: PlainFrontend, text: str) -> None:
    shell = text.startswith("!")
    match await route(frontend.conversation, text):
        case "sent":  # it is on the terminal already
            frontend.speaker.typed.append(text.lstrip("!").strip() if shell else text)
        case "joined":
            frontend.say("Queued: sent as soon as the agent can take it.")
        case "queued" if shell:
            frontend.say("Queued: runs after the current work.")
        case "queued":
            frontend.say("Queued: sent after the current work.")
        case "refused":
            frontend.put_prompt(text)
        case None:
            pass


def complete(conversation: Conversation, line: str) -> Sequence[str]:
    """Complete the last word of a line for Tab: a command's name, or a file after @.

    Called by the line editor, in the main thread.
    """
    words = line.split(" ")
    last = words[-1]
    if len(words) == 1 and last.startswith("/") and "/" not in last[1:]:
        names = [name for c in COMMANDS for name in (c.name, *c.aliases)]
        names += conversation.user_commands.commands
        names += prompts_of(conversation)
        return sorted(f"/{name} " for name in names if name.lower().startswith(last[1:].lower()))
    if last.startswith("@"):
        resources = [f"{name} " for name in resources_of(conversation) if name.startswith(last[1:])]
        files = _files(conversation.services.workspace, last[1:])
        return [f"@{name}" for name in (*files, *resources[:_MATCHES])]
    return ()


def _files(root: Path, begun: str) -> list[str]:
    """Return the files and folders with which a path may continue."""
    folder, _, start = begun.rpartition("/")
    parent = root / folder
    try:
        entries = sorted(parent.iterdir())
    except OSError:
        return []
    prefix = f"{folder}/" if folder else ""
    return [
        f"{prefix}{path.name}{'/' if path.is_dir() else ' '}"
        for path in entries
        if path.name.startswith(start) and (start or not path.name.startswith("."))
    ][:_MATCHES]
