"""The commands as data: one table from name to handler. A later command is one more row.

`tui.app.commands` looks them up, `tui.app.router` carries out what was typed.
"""

from __future__ import annotations

from typing import Final

from tui.core.dataclass import dataclass


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
    def takes_file(self) -> bool:
        return self.argument.startswith("FILE")

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
    _command("copy [N]", "copy the last answer, or code block N in it"),
    _command("compact [FOCUS]", "summarize older messages", "commands.context"),
    _command("uncompact", "undo /compact", "commands.context"),
    _command("reload", "reload changed instructions and tools", "commands.context"),
    _command("context", "see the context item by item; hide and pin"),
    _command("recall [WORDS|ADDRESS]", "find what is no longer in the context", "commands.recall"),
    _command("btw [QUESTION]", "ask on the side; the work continues", "commands.btw", "side"),
    _command("prune", "leave out old tool results now", "commands.context"),
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
    _command("why FILE[:LINES]", "which prompt wrote a line, at what price", "commands.why"),
    _command("goal [TEXT|continue|stop]", "keep working until a check passes", "commands.goal"),
    _command("every [TIME PROMPT|stop]", "repeat a prompt in the background", "every"),
    _command("bg [PROMPT]", "work on in the background, or start there", "to_background"),
    _command(
        "desk",
        "all sessions, live: open, answer, stop",
        screen_only="The desk needs the full screen: run holdfast desk in another terminal.",
    ),
    _command("tasks", "task run status"),
    _command("todos", "show the agent's to-do list"),
    _command("plan [show]", "plan mode (toggle), or the approved plan", "commands.context"),
    _command("permissions [revoke|try COMMAND]", "what may run; take back, or try a command"),
    _command("trust", "choose what this folder's settings may do", "commands.trust"),
    _command("add-dir FOLDER", "let the tools use another folder", "commands.context"),
    _command("forward [PORT]", "open a sandboxed port", "commands.forward"),
    _command(
        "worktree [list|merge|remove]",
        "merge or remove this git worktree, list all",
        "commands.worktree",
    ),
    _command("agents", "sub-agents and kinds; look into or stop"),
    _command("jobs [N|stop N|move]", "background commands; move the running one"),
    _command("hooks", "your hooks: what runs when", "commands.hooks"),
    _command("skills", "the skills there are", "commands.skills"),
    _command("mcp", "MCP servers: state, restart, tools on/off"),
    _command("status", "session, folder, model, mode"),
    _command("timeline [PROMPT]", "the session in time: context, calls, cost"),
    _command("usage [BY]", "where tokens and money went", "", "cost"),
    _command("model [NAME]", "switch model", "models"),
    _command("profile [NAME]", "switch account: settings and key", "accounts"),
    _command("login", "change key, server, sign-in or profile", "accounts"),
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
    _command("keys", "see what a key sends and does"),
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
        *("bg", "fork", "login", "new", "profile", "recall", "repair", "resume", "rewind", "tree"),
        *("trust", "worktree"),
    }
)
"""Commands that lead to another session, or that only a person at a screen gives."""
HEADLESS: Final = tuple(
    sorted(one.name for one in COMMANDS if one.module and one.name not in _OF_A_SCREEN)
)
"""Commands that need no screen and stay within their session."""

ELSEWHERE: dict[str, str] = {
    "allowed-tools": "permissions", "approvals": "permissions", "approve": "permissions",
    "bashes": "jobs", "background": "bg",
    "branch": "fork", "checkpoint": "rewind", "checkup": "doctor", "clone": "fork",
    "compress": "compact", "connect": "login", "continue": "resume", "experimental": "config",
    "hotkeys": "help", "insights": "usage", "keybindings": "help", "keymap": "help",
    "list-agents": "agents", "logout": "login", "loop": "every", "memories": "memory",
    "models": "model", "name": "rename", "powerup": "tour", "ps": "jobs", "pwd": "status",
    "profiles": "profile",
    "q": "quit", "reload-plugins": "reload", "reload-skills": "reload", "reset": "new",
    "sandbox": "permissions", "scoped-models": "model", "search": "find", "session": "status",
    "settings": "config", "share": "export", "stats": "usage", "subagents": "agents",
    "summarize": "compact", "themes": "theme", "title": "rename",
    "todo": "todos", "workflows": "tasks", "yolo": "elevated",
}  # fmt: skip
"""Names of commands in other agents: understood, and not listed anywhere. A command that the person
wrote under such a name goes first."""

_CHANGES: Final = "See CHANGELOG.md in Holdfast's repository."
_EDITORS: Final = "Run holdfast acp in your editor: /help editors."
_FOLDER: Final = "Start holdfast in that folder, or let the tools use it: /add-dir FOLDER."
_PLUGINS: Final = "Run holdfast plugin list, or holdfast import-settings: /help plugins."
_REPORT: Final = "/doctor checks the setup; /export writes this session to a file."
_REVIEW: Final = "Type /review and what to look for."
_TRASH: Final = "F3 lists the sessions; Ctrl+D there moves one to the trash."

INSTEAD: dict[str, str] = {
    "archive": _TRASH, "delete": _TRASH,
    "auto-mode-setup": "Shift+Tab switches modes; /permissions shows what is allowed.",
    "autocompact": "Set compaction.threshold in /config.",
    "bug": _REPORT, "feedback": _REPORT,
    "cd": _FOLDER,
    "code-review": _REVIEW, "security-review": _REVIEW, "simplify": _REVIEW,
    "debug": "F12 shows every event with its time.",
    "details": "Ctrl+O unfolds or folds all tool calls.",
    "editor": "Ctrl+G edits the prompt in your editor.",
    "fast": "F5 changes how hard the model thinks; /model switches it.",
    "focus": "Ctrl+O folds all tool calls.",
    "ide": _EDITORS,
    "import": "F3 lists other agents' sessions; holdfast import-settings takes over settings.",
    "mention": "Type @ and part of the file's name.",
    "output-style": "Set output_style: /config output_style.",
    "plugin": _PLUGINS, "plugins": _PLUGINS,
    "presets": "Write commands of your own: /help commands.",
    "raw": "Select text with Shift+arrows or the mouse, or use /copy.",
    "recap": "Ask for a summary, or use /compact to make room as well.",
    "changelog": _CHANGES, "release-notes": _CHANGES,
    "statusline": "Set [status] command in config.toml (/config).",
    "stop": "Esc stops the agent; /jobs lists commands to stop.",
    "subtask": "Ask for a sub-agent in your prompt; /agents lists them.",
    "terminal-setup": "Nothing to set up: Ctrl+J starts a new line in every terminal.",
    "thinking": "Alt+T or /think switches it.",
    "tui": "Start holdfast --plain for plain lines.",
    "update": "Holdfast never checks for updates; pull its repository.",
    "voice": "Holdfast has no voice input.",
    "warnings": "/doctor checks the setup; F12 shows every event.",
}  # fmt: skip
"""Commands of other agents for which something else is to be done here."""

QUIT_WORDS = frozenset({"exit", "quit", ":q", ":q!", ":wq"})
"""Whole prompts that leave the program, as in a shell or an editor; a space before sends them."""
