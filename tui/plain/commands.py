"""The commands in plain lines: what each name leads to, or why it is for the full screen only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui.commands.editing import INIT
from tui.commands.table import COMMANDS
from tui.plain import context_commands as context
from tui.plain import looking
from tui.plain import session_commands as sessions
from tui.plain.ways import retry

if TYPE_CHECKING:
    from tui.plain.talk import Talk

_MATCHES: Final = 100


async def _init(talk: Talk, _: str) -> None:
    talk.submit(INIT)


async def _quit(talk: Talk, _: str) -> None:
    talk.leave()


HANDLERS: Final[Mapping[str, Callable[[Talk, str], Awaitable[None]]]] = {
    "help": looking.help_,
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
    "output": looking.output,
    "diff": looking.diff_,
    "tasks": looking.tasks,
    "todos": looking.todos,
    "plan": looking.plan,
    "permissions": looking.permissions,
    "add-dir": looking.add_dir,
    "mcp": looking.mcp,
    "status": looking.status,
    "usage": looking.usage,
    "model": looking.model,
    "retry": retry,
    "config": looking.config,
    "init": _init,
    "repair": sessions.repair,
    "doctor": looking.doctor,
    "quit": _quit,
}

REASONS: Final[Mapping[str, str]] = {
    "copy": "The answer stands in this terminal as text: copy it there, or use /export.",
    "find": "Search with your terminal or screen reader, or use: holdfast sessions search TEXT.",
    "theme": "Plain lines have no colours.",
    "drill": "The drill needs the full screen: run holdfast drill in another terminal.",
    "tour": "The tour needs the full screen: run holdfast tour in another terminal.",
}
"""Why a command is not for plain lines."""


HELP: Final[Mapping[str, tuple[str, str]]] = {
    "help": ("", "this list"),
    "rewind": ("[N]", "back to before an earlier prompt, with the files if wanted; 1 is the last"),
    "context": (
        "[all | mask N | unmask N | pin N | unpin N | read N]",
        "what the model sees, item by item, with tokens",
    ),
    "pin": ("[N]", "keep item N of /context, or the last tool result, or let it go"),
    "memory": ("[save]", "read MEMORY.md out, or save to it now"),
    "output": ("[N]", "read the whole output of the last tool, or of the one N from the end"),
    "plan": (
        "[edits | ask]",
        "plan mode: read only; again leaves it; edits accepts edits of files",
    ),
    "mcp": (
        "[restart NAME | on NAME TOOL | off NAME TOOL | log NAME]",
        "the MCP servers and their tools",
    ),
    "config": ("", "where the settings stand, and whether they are sound"),
}
"""What takes other words here than on the full screen: the argument, and what it does."""


async def command(talk: Talk, name: str, argument: str) -> None:
    """Carry out a command of the program by its name."""
    handler = HANDLERS.get(name)
    if handler is None:
        talk.face.say(REASONS.get(name, f"/{name} needs the full screen."))
    else:
        await handler(talk, argument)


def complete(talk: Talk, line: str) -> Sequence[str]:
    """What the last word of a line may become: a command's name, or a file behind @."""
    words = line.split(" ")
    last = words[-1]
    if len(words) == 1 and last.startswith("/") and "/" not in last[1:]:
        names = [name for c in COMMANDS for name in (c.name, *c.aliases)]
        names += talk.own.found
        return sorted(f"/{name} " for name in names if name.startswith(last[1:].lower()))
    if last.startswith("@"):
        return [f"@{path}" for path in _files(talk.services.workspace, last[1:])]
    return ()


def _files(root: Path, begun: str) -> list[str]:
    """The files and folders that a path may go on with."""
    folder, _, start = begun.rpartition("/")
    here = root / folder
    try:
        found = sorted(here.iterdir())
    except OSError:
        return []
    prefix = f"{folder}/" if folder else ""
    return [
        f"{prefix}{path.name}{'/' if path.is_dir() else ' '}"
        for path in found
        if path.name.startswith(start) and (start or not path.name.startswith("."))
    ][:_MATCHES]
