"""The commands as data: one table from name to handler. A later command is one more row.

`tui.app.commands` looks them up, `tui.app.router` carries out what was typed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """`module`, in `tui.app`, has its handler, a function of its name; without it each front end
    has a view of its own, and `screen_only` says why plain lines have none. A `directive` goes to
    the agent whole, as typed. `argument` is in brackets where it may be left out."""

    name: str
    argument: str
    help: str
    module: str = ""
    aliases: tuple[str, ...] = ()
    directive: bool = False
    screen_only: str = ""

    @property
    def needs_argument(self) -> bool:
        return bool(self.argument) and not self.argument.startswith("[")

    @property
    def offers(self) -> tuple[str, ...]:
        """The words that may serve as the argument."""
        return tuple(word for word in self.argument.strip("[]").split("|") if word.islower())


def _command(
    usage: str,
    help_: str,
    module: str = "",
    *aliases: str,
    directive: bool = False,
    screen_only: str = "",
) -> SlashCommand:
    name, _, argument = usage.partition(" ")
    return SlashCommand(name, argument, help_, module, aliases, directive, screen_only)


COMMANDS: tuple[SlashCommand, ...] = (
    _command("help [TOPIC]", "keys, commands and the manual"),
    _command("new", "start a new session (keeps this one)", "commands.sessions", "clear"),
    _command("resume [ID]", "resume a session", "commands.sessions", "sessions"),
    _command("rename TITLE", "rename this session", "commands.sessions"),
    _command("fork", "fork this session", "commands.sessions"),
    _command("rewind [undo]", "rewind the conversation (and files)", "commands.rewind", "undo"),
    _command("tree [BRANCH]", "show and switch branches", "commands.tree"),
    _command("export [md|html|jsonl]", "export this session", "commands.sessions"),
    _command(
        "copy",
        "copy the last answer",
        screen_only="The answer is text in this terminal: copy it there, or use /export.",
    ),
    _command("compact [FOCUS]", "summarize older messages", "commands.context"),
    _command("uncompact", "undo /compact", "commands.context"),
    _command("reload", "reload changed instructions and tools", "commands.context"),
    _command("context", "see the context item by item; mask and pin"),
    _command("recall [WORDS|ADDRESS]", "find what is no longer in the context", "commands.recall"),
    _command("prune", "prune old tool results now", "commands.context"),
    _command("pin", "pin/unpin the selected tool result"),
    _command("memory [save|NOTE]", "edit MEMORY.md, or save to it", "commands.context"),
    _command(
        "find [TEXT]",
        "find in the conversation",
        screen_only="Search with your terminal or screen reader,"
        " or use: holdfast sessions search TEXT.",
    ),
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
    _command("usage", "tokens and cost", "reports.usage", "cost"),
    _command("model [NAME]", "switch model", "models"),
    _command("login", "change key, server or profile", "open_session"),
    _command("retry [other]", "retry now, or with another model", "error_options"),
    _command("theme [NAME]", "change theme", screen_only="Plain lines have no colors."),
    _command(
        "vim",
        "vim keys in the prompt (toggle)",
        screen_only="The prompt is your terminal's own line here:"
        " set its editing mode in your shell.",
    ),
    _command("think [on|off]", "think step by step before acting", directive=True),
    _command("effort [low|medium|high|xhigh|max]", "how hard the model thinks", "commands.effort"),
    _command("verbose [on|off]", "show every decision", directive=True),
    _command("elevated [on|off]", "stop asking for permission", directive=True),
    _command("config [WORDS]", "open settings"),
    _command("init", "have the model write AGENTS.md", "commands.sessions"),
    _command("repair", "diagnose and repair this session", "commands.sessions"),
    _command("doctor", "check installation, key and sessions"),
    _command("keys", "what a pressed key sends and does here"),
    _command(
        "tour",
        "5-minute tour",
        screen_only="The tour needs the full screen: run holdfast tour in another terminal.",
    ),
    _command(
        "drill [FAULTS]",
        "simulate API failures safely",
        screen_only="The drill needs the full screen: run holdfast drill in another terminal.",
    ),
    _command("quit", "save and quit", "", "exit"),
)
"""In the order of the help screen."""

_OF_A_SCREEN: Final = frozenset(
    {
        *("bg", "fork", "login", "new", "recall", "repair", "resume", "rewind", "tree", "trust"),
        "worktree",
    }
)
"""Commands that lead to another session, or that are for the screen or the editor itself."""
HEADLESS: Final = tuple(
    sorted(one.name for one in COMMANDS if one.module and one.name not in _OF_A_SCREEN)
)
"""Commands that need no screen and stay within their session."""

ELSEWHERE: dict[str, str] = {
    "allowed-tools": "permissions", "approvals": "permissions", "bashes": "jobs",
    "background": "bg",
    "branch": "fork",
    "checkpoint": "rewind", "compress": "compact", "continue": "resume", "hotkeys": "help",
    "keybindings": "help", "logout": "login", "models": "model",
    "name": "rename", "q": "quit", "reset": "new", "search": "find", "settings": "config",
    "summarize": "compact", "themes": "theme", "todo": "todos", "yolo": "elevated",
}  # fmt: skip
"""Names of commands in other agents: understood, and not listed anywhere. A command that the person
wrote under such a name goes first."""

INSTEAD: dict[str, str] = {
    "mention": "Type @ and a part of the file's name.",
    "statusline": "Set [status] command in config.toml (/config).",
    "terminal-setup": "Nothing to set up: Ctrl+J starts a new line in every terminal.",
    "update": "Holdfast never checks for updates; pull its repository.",
}
"""Commands of other agents for which something else is to be done here."""

QUIT_WORDS = frozenset({"exit", "quit", ":q", ":q!", ":wq"})
"""Whole prompts that leave the program, as in a shell or an editor; a space before sends them."""
