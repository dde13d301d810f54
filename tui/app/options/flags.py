"""The command line as data: every command with its flags and words.

The parser, the help and the shell completions are all made from this, so they cannot drift
apart. A flag means the same, and takes a value or not, wherever it stands.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from tui.app.manual import TOPICS
from tui.core.dataclass import dataclass, replace

Kind: TypeAlias = Literal[
    "text",
    "name",
    "session",
    "background",
    "session file",
    "file",
    "folder",
    "count",
    "money",
    "seconds",
    "span",
    "moment",
    "faults",
    "profile",
]

FAULTS = (
    "429", "529", "cut", "eof", "stall", "overflow", "badjson", "auth", "slow", "park", "400",
)  # fmt: skip
SHELLS = ("bash", "zsh", "fish")
PROFILE_NAMES, SESSION_NAMES, BACKGROUND_NAMES = NAMES = ("profiles", "sessions", "background")
"""In the place of a shell: the names for which the scripts ask."""
SCHEMAS = ("config", "hooks", "events", "state", "theme")
EFFORTS = ("low", "medium", "high", "xhigh", "max")
FORMATS = ("text", "json", "stream-json", "claude-stream-json")
INPUT_FORMATS = ("text", "stream-json", "claude-stream-json")
MODES = ("ask", "edits", "plan")
TRANSPORTS = ("http", "sse")
SCOPES = ("user", "project")
SHAPES = ("script", "tasks", "skill")
REPORTS = ("text", "md", "html", "json")
SEVERITIES = ("high", "medium", "low", "never")
GROUPINGS = (
    "day", "model", "folder", "repository", "session", "purpose", "prompt", "brought", "kind",
    "tool", "file", "server", "skill", "agent", "break", "profile",
)  # fmt: skip
PLACES = (
    "prompt", "answer", "thinking", "call", "result", "output", "summary", "note", "title",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Flag:
    """An option. `value` is how help names its value, "" for a switch.

    `dest` is the attribute of `Options`, where the long name does not say it, `const` what a switch
    sets it to. `optional`: the value may be left out; `repeat`: the flag may be given more than
    once and its values add up.
    """

    names: tuple[str, ...]
    help: str
    value: str = ""
    kind: Kind = "text"
    choices: tuple[str, ...] = ()
    optional: bool = False
    repeat: bool = False
    pair: bool = False
    dest: str = ""
    const: str | bool = True
    group: str = "Options"

    @property
    def field(self) -> str:
        """The attribute of `Options`."""
        return self.dest or self.names[-1].removeprefix("--").replace("-", "_")

    @property
    def takes_value(self) -> bool:
        return bool(self.value or self.choices)


_KINDS: dict[str, Kind] = {
    "DIR": "folder", "HOST": "name", "FILE": "file", "ID[:N]": "session", "ID|FILE": "session",
    "MESSAGE": "name", "N": "count", "N M": "count", "NAME": "name", "PATH": "file",
    "PROFILE": "profile", "RULE": "name", "SECONDS": "seconds",
    "TIME": "span", "USD": "money", "WHEN": "moment",
}  # fmt: skip
"""The kinds of values, by their names in the help; every other one is text."""


def _flag(usage: str, help_: str, **more: Any) -> Flag:
    """A flag from its names and its value, as help writes them: `-C --cwd DIR`."""
    names = tuple(word for word in usage.split() if word.startswith("-"))
    value = usage.partition(names[-1])[2].strip()
    return Flag(names, help_, value, _KINDS.get(value, "text"), **more)


@dataclass(frozen=True, slots=True)
class Positional:
    """A command's positional argument."""

    name: str
    field: str
    help: str
    kind: Kind = "text"
    choices: tuple[str, ...] = ()
    required: bool = True


@dataclass(frozen=True, slots=True)
class Command:
    """A command by its words: () is plain `holdfast`, ("sessions", "list") a subcommand's.

    `after` is how help names what may stand behind `--`, "" for nothing.
    """

    words: tuple[str, ...]
    help: str
    flags: tuple[Flag, ...] = ()
    word: Positional | None = None
    second: Positional | None = None
    after: str = ""

    @property
    def arguments(self) -> tuple[Positional, ...]:
        return tuple(word for word in (self.word, self.second) if word)


_FILES = "Folder, files and tools"


def _group(title: str, *flags: Flag) -> tuple[Flag, ...]:
    """Flags under a title of their own in the help."""
    return tuple(replace(flag, group=title) for flag in flags)


_CWD = _flag("-C --cwd DIR", "work in DIR")
_JSON = _flag("--json", "print JSON")
_SUB_AGENTS = _flag("--sub-agents", "those of sub-agents too")
_DRY_RUN = _flag("--dry-run", "show what would happen, change nothing")
_THEME = _flag("--theme NAME", "the theme, for this run", group="Screen")
_FALLBACK = _flag(
    "--fallback-model NAME",
    "fall back to this model when the first is unavailable (repeat for a chain)",
    repeat=True,
    dest="fallback_models",
)
_PROFILE = _flag("--profile PROFILE", "use the settings and the key of [profile.PROFILE]")
_TRUST = _flag("--trust", "trust this folder's .holdfast/ files for this run")
_BARE = _flag(
    "--bare",
    "start without project files, hooks, servers, plugins, skills: see configuration",
)
_ALLOW = "run without asking what matches RULE: tool or tool(glob) (repeatable)"
_DENY = "refuse what matches RULE; wins over every --allow (repeatable)"
_RULES = (
    _flag("--allow RULE", _ALLOW, repeat=True),
    _flag("--deny RULE", _DENY, repeat=True),
    _flag("-y --yolo", "start elevated: no prompts; blocked commands stay blocked"),
    _flag("--no-sandbox", "run commands without the sandbox; more of them ask"),
)


def _models(*fallback: Flag) -> tuple[Flag, ...]:
    return _group(
        "Model",
        _flag("-m --model NAME", "the model to use; opus, sonnet, haiku, fable: the newest"),
        *fallback,
        _PROFILE,
        _flag("--effort", "how hard the model thinks", choices=EFFORTS),
        _flag("--practice", "the offline practice model: no key, no network"),
        _flag("--practice-script FILE", "the practice model replays FILE (TOML)"),
    )


_ADD_DIR = _flag(
    "--add-dir DIR",
    "let the file tools use DIR too (repeatable)",
    repeat=True,
    dest="add_dirs",
)
_MODE = _flag(
    "--permission-mode",
    "what runs without asking: what only reads, also edits, or nothing but reading",
    choices=MODES,
)
_SESSION_LIMITS = (
    _flag("--max-turns N", "stop after N requests"),
    _flag("--max-tokens N", "stop after N tokens"),
    _flag(
        "--max-cost USD",
        "stop at this cost; unknown models need [prices] in the configuration",
    ),
)

_APPENDED = _flag("--append-system-prompt TEXT", "instructions for this session, added to the rest")
_TEXTS = (
    _flag("--system-prompt TEXT", "instead of Holdfast's own description of its work"),
    _APPENDED,
)
_RUN_LIMITS = (
    _flag(
        "--max-cost USD",
        "stop at this cost; unknown models need [prices] in the configuration",
    ),
    _flag("--max-failures N", "stop after N failed tasks in a row"),
    _flag("--max-time TIME", "start nothing after this time: 90s, 45m, 8h"),
)

_INSECURE = _flag(
    "--insecure-cluster", "let anyone on the network run programs on the Dask cluster's machines"
)

MAIN = Command(
    (),
    "A full-screen terminal agent. Sends PROMPT first.",
    (
        *_group(
            "Session",
            _flag("-c --continue", "continue this folder's last session", dest="newest"),
            _flag(
                "-r --resume ID|FILE",
                "resume a session, also by its title; without a value, choose one",
                optional=True,
            ),
            _flag("--at MESSAGE", "open it at this message; with --fork, copy up to it"),
            _flag("--fork", "continue in a copy; the session stays as it is"),
            _flag("--no-session", "save nothing to disk"),
        ),
        *_models(_FALLBACK),
        *_group(
            _FILES,
            _CWD,
            _flag(
                "-w --worktree NAME",
                "work in a git worktree; without a value, in a new one",
                optional=True,
            ),
            _ADD_DIR,
            _TRUST,
            _BARE,
            *_RULES,
            _MODE,
            _flag("--plan", "start in plan mode: read-only, until a plan is approved"),
            *_TEXTS,
        ),
        *_group(
            "Headless, and limits",
            _flag(
                "-p --print TEXT",
                "no screen: one prompt, answer on stdout; TEXT and/or stdin",
                optional=True,
                dest="text",
            ),
            _flag(
                "--bg",
                "no screen: send PROMPT in the background and return (see background)",
                dest="background",
            ),
            _flag(
                "--output-format",
                "-p output: the answer, one JSON object, or one event per line (see claude)",
                choices=FORMATS,
            ),
            _flag(
                "--input-format",
                "-p input: one prompt, or one JSON message per line (see print-mode, claude)",
                choices=INPUT_FORMATS,
            ),
            _flag("--json-schema FILE", "-p result: JSON that fits the schema in FILE"),
            *_SESSION_LIMITS,
            _flag("--max-wait SECONDS", "the longest wait for rate limits; 0 = don't wait"),
        ),
        *_group(
            "Screen",
            _flag("--verbose", "start with the debug view"),
            _flag(
                "--plain",
                "plain lines, no full screen: for screen readers and simple terminals",
            ),
            _THEME,
        ),
    ),
    Positional("PROMPT", "prompt", "what to do, in quotes", required=False),
)

_ID = Positional(
    "ID|FILE", "target", "a session's id, the start of one, its title, or a file", "session"
)
_SERVER = Positional("NAME", "target", "the server's name", "name")
_SCOPE = _flag(
    "--scope", "whose config.toml: yours (user), or this folder's (project)", choices=SCOPES
)
_BACKGROUND = Positional("ID", "target", "its id, the start of it, or its title", "background")
_COPY = _flag("-o --out FILE", "write to FILE")
_OUT = _flag("-o --out FILE", "write to FILE; - is standard output")
_BRANCH = _flag("--branch LEAF", "use another branch: an id from sessions tree, or its start")


def _sessions(
    name: str,
    text: str,
    word: Positional | None = _ID,
    *flags: Flag,
    second: Positional | None = None,
) -> Command:
    return Command(("sessions", name), text, (*flags, *_group(_FILES, _CWD), _JSON), word, second)


_SCRATCH = _flag("--scratch DIR", "a folder for workers' files, the same on every machine")

COMMANDS = (
    Command(
        ("run",),
        "work through a task file",
        (
            *_models(
                replace(_FALLBACK, help="the model to swap with after a rate limit or timeout")
            ),
            *_group(_FILES, replace(_CWD, names=("--dir", *_CWD.names)), _TRUST, *_RULES),
            *_group("Limits", *_RUN_LIMITS),
            _flag("--parallel N", "work on N groups of tasks at a time, each in its own process"),
            _flag(
                "--on ENGINE",
                "place the tasks on machines: local, slurm, ssh:HOST,HOST=N, or a Dask cluster's "
                "tls://…",
            ),
            _flag("--store PATH|URL", "with --on: the bare git repository that all of them reach"),
            _flag("--remote COMMAND", "with --on ssh: the program there, if not holdfast"),
            _SCRATCH,
            _INSECURE,
            _flag(
                "--batch-api",
                "send the tasks as questions without tools, in one message batch at half price",
            ),
            _flag("--cancel", "with --batch-api: cancel the batch, and take the answers it has"),
            _DRY_RUN,
            _flag("--status", "show the status of the tasks"),
            _flag("--reset", "clear state and logs, do nothing else"),
            _flag("--retry-failed", "run the failed tasks again"),
            _flag("--headless", "no screen: plain lines on stdout"),
            _flag("--summary FILE", "also write the summary, as Markdown, to FILE"),
            _flag("--json", "no screen: one event per line; with --status, one object"),
        ),
        Positional("TASKS.md", "tasks", "the task file", "file", required=False),
    ),
    Command(
        ("replay",),
        "run recorded prompts again where they began, judged by the checks that were green",
        (
            *_models(),
            *_group(
                "Variation",
                *_TEXTS,
                _flag("--agents-md FILE|REV", "AGENTS.md from FILE, or as git revision REV has it"),
            ),
            *_group(_FILES, _CWD, _TRUST, *_RULES),
            *_group("Limits", *_RUN_LIMITS),
            _flag("--runs N", "run each case N times"),
            _flag("--parallel N", "work on N cases at a time"),
            _flag(
                "--add ID[:N]",
                "put the prompts of a session, or prompt N of it, into SUITE (repeatable)",
                repeat=True,
            ),
            _flag("--status", "show the replays of SUITE so far"),
            _flag(
                "--junit FILE",
                "also write the results, as JUnit's XML, to FILE; - prints only these",
            ),
            _JSON,
        ),
        Positional("SUITE", "suite", "the file of the suite (TOML)", "file"),
    ),
    Command(
        ("review",),
        "review what has changed since BASE; exit 1 if something is found",
        (
            *_models(_FALLBACK),
            *_group(_FILES, _CWD),
            *_group(
                "Limits",
                *_SESSION_LIMITS,
                _flag("--max-wait SECONDS", "the longest wait for rate limits; 0 = don't wait"),
            ),
            _flag(
                "--fail-on",
                "exit 1 for findings at or above this severity (default: low)",
                choices=SEVERITIES,
            ),
            _APPENDED,
            _flag("--no-session", "save nothing to disk"),
            _JSON,
            _flag("-o --out FILE", "write the JSON to FILE, and print the findings in words"),
        ),
        Positional(
            "BASE",
            "target",
            "a branch or commit; without one, the default branch",
            "name",
            required=False,
        ),
    ),
    Command(
        ("work",),
        "work on one task of a run on many machines; started by its engine",
        (
            _flag("--store PATH|URL", "the run's store"),
            _SCRATCH,
        ),
        Positional("RUN/TASK", "target", "the task's name in the store"),
    ),
    Command(
        ("cluster", "up"),
        "start a Dask cluster and print its address; Ctrl+C ends it",
        (_INSECURE,),
        Positional("FILE", "target", "its deployment (TOML)", "file"),
    ),
    _sessions(
        "list",
        "sessions in this folder",
        None,
        _flag("--all", "sessions in all folders"),
        _SUB_AGENTS,
    ),
    _sessions(
        "search",
        "search all sessions, including sub-agents' and other agents'",
        Positional("TEXT", "target", "what to search for", required=False),
        _flag("--since WHEN", "only what was said since then: 2026-11-01, 7d or 3h"),
        _flag("--file PATH", "only sessions whose file tools read or changed PATH", dest="touched"),
        _flag("--kind", "only matches of this kind", choices=PLACES),
        _flag("--regex", "take TEXT as a regular expression; reads every file"),
    ),
    _sessions("show", "print a session", _ID, _BRANCH),
    _sessions("tree", "list the branches that rewinds left in a session"),
    _sessions("check", "look for damage; exit 1 if there is any"),
    _sessions(
        "view",
        "print the exact request the next prompt would send, or one already sent",
        _ID,
        _flag("--at N", "the body of request N, as it was sent", dest="request"),
        _flag("--diff N M", "the difference between requests N and M", pair=True),
        _BRANCH,
    ),
    _sessions(
        "diff",
        "what a session changed in files, with its commands",
        _ID,
        _flag("--at N", "only what changed after request N was sent", dest="request"),
    ),
    _sessions(
        "verify",
        "whether a session is what was written and sent; exit 1 if anything differs",
        _ID,
        _flag("--git-note", "note it on the commit that is checked out"),
    ),
    _sessions(
        "replay",
        "send a past request again with a change, and compare the answers",
        _ID,
        _flag("--at N", "the request", dest="request"),
        _flag("--unmask N", "send message N whole, which was hidden, left out or cut"),
        _flag("--yes", "send it without asking"),
        *_models(),
    ),
    _sessions("repair", "write a repaired copy; never changes the original", _ID, _DRY_RUN, _COPY),
    _sessions(
        "import",
        "import another agent's session",
        Positional("FILE", "target", "a session file", "session file"),
    ),
    _sessions(
        "export",
        "export a session",
        _ID,
        _flag("--format", "the document's format (md)", choices=("md", "html", "jsonl", "otlp")),
        _BRANCH,
        _OUT,
    ),
    _sessions("send", "send a session's spans to your collector, as [otel] names it", _ID, _BRANCH),
    _sessions(
        "report",
        "tell what was asked, done, allowed and seen in a session, and what it cost",
        _ID,
        _flag("--format", "the document's format (md)", choices=("md", "html")),
        _BRANCH,
        _OUT,
    ),
    _sessions(
        "timeline",
        "show what happened when: context, calls, waits, checks and cost over time",
        _ID,
        _BRANCH,
        second=Positional(
            "OTHER", "second", "another session, drawn below it", "session", required=False
        ),
    ),
    _sessions(
        "distill",
        "turn what counted in a session into a script, a task file or a skill",
        _ID,
        _flag("--as", "what to make (script)", choices=SHAPES, dest="shape"),
        _flag("--check", "run the script in a copy of the first state, and compare the files"),
        _flag("--no-sandbox", "run the script without the sandbox"),
        _BRANCH,
        _OUT,
    ),
    _sessions(
        "fork",
        "fork a session, whole or up to a message",
        _ID,
        _flag("--at MESSAGE", "copy up to this message"),
    ),
    _sessions(
        "pack",
        "put a session and all its parts into one file, to move it",
        _ID,
        _flag("-o --out FILE", "write the pack to FILE; - is standard output"),
        _flag("--with-secrets", "pack everything, even if it looks secret"),
        _flag("--redact", "mask what looks secret; the pack can't be verified then"),
    ),
    _sessions(
        "unpack",
        "open a packed session in this folder",
        Positional("FILE", "target", "the pack", "file"),
    ),
    _sessions(
        "rename",
        "rename a session",
        second=Positional("TITLE", "second", "the title, in quotes", "name"),
    ),
    _sessions("delete", "move a session to the trash folder"),
    Command(
        ("bisect",),
        "find the call of a session after which a command fails",
        (
            _flag("--runs N", "run the command N times in each state; half of them decide"),
            _flag("--timeout SECONDS", "a run that takes longer fails"),
            _flag("--build COMMAND", "run this first; a state in which it fails is skipped"),
            _flag("--at N", "only the states after request N was sent", dest="request"),
            _BRANCH,
            _flag("-c --continue", "continue the search that was interrupted", dest="newest"),
            *_group(_FILES, _CWD),
            _flag("--no-sandbox", "run the command without the sandbox"),
            _JSON,
        ),
        replace(_ID, help="a session, or the task file of a run"),
        after="COMMAND ARGS…",
    ),
    Command(
        ("import-settings",),
        "take over another program's rules, hooks and MCP servers",
        (
            *_group(_FILES, _CWD),
            _flag(
                "--from",
                "whose settings to take over (default: claude)",
                dest="target",
                choices=("claude", "codex", "opencode", "pi"),
            ),
            _DRY_RUN,
            _flag("--yes", "write without asking"),
            _JSON,
        ),
    ),
    Command(
        ("blame",),
        "say where each line of a file comes from: which prompt, call, person or commit",
        (
            _flag(
                "--porcelain",
                "print what git blame --porcelain prints, for editors",
                dest="shape",
                const="porcelain",
            ),
            _flag(
                "--notes",
                "add git notes on which prompts wrote each commit's lines",
                dest="shape",
                const="notes",
            ),
            _JSON,
            *_group(_FILES, _CWD),
        ),
        Positional("FILE", "target", "the file, or some lines: FILE:10, FILE:10-20", "file"),
    ),
    Command(
        ("usage",),
        "tell where tokens and money went, over all sessions",
        (
            _flag("--since WHEN", "only the days since then: 2026-11-01 or 7d"),
            _flag("--by", "one row for each (default: day)", choices=GROUPINGS, dest="kind"),
            _JSON,
        ),
    ),
    Command(
        ("report",),
        "tell what ran last night, over all sessions: red, waiting, refused, undone, done, paid",
        (
            _flag("--since WHEN", "from then on: 8h, yesterday or a date (yesterday at 18:00)"),
            _flag("--until WHEN", "up to then (now)"),
            _flag("--here", "only the sessions of this folder"),
            _flag("--format", "the form of the report (text)", choices=REPORTS, dest="shape"),
            _OUT,
            *_group(_FILES, _CWD),
        ),
    ),
    Command(
        ("rescue",),
        "mend another agent's session in its own format, as a copy",
        (_COPY, _JSON),
        Positional("PATH", "target", "a session file", "session file"),
    ),
    Command(
        ("mcp", "add"),
        "add an MCP server: its address, or behind -- the command that starts it",
        (
            _flag("--env K=V", "a variable for the command (repeatable)", repeat=True),
            _flag(
                "--header K=V",
                "a header for each request to the address (repeatable)",
                repeat=True,
                dest="headers",
            ),
            _flag("--type", "how the address is reached (http)", choices=TRANSPORTS),
            _flag("--client-id ID", "sign in with this client, registered with the server"),
            _flag("--callback-port N", "the port of that client's redirect address"),
            _SCOPE,
            *_group(_FILES, _CWD),
        ),
        _SERVER,
        Positional("URL", "address", "the address of a server that runs", "name", required=False),
        "COMMAND ARGS…",
    ),
    Command(
        ("mcp", "list"),
        "start or reach each MCP server, and show its state",
        (*_group(_FILES, _CWD, _TRUST), _JSON),
    ),
    Command(
        ("mcp", "remove"),
        "remove an MCP server from config.toml",
        (_SCOPE, *_group(_FILES, _CWD)),
        _SERVER,
    ),
    Command(
        ("mcp", "login"),
        "sign in to an MCP server",
        _group(_FILES, _CWD, _TRUST),
        _SERVER,
    ),
    Command(
        ("mcp", "logout"),
        "forget the sign-in to an MCP server",
        _group(_FILES, _CWD, _TRUST),
        _SERVER,
    ),
    Command(
        ("plugin", "add"),
        "add a plugin: a folder of commands, sub-agents, skills, hooks and servers",
        (),
        Positional("PATH", "target", "its folder, or NAME@FOLDER of a marketplace", "folder"),
    ),
    Command(("plugin", "list"), "list your plugins, and what each brings", (_JSON,)),
    Command(
        ("plugin", "remove"),
        "remove a plugin; its folder stays",
        (),
        Positional("PATH", "target", "the plugin's folder, or its name", "folder"),
    ),
    Command(
        ("acp",),
        "serve an editor: the Agent Client Protocol on stdin and stdout",
        (
            *_models(_FALLBACK),
            *_group(_FILES, _ADD_DIR, _TRUST, *_RULES, _MODE),
            *_group("Limits", *_SESSION_LIMITS),
        ),
    ),
    Command(
        ("ps",),
        "list the sessions in the background, and commands left running",
        (_flag("--all", "also those that ended earlier, or that you have looked at"), _JSON),
    ),
    Command(
        ("attach",),
        "look into a session as it runs, here or on another machine",
        (
            _flag("--plain", "plain lines, no full screen", group="Screen"),
            _THEME,
        ),
        Positional(
            "ID",
            "target",
            "its id, the start of it, or its title; on another machine: ssh://HOST/ID",
            "session",
            required=False,
        ),
    ),
    Command(
        ("logs",),
        "print what a session in the background did",
        (_flag("-f --follow", "keep printing until it ends"),),
        replace(_BACKGROUND, required=False),
    ),
    Command(
        ("stop",), "stop a session in the background, or commands left running", (), _BACKGROUND
    ),
    Command(
        ("desk",),
        "all sessions at once: what each one does, and which wait for you",
        (
            _flag(
                "--host HOST",
                "those of HOST too, over ssh (repeatable)",
                repeat=True,
                dest="hosts",
            ),
            _THEME,
            _JSON,
        ),
    ),
    Command(
        ("serve",),
        "serve this machine's sessions to a desk elsewhere, which starts this over ssh",
        (_flag("--stdio", "on standard input and output"),),
    ),
    Command(
        ("doctor",),
        "check the installation, configuration, key and sessions",
        (*_group(_FILES, _CWD), _PROFILE, _JSON),
    ),
    Command(
        ("self-test",),
        "check offline that Holdfast works here, for a bug report",
        (_JSON,),
    ),
    Command(
        ("tour",),
        "5-minute tour with the practice model",
        (_THEME,),
    ),
    Command(
        ("drill",),
        "simulate API failures safely, in a scratch session",
        (_THEME,),
        Positional(
            "FAULTS", "faults", f"any of {','.join(FAULTS)}", "faults", FAULTS, required=False
        ),
    ),
    Command(
        ("help",),
        "read the manual, or one topic",
        (
            _flag("--list", "list the topics", dest="list_topics"),
            _flag("--man", "print the man page, for man -l or a man folder"),
        ),
        Positional(
            "TOPIC", "topic", "a topic, or words to search for", "text", TOPICS, required=False
        ),
    ),
    Command(
        ("completion",),
        "print a shell's completion script",
        (),
        Positional("SHELL", "shell", "bash, zsh or fish", "name", (*SHELLS, *NAMES)),
    ),
    Command(
        ("schema",),
        "print the JSON Schema of a file or an output",
        (),
        Positional("NAME", "schema", "config, hooks, events, state or theme", "name", SCHEMAS),
    ),
)

GROUPS = {
    "sessions": "list, search, check, repair, move and export sessions",
    "mcp": "add, list and remove MCP servers, and sign in to them",
    "cluster": "start a Dask cluster for run --on",
    "plugin": "add, list and remove plugins",
}


def first_words() -> tuple[str, ...]:
    """The names of the subcommands, in order."""
    return tuple(dict.fromkeys(command.words[0] for command in COMMANDS))


def second_words(first: str) -> tuple[str, ...]:
    """List the words that may follow a subcommand's name: `list` and so on after `sessions`."""
    return tuple(c.words[1] for c in COMMANDS if c.words[0] == first and len(c.words) > 1)
