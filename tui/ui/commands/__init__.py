"""From what is typed to what does it: a command's handler, a shell line, or a prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING

from tui.app.commands.registry import ELSEWHERE, Command, find, split, unknown
from tui.core.errors import HoldfastError

if TYPE_CHECKING:
    from tui.ui.session_flow.command_context import Desk


def handler(command: Command) -> Callable[[Desk, str], Awaitable[None] | None] | None:
    """What carries a command out; None for a directive, which the agent gets as typed."""
    if not command.place:
        return None
    module, _, function = command.place.rpartition(".")
    return getattr(import_module(f"{__name__}.{module}"), function)


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
    run = handler(command)
    if run is None:
        desk.bridge.submit(text)
        return True
    try:
        done = run(desk, named[1])
        if done is not None:
            await done
    except HoldfastError as error:
        say(error.message, "error", hint=error.hint)
    return True


async def _own(desk: Desk, text: str, name: str, argument: str) -> bool:
    """A command that a person wrote: its text goes along with what was typed (K33). Else one
    that has another name here."""
    await asyncio.to_thread(desk.own.load)
    command = desk.own.commands.get(name)
    if command is None and name in ELSEWHERE:
        return await route(desk, f"/{ELSEWHERE[name]} {argument}".rstrip())
    if command is None:
        what, hint = unknown(name, tuple(desk.own.commands))
        desk.bridge.chat.notice.say(what, "warning", hint=hint)
        return False
    desk.bridge.submit(text.strip(), attached=command.prompt(argument))
    return True
