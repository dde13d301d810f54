"""The commands in plain lines: what each name leads to, or why it is for the full screen only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from tui.app.commands.init import INIT
from tui.plain import context_commands as context
from tui.plain import permission_commands, view_commands
from tui.plain import session_commands as sessions
from tui.plain.conversation import Talk
from tui.plain.error_options import retry
from tui.plain.help import REASONS, help_
from tui.plain.models import model
from tui.plain.servers import mcp


async def _init(talk: Talk, _: str) -> None:
    talk.submit(INIT)


async def _quit(talk: Talk, _: str) -> None:
    talk.leave()


HANDLERS: Final[Mapping[str, Callable[[Talk, str], Awaitable[None]]]] = {
    "help": help_,
    "new": sessions.new,
    "resume": sessions.resume,
    "rename": sessions.rename,
    "fork": sessions.fork,
    "rewind": sessions.rewind,
    "export": sessions.export,
    "compact": context.compact,
    "uncompact": context.uncompact,
    "context": context.context,
    "prune": context.prune,
    "pin": context.pin,
    "memory": context.memory,
    "output": view_commands.output,
    "diff": view_commands.diff_,
    "tasks": view_commands.tasks,
    "todos": view_commands.todos,
    "plan": permission_commands.plan,
    "permissions": permission_commands.permissions,
    "add-dir": permission_commands.add_dir,
    "mcp": mcp,
    "status": view_commands.status,
    "usage": view_commands.usage,
    "model": model,
    "retry": retry,
    "config": view_commands.config,
    "init": _init,
    "repair": sessions.repair,
    "doctor": view_commands.doctor,
    "quit": _quit,
}


async def command(talk: Talk, name: str, argument: str) -> None:
    """Carry out a command of the program by its name."""
    handler = HANDLERS.get(name)
    if handler is None:
        talk.face.say(REASONS.get(name, f"/{name} needs the full screen."))
    else:
        await handler(talk, argument)
