"""Takes what the person types, and leads it where it belongs: a prompt, a command, the shell.

What is typed while a turn runs joins it; a command is carried out at once. All in the order in
which it was typed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable

from tui.app.commands.registry import ELSEWHERE, find, split, unknown
from tui.core.errors import HoldfastError
from tui.plain import error_options
from tui.plain.commands import command as carry_out
from tui.plain.conversation import Talk

log = logging.getLogger(__name__)


async def listen(talk: Talk) -> None:
    """Until the person leaves. A session is open, or could not be opened."""
    ahead = asyncio.create_task(_ahead(talk), name="typed ahead")
    try:
        while not talk.leaving:
            if failed := talk.failed:
                talk.failed = None
                await _guarded(talk, error_options.after(talk, failed))
            elif not await talk.do_next() and (typed := await _next(talk)) is not None:
                await _guarded(talk, _route(talk, typed))
    finally:
        ahead.cancel()


async def _ahead(talk: Talk) -> None:
    """What is typed while nothing is asked."""
    while True:
        await _guarded(talk, _route(talk, await talk.heard.get()))


async def _next(talk: Talk) -> str | None:
    """What is typed next. None where something else comes first, or the person leaves."""
    begin_with, talk.begin_with = talk.begin_with, ""
    talk.prompts(on=True)
    prompt = asyncio.create_task(talk.face.prompt(begin_with), name="prompt")
    come = asyncio.create_task(talk.come(), name="something waits")
    try:
        await asyncio.wait({prompt, come}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        talk.prompts(on=False)
        come.cancel()
        if not prompt.done():
            prompt.cancel()
            talk.begin_with = begin_with
    if not prompt.done():
        return None
    typed = prompt.result()
    if typed is None:
        talk.leaving = True
    return typed


async def _guarded(talk: Talk, doing: Awaitable[None]) -> None:
    """The boundary: whatever fails inside, the conversation goes on and says so."""
    try:
        await doing
    except HoldfastError as error:
        talk.explain(error)
    except Exception as error:
        log.exception("a command failed")
        talk.explain(error)


async def _route(talk: Talk, text: str) -> None:
    if text.startswith("!") and text.lstrip("!").strip():
        talk.run_shell(text[1:].strip())
        return
    named = split(text)
    command = find(named[0]) if named else None
    if named is None or (command is not None and not command.place):
        talk.prompt(text)
    elif command is not None:
        await carry_out(talk, command.name, named[1])
    else:
        await _own(talk, text, *named)


async def _own(talk: Talk, text: str, name: str, argument: str) -> None:
    """A command that the person wrote: its text goes along with what was typed (K33). Else one
    that has another name here."""
    await asyncio.to_thread(talk.own.load)
    command = talk.own.commands.get(name)
    if command is not None:
        talk.prompt(text.strip(), command.prompt(argument))
    elif name in ELSEWHERE:
        await _route(talk, f"/{ELSEWHERE[name]} {argument}".rstrip())
    else:
        what, hint = unknown(name, tuple(talk.own.commands))
        talk.face.say(f"{what} {hint}")
