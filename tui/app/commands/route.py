"""From what is typed to what does it: a command's handler, a shell line, or a prompt."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from tui.app.commands.registry import ELSEWHERE, SlashCommand, find, split, unknown
from tui.core.errors import HoldfastError

if TYPE_CHECKING:
    from tui.app.conversation import Conversation, Submitted


async def route(conversation: Conversation, text: str) -> Submitted | None:
    """Do what was typed. What became of it where it is sent or run, None for a command of the
    program."""
    if text.startswith("!") and text.lstrip("!").strip():
        return conversation.run_shell(text[1:].strip())
    named = split(text)
    if named is None:
        return conversation.submit(text)
    name, argument = named
    command = find(name)
    if command is None:
        return await _user_command(conversation, text, name, argument)
    if command.directive:
        return conversation.submit(text)
    await conversation.frontend.run_command(_guarded(conversation, command, argument))
    return None


async def _guarded(conversation: Conversation, command: SlashCommand, argument: str) -> None:
    """Carry out a command of the program, by the front end's own view or by its handler."""
    try:
        work = conversation.frontend.view(command.name, argument)
        if work is None:
            module, _, function = command.place.rpartition(".")
            handler = getattr(import_module(f"tui.app.{module}"), function)
            work = handler(conversation, argument)
        await work
    except HoldfastError as error:
        conversation.frontend.say(error.message, "error", hint=error.hint)


async def _user_command(
    conversation: Conversation, text: str, name: str, argument: str
) -> Submitted | None:
    """A command that the person wrote: its text goes along with what was typed. Else one that has
    another name here."""
    await asyncio.to_thread(conversation.user_commands.load)
    found = conversation.user_commands.commands
    if command := found.get(name):
        return conversation.submit(text.strip(), command.prompt(argument))
    if name in ELSEWHERE:
        return await route(conversation, f"/{ELSEWHERE[name]} {argument}".rstrip())
    what, hint = unknown(name, tuple(found))
    conversation.frontend.say(what, "warning", hint=hint)
    return "refused"
