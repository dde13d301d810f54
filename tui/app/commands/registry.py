"""The commands: one table from name to handler. A later command is one more row.

`tui.app.router` carries out what was typed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """`module`, in `tui.app`, has its handler, a function of its name; without it each front end
    has a view of its own. A `directive` goes to the agent whole, as typed. `argument` is in
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
        """The words that may serve as the argument."""
        return tuple(word for word in self.argument.strip("[]").split("|") if word.islower())


def _command(
    usage: str, help_: str, module: str = "", *aliases: str, directive: bool = False
) -> SlashCommand:
    name, _, argument = usage.partition(" ")
    return SlashCommand(name, argument, help_, module, aliases, directive)


COMMANDS: tuple[SlashCommand, ...] = (
    _command("help [TOPIC]", "keys, commands and the manual"),
    _command("new", "start a new session (keeps this one)", "commands.sessions", "clear"),
    _command("resume [ID]", "resume a session", "commands.sessions", "sessions"),
    _command("rename TITLE", "rename this session", "commands.sessions"),
    _command("fork", "fork this session", "commands.sessions"),
    _command("rewind", "rewind the conversation (and files)", "commands.rewind", "undo"),
    _command("export [md|html|jsonl]", "export this session", "commands.sessions"),
    _command("copy", "copy the last answer"),
    _command("compact [FOCUS]", "summarize older messages", "commands.context"),
    _command("uncompact", "undo /compact", "commands.context"),
    _command("reload", "reload changed instructions and tools", "commands.context"),
    _command("context", "see the context item by item; mask and pin"),
    _command("recall [WORDS|ADDRESS]", "find what is no longer in the context", "commands.recall"),
    _command("prune", "prune old tool results now", "commands.context"),
    _command("pin", "pin/unpin the selected tool result"),
    _command("memory [save|NOTE]", "edit MEMORY.md, or save to it", "commands.context"),
    _command("find [TEXT]", "find in the conversation"),
    _command("output [%]", "show, hide or resize the output pane"),
    _command("diff", "files changed in this session"),
    _command("bg [PROMPT]", "hand this turn to the background, or start one", "to_background"),
    _command("tasks", "task run status"),
    _command("todos", "show the agent's to-do list"),
    _command("plan [show]", "plan mode (toggle), or the approved plan", "commands.context"),
    _command("permissions [revoke|try COMMAND]", "rules and decisions; revoke one, try a command"),
    _command("trust", "choose what this folder's settings may do", "commands.trust"),
    _command("add-dir FOLDER", "let the tools use another folder", "commands.context"),
    _command("forward [PORT]", "open a sandboxed port", "commands.forward"),
    _command(
        "worktree [list|merge|remove]",
        "this git worktree: merge or remove it, list all",
        "commands.worktree",
    ),
    _command("agents", "sub-agents: look into one, stop it; the kinds there are"),
    _command("jobs [N|stop N|move]", "background commands; move: the one that runs"),
    _command("hooks", "your hooks: what runs when", "commands.hooks"),
    _command("skills", "the skills there are", "commands.skills"),
    _command("mcp", "MCP servers: state, restart, tools on/off"),
    _command("status", "session, folder, model, mode"),
    _command("usage", "tokens and cost", "", "cost"),
    _command("model [NAME]", "switch model", "models"),
    _command("login", "change key, server or profile", "open_session"),
    _command("retry [other]", "retry now, or with another model", "error_options"),
    _command("theme [NAME]", "change theme"),
    _command("vim", "vim keys in the prompt (toggle)"),
    _command("think [on|off]", "think step by step before acting", directive=True),
    _command("effort [low|medium|high|xhigh|max]", "how hard the model thinks", "commands.effort"),
    _command("verbose [on|off]", "show every decision", directive=True),
    _command("elevated [on|off]", "stop asking for permission", directive=True),
    _command("config [WORDS]", "open settings"),
    _command("init", "have the model write AGENTS.md", "commands.sessions"),
    _command("repair", "diagnose and repair this session", "commands.sessions"),
    _command("doctor", "check installation, key and sessions"),
    _command("tour", "5-minute tour"),
    _command("drill [FAULTS]", "simulate API failures safely"),
    _command("quit", "save and quit", "", "exit"),
)
"""In the order of the help screen."""

ELSEWHERE: dict[str, str] = {
    "allowed-tools": "permissions", "approvals": "permissions", "bashes": "jobs",
    "background": "bg",
    "branch": "fork",
    "checkpoint": "rewind", "compress": "compact", "continue": "resume", "hotkeys": "help",
    "keybindings": "help", "keys": "help", "logout": "login", "models": "model",
    "name": "rename", "q": "quit", "reset": "new", "search": "find", "settings": "config",
    "summarize": "compact", "themes": "theme", "todo": "todos", "yolo": "elevated",
}  # fmt: skip
"""What other agents call a command: understood, and not listed anywhere. A command that the person
wrote under such a name goes first."""

INSTEAD: dict[str, str] = {
    "mention": "Type @ and a part of the file's name.",
    "statusline": "Set [status] command in config.toml (/config).",
    "terminal-setup": "Nothing to set up: Ctrl+J starts a new line in every terminal.",
    "update": "Holdfast never checks for updates; pull its repository.",
}
"""Commands of other agents for which something else is to be done here."""

QUIT_WORDS = frozenset({"exit", "quit", ":q", ":q!", ":wq"})
"""What whole prompts leave the program, as in a shell or an editor; a space before sends them."""

_COMMAND = re.compile(r"/(\w[\w:.-]*)(?:\s+(.*))?\s*", re.DOTALL)


def find(word: str) -> SlashCommand | None:
    """The command of that name or alias."""
    wanted = word.lower()
    return next((c for c in COMMANDS if wanted == c.name or wanted in c.aliases), None)


def split(text: str) -> tuple[str, str] | None:
    """Name and argument of a typed command; None for other text, a path among them."""
    found = _COMMAND.fullmatch(text)
    return (found[1], (found[2] or "").strip()) if found else None


def unknown(word: str, others: tuple[str, ...] = ()) -> tuple[str, str]:
    """What to say of a command that does not exist, and what to do."""
    if word in INSTEAD:
        return f"No command /{word} here.", INSTEAD[word]
    import difflib  # noqa: PLC0415 - for a typing mistake only

    names = [name for c in COMMANDS for name in (c.name, *c.aliases)]
    near = difflib.get_close_matches(word, [*names, *ELSEWHERE, *others], n=1)
    meant = f"Did you mean /{near[0]}? " if near else ""
    return f"Unknown command /{word}.", f"{meant}Press space first to send it as text."


TAKEN: frozenset[str] = frozenset(name for c in COMMANDS for name in (c.name, *c.aliases))
"""Names that no command of the person's can have."""
