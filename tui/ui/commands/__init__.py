"""What is typed with a slash: the table of commands, and the way from a text to its handler."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from tui.app.commands.registry import COMMANDS, ELSEWHERE, Command
from tui.core.errors import HoldfastError

if TYPE_CHECKING:
    from tui.ui.session_flow.command_context import Desk

__all__ = ["COMMANDS", "Command", "find", "route", "split", "unknown"]

_COMMAND = re.compile(r"/([a-z][a-z0-9-]*)(?:\s+(.*))?\s*", re.DOTALL | re.IGNORECASE)


def find(word: str) -> Command | None:
    """The command of that name or alias."""
    wanted = word.lower()
    return next((c for c in COMMANDS if wanted == c.name or wanted in c.aliases), None)


def split(text: str) -> tuple[str, str] | None:
    """Name and argument of a typed command; None for other text, a path among them."""
    found = _COMMAND.fullmatch(text)
    return (found[1].lower(), (found[2] or "").strip()) if found else None


def unknown(word: str, others: tuple[str, ...] = ()) -> tuple[str, str]:
    """What to say of a command that does not exist, and what to do."""
    import difflib  # noqa: PLC0415 - for a typing mistake only

    names = [name for c in COMMANDS for name in (c.name, *c.aliases)]
    near = difflib.get_close_matches(word, [*names, *ELSEWHERE, *others], n=1)
    meant = f"Did you mean /{near[0]}? " if near else ""
    return f"There is no /{word}.", f"{meant}/help lists all; a space before it sends it as text."


async def route(desk: Desk, text: str) -> bool:
    """Do what was typed: a command, a shell line, or a prompt. False keeps it in the prompt."""
    say = desk.bridge.chat.notice.say
    desk.bridge.chat.notice.clear()
    if text.startswith("!") and text.lstrip("!").strip():
        desk.bridge.run_shell(text[1:].strip())
        return True
    named = split(text)
    if named is None:
        desk.bridge.submit(text)
        return True
    command = find(named[0])
    if command is None:
        return await _own(desk, text, *named)
    if command.run is None:
        desk.bridge.submit(text)
        return True
    try:
        done = command.run(desk, named[1])
        if done is not None:
            await done
    except HoldfastError as error:
        say(error.message, "error", hint=error.hint)
    return True


async def _own(desk: Desk, text: str, name: str, argument: str) -> bool:
    """A command that a person wrote: its text goes along with what was typed (K33). Else one
    that has another name here."""
    await asyncio.to_thread(desk.own.load)
    command = desk.own.found.get(name)
    if command is None and name in ELSEWHERE:
        return await route(desk, f"/{ELSEWHERE[name]} {argument}".rstrip())
    if command is None:
        what, hint = unknown(name, tuple(desk.own.found))
        desk.bridge.chat.notice.say(what, "warning", hint=hint)
        return False
    desk.bridge.submit(text.strip(), attached=command.prompt(argument))
    return True
