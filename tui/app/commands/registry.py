"""The commands: one table from name to handler. A later command is one more row.

A handler stands in the module of its topic, which is loaded when the command is first given.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui.ui.session_flow.command_context import Desk


@dataclass(frozen=True, slots=True)
class Command:
    """`place` is `module.function` inside this package; without it the command is a directive:
    the agent gets the whole text as typed. `argument` stands in brackets where it may be left
    out; `offers` are words that may stand there."""

    name: str
    help: str
    place: str = ""
    aliases: tuple[str, ...] = ()
    argument: str = ""
    offers: tuple[str, ...] = ()

    @property
    def run(self) -> Callable[[Desk, str], Awaitable[None] | None] | None:
        """The handler: it gets the desk and what stood after the name."""
        if not self.place:
            return None
        module, _, function = self.place.rpartition(".")
        return getattr(import_module(f"tui.ui.commands.{module}"), function)

    @property
    def needs_argument(self) -> bool:
        return bool(self.argument) and not self.argument.startswith("[")


_SWITCH = ("on", "off")

COMMANDS: tuple[Command, ...] = (
    Command("help", "keys and commands", "viewing.help_"),
    Command("new", "begin a new session; the old one is kept", "sessions.new", ("clear",)),
    Command("resume", "go on with a session", "sessions.resume", ("sessions",), "[ID]"),
    Command("rename", "give the session a title", "sessions.rename", argument="TITLE"),
    Command("fork", "go on with a copy; the original stays as it is", "sessions.fork"),
    Command(
        "rewind",
        "back to an earlier prompt, with the files if wanted",
        "rewinding.rewind",
        ("undo",),
    ),
    Command(
        "export",
        "write the session as a document",
        "sessions.export",
        (),
        "[md|html|jsonl]",
        ("md", "html", "jsonl"),
    ),
    Command("copy", "copy the last answer", "viewing.copy"),
    Command(
        "compact", "put a summary in the place of the beginning", "context.compact", (), "[FOCUS]"
    ),
    Command("uncompact", "send the full conversation again", "context.uncompact"),
    Command("context", "what the model sees, item by item; mask and pin", "context.context"),
    Command("prune", "leave out old tool results now", "context.prune"),
    Command("pin", "keep the chosen tool result in the context, or let it go", "context.pin"),
    Command(
        "memory",
        "open MEMORY.md in the editor, or save to it now",
        "context.memory",
        (),
        "[save]",
        ("save",),
    ),
    Command("find", "find in the conversation", "viewing.find", argument="[TEXT]"),
    Command(
        "output", "show or hide the output pane, or set its width", "viewing.output", (), "[%]"
    ),
    Command("diff", "what this session changed in files", "changes.diff"),
    Command("tasks", "the tasks of this folder's run, and how they stand", "viewing.tasks"),
    Command("todos", "the agent's list of what is to be done", "viewing.todos"),
    Command("plan", "plan mode: read only; again leaves it", "permissions.plan"),
    Command("permissions", "the rules in force, and every decision", "permissions.permissions"),
    Command(
        "add-dir", "let the tools work in another folder too", "permissions.add_dir", (), "FOLDER"
    ),
    Command("mcp", "the MCP servers: state, restart, tools on and off", "servers.mcp"),
    Command("status", "session, folder, model, mode", "viewing.status"),
    Command("usage", "tokens and cost", "viewing.usage", ("cost",)),
    Command(
        "model", "choose the model that answers, or name it", "models.model", argument="[NAME]"
    ),
    Command(
        "retry",
        "send it again now, or with another model",
        "models.retry",
        argument="[other]",
        offers=("other",),
    ),
    Command("theme", "choose the colours", "theming.theme", argument="[NAME]"),
    Command("think", "reason step by step before acting", argument="[on|off]", offers=_SWITCH),
    Command("verbose", "show every decision", argument="[on|off]", offers=_SWITCH),
    Command("elevated", "nothing is asked any more", argument="[on|off]", offers=_SWITCH),
    Command("config", "the settings: see and change them", "settings.config", (), "[WORDS]"),
    Command("init", "let the model write AGENTS.md for this folder", "editing.init"),
    Command("repair", "what is damaged in this session, and the ways on", "sessions.repair"),
    Command("doctor", "check the installation, the key and the sessions", "models.doctor"),
    Command("tour", "every protective feature once, in five minutes", "models.tour"),
    Command(
        "drill", "see what happens to errors, in a scratch session", "models.drill", (), "[FAULTS]"
    ),
    Command("quit", "save and leave", "viewing.quit_", ("exit",)),
)
"""In the order of the help screen."""

ELSEWHERE: dict[str, str] = {
    "allowed-tools": "permissions",
    "approvals": "permissions",
    "branch": "fork",
    "checkpoint": "rewind",
    "compress": "compact",
    "continue": "resume",
    "hotkeys": "help",
    "keybindings": "help",
    "keys": "help",
    "models": "model",
    "name": "rename",
    "q": "quit",
    "reset": "new",
    "search": "find",
    "settings": "config",
    "summarize": "compact",
    "themes": "theme",
    "todo": "todos",
    "yolo": "elevated",
}
"""What other agents call a command: understood, and not listed anywhere. A command that the person
wrote under such a name goes first."""
