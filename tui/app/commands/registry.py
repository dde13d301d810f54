"""The commands: one table from name to handler, and the router from what is typed to what does it.

A later command is one more row.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from tui.core.errors import HoldfastError
from tui.core.partly_typed import PartlyTyped
from tui.core.workspace import PRIVATE_DIR
from tui.settings.trust import command_name
from tui.settings.user_commands import UserCommands

if TYPE_CHECKING:
    from tui.app.conversation import Conversation, Submitted
    from tui.app.services import AppServices


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """`module`, in `tui.app`, has its handler, a function of its name; without it each front end
    has a view of its own. A `directive` goes to the agent whole, as typed. `argument` stands in
    brackets where it may be left out."""

    name: str
    argument: str
    help: str
    module: str = ""
    aliases: tuple[str, ...] = ()
    directive: bool = False

    @property
    def needs_argument(self) -> bool:
        return bool(self.argument) and not self.argument.startswith("[")

    @property
    def offers(self) -> tuple[str, ...]:
        """The words that may stand as the argument."""
        return tuple(word for word in self.argument.strip("[]").split("|") if word.islower())


def _command(
    usage: str, help_: str, module: str = "", *aliases: str, directive: bool = False
) -> SlashCommand:
    name, _, argument = usage.partition(" ")
    return SlashCommand(name, argument, help_, module, aliases, directive)


COMMANDS: tuple[SlashCommand, ...] = (
    _command("help [TOPIC]", "keys, commands and the manual"),
    _command("new", "begin a new session; the old one is kept", "commands.sessions", "clear"),
    _command("resume [ID]", "go on with a session", "commands.sessions", "sessions"),
    _command("rename TITLE", "give the session a title", "commands.sessions"),
    _command("fork", "go on with a copy; the original stays as it is", "commands.sessions"),
    _command(
        "rewind", "back to an earlier prompt, with the files if wanted", "commands.rewind", "undo"
    ),
    _command("export [md|html|jsonl]", "write the session as a document", "commands.sessions"),
    _command("copy", "copy the last answer"),
    _command("compact [FOCUS]", "put a summary in the place of the beginning", "commands.context"),
    _command("uncompact", "send the full conversation again", "commands.context"),
    _command("reload", "take changed instructions and tools now", "commands.context"),
    _command("context", "what the model sees, item by item; mask and pin"),
    _command("prune", "leave out old tool results now", "commands.context"),
    _command("pin", "keep the chosen tool result in the context, or let it go"),
    _command(
        "memory [save]", "open MEMORY.md in the editor, or save to it now", "commands.context"
    ),
    _command("find [TEXT]", "find in the conversation"),
    _command("output [%]", "show or hide the output pane, or set its width"),
    _command("diff", "what this session changed in files"),
    _command("tasks", "the tasks of this folder's run, and how they stand"),
    _command("todos", "the agent's list of what is to be done"),
    _command("plan", "plan mode: read only; again leaves it", "commands.context"),
    _command("permissions [revoke|try COMMAND]", "rules and decisions; take a rule back; try one"),
    _command("trust", "decide what this folder's own files may change", "commands.trust"),
    _command("add-dir FOLDER", "let the tools work in another folder too", "commands.context"),
    _command("forward [PORT]", "open a port of the sandbox to you", "commands.forward"),
    _command("mcp", "the MCP servers: state, restart, tools on and off"),
    _command("status", "session, folder, model, mode"),
    _command("usage", "tokens and cost", "", "cost"),
    _command("model [NAME]", "choose the model that answers, or name it", "models"),
    _command("retry [other]", "send it again now, or with another model", "error_options"),
    _command("theme [NAME]", "choose the colours"),
    _command("think [on|off]", "reason step by step before acting", directive=True),
    _command("effort [low|medium|high|xhigh|max]", "how deep the model thinks", "commands.effort"),
    _command("verbose [on|off]", "show every decision", directive=True),
    _command("elevated [on|off]", "nothing is asked any more", directive=True),
    _command("config [WORDS]", "the settings: see and change them"),
    _command("init", "let the model write AGENTS.md for this folder", "commands.sessions"),
    _command("repair", "what is damaged in this session, and the ways on", "commands.sessions"),
    _command("doctor", "check the installation, the key and the sessions"),
    _command("tour", "every protective feature once, in five minutes"),
    _command("drill [FAULTS]", "see what happens to errors, in a scratch session"),
    _command("quit", "save and leave", "", "exit"),
)
"""In the order of the help screen."""

ELSEWHERE: dict[str, str] = {
    "allowed-tools": "permissions", "approvals": "permissions", "branch": "fork",
    "checkpoint": "rewind", "compress": "compact", "continue": "resume", "hotkeys": "help",
    "keybindings": "help", "keys": "help", "models": "model", "name": "rename", "q": "quit",
    "reset": "new", "search": "find", "settings": "config", "summarize": "compact",
    "themes": "theme", "todo": "todos", "yolo": "elevated",
}  # fmt: skip
"""What other agents call a command: understood, and not listed anywhere. A command that the person
wrote under such a name goes first."""

_COMMAND = re.compile(r"/([a-z][a-z0-9-]*)(?:\s+(.*))?\s*", re.DOTALL | re.IGNORECASE)


def find(word: str) -> SlashCommand | None:
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


def user_commands(services: AppServices) -> UserCommands:
    """The commands that the person wrote, and those of the folder that they trust."""
    mine = services.folders.config / "commands"
    brought = services.workspace / PRIVATE_DIR / "commands"

    def counts(path: Path, content: bytes) -> bool:
        return path.parent == mine or services.trust().allows(command_name(path), content)

    taken = frozenset(name for c in COMMANDS for name in (c.name, *c.aliases))
    return UserCommands((mine, brought), taken, counts)


async def route(conversation: Conversation, text: str) -> Submitted | None:
    """Do what was typed. What became of it where it is sent or run, None for a command of the
    program."""
    if isinstance(text, PartlyTyped) and text.folded:
        return conversation.submit(text)
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
        return await _directive(conversation, text)
    await conversation.frontend.run_command(_guarded(conversation, command, argument))
    return None


async def _directive(conversation: Conversation, text: str) -> Submitted | None:
    """Send a directive; one that costs something after the price was shown."""
    from tui.agent.prompts import parse  # noqa: PLC0415 - the table is read at start-up

    agent, on = conversation.agent, parse(text).changes.get("think")
    if agent is None or on is None or agent.think_cost(bool(on)) is None:
        return conversation.submit(text)
    from tui.app.commands.effort import think  # noqa: PLC0415 - for this question alone

    await conversation.frontend.run_command(think(conversation, text))
    return None


async def _guarded(conversation: Conversation, command: SlashCommand, argument: str) -> None:
    """Carry out a command of the program, by the front end's own view or by its handler."""
    try:
        work = conversation.frontend.view(command.name, argument)
        if work is None:
            module = import_module(f"tui.app.{command.module}")
            handler = getattr(module, command.name.replace("-", "_"))
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
