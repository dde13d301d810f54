"""The command line as data: every command with its flags and words.

The parser, the help and the shell completions are all made from this, so they cannot drift
apart. A flag means the same, and takes a value or not, wherever it stands.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from tui.app.manual import TOPICS

Kind: TypeAlias = Literal[
    "text", "name", "session", "file", "folder", "count", "money", "seconds", "span", "faults"
]

FAULTS = (
    "429", "529", "cut", "eof", "stall", "overflow", "badjson", "auth", "slow", "park", "400",
)  # fmt: skip
SHELLS = ("bash", "zsh", "fish")
FORMATS = ("text", "json", "stream-json")


@dataclass(frozen=True, slots=True)
class Flag:
    """An option. `value` is how help names its value, "" for a switch.

    `field` is the attribute of `Options`. `optional`: the value may be left out; `repeat`: the
    flag may stand more than once and its values add up.
    """

    names: tuple[str, ...]
    field: str
    help: str
    value: str = ""
    kind: Kind = "text"
    choices: tuple[str, ...] = ()
    optional: bool = False
    repeat: bool = False
    group: str = "Options"

    @property
    def takes_value(self) -> bool:
        return bool(self.value or self.choices)


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
    """A command by its words: () is plain `holdfast`, ("sessions", "list") a subcommand's."""

    words: tuple[str, ...]
    help: str
    flags: tuple[Flag, ...] = ()
    word: Positional | None = None
    second: Positional | None = None

    @property
    def arguments(self) -> tuple[Positional, ...]:
        return tuple(word for word in (self.word, self.second) if word)


_SESSION, _MODEL, _FILES = "Session", "Model", "Folder, files and tools"
_HEADLESS, _SCREEN, _LIMITS = "Headless, and limits", "Screen", "Limits"

_CWD = Flag(("-C", "--cwd"), "cwd", "work in DIR", "DIR", "folder", group=_FILES)
_JSON = Flag(("--json",), "json", "print JSON")
_MODEL_FLAGS = (
    Flag(("-m", "--model"), "model", "the model to ask", "NAME", "name", group=_MODEL),
    Flag(
        ("--fallback-model",),
        "fallback_models",
        "the model to go on with when the first is not available (repeat for a chain)",
        "NAME",
        "name",
        repeat=True,
        group=_MODEL,
    ),
    Flag(
        ("--practice",), "practice", "the offline practice model: no key, no network", group=_MODEL
    ),
    Flag(
        ("--practice-script",),
        "practice_script",
        "the practice model replays FILE (TOML)",
        "FILE",
        "file",
        group=_MODEL,
    ),
)
_THEME = Flag(("--theme",), "theme", "the colours, for this run", "NAME", "name", group=_SCREEN)
_YOLO = Flag(
    ("-y", "--yolo"),
    "yolo",
    "start elevated: nothing is asked; what is always blocked stays blocked",
    group=_FILES,
)
_TRUST = Flag(
    ("--trust",), "trust", "trust this folder's .holdfast/ files for this run", group=_FILES
)

_RULES = (
    Flag(
        ("--allow",),
        "allow",
        "run without asking what matches RULE: tool or tool(glob) (may repeat)",
        "RULE",
        "name",
        repeat=True,
        group=_FILES,
    ),
    Flag(
        ("--deny",),
        "deny",
        "refuse what matches RULE; goes before every --allow (may repeat)",
        "RULE",
        "name",
        repeat=True,
        group=_FILES,
    ),
)

MAIN = Command(
    (),
    "A full-screen terminal agent. PROMPT is sent first.",
    (
        Flag(
            ("-c", "--continue"),
            "newest",
            "go on with the newest session of this folder",
            group=_SESSION,
        ),
        Flag(
            ("-r", "--resume"),
            "resume",
            "go on with a session; without a value, choose one",
            "ID|FILE",
            "session",
            optional=True,
            group=_SESSION,
        ),
        Flag(("--no-session",), "no_session", "keep nothing on disk", group=_SESSION),
        *_MODEL_FLAGS,
        _CWD,
        Flag(
            ("--add-dir",),
            "add_dirs",
            "let the file tools use DIR too (may repeat)",
            "DIR",
            "folder",
            repeat=True,
            group=_FILES,
        ),
        _TRUST,
        *_RULES,
        _YOLO,
        Flag(
            ("-p", "--print"),
            "text",
            "no screen: one prompt, the answer on stdout; TEXT and/or stdin",
            "TEXT",
            optional=True,
            group=_HEADLESS,
        ),
        Flag(
            ("--output-format",),
            "output_format",
            "what -p prints: the answer, one JSON object, or one event a line",
            choices=FORMATS,
            group=_HEADLESS,
        ),
        Flag(("--max-turns",), "max_turns", "stop after N requests", "N", "count", group=_HEADLESS),
        Flag(("--max-tokens",), "max_tokens", "stop after N tokens", "N", "count", group=_HEADLESS),
        Flag(
            ("--max-cost",),
            "max_cost",
            "stop at this cost; needs [prices] in the configuration",
            "USD",
            "money",
            group=_HEADLESS,
        ),
        Flag(
            ("--max-wait",),
            "max_wait",
            "the longest wait for a server's limits; 0 waits for none",
            "SECONDS",
            "seconds",
            group=_HEADLESS,
        ),
        Flag(("--verbose",), "verbose", "start with the debug view", group=_SCREEN),
        Flag(
            ("--plain",),
            "plain",
            "lines of text in the place of the screen: for screen readers and simple terminals",
            group=_SCREEN,
        ),
        _THEME,
    ),
    Positional("PROMPT", "prompt", "what to do; quote it", required=False),
)

_ID = Positional("ID|FILE", "target", "a session's id, the start of one, or a file", "session")
_OUT = Flag(("--out",), "out", "write to PATH", "PATH", "file")


def _sessions(
    name: str,
    text: str,
    word: Positional | None = _ID,
    *flags: Flag,
    second: Positional | None = None,
) -> Command:
    return Command(("sessions", name), text, (*flags, _CWD, _JSON), word, second)


COMMANDS = (
    Command(
        ("run",),
        "work through a task file, one task after the other",
        (
            *_MODEL_FLAGS[:1],
            replace(_MODEL_FLAGS[1], help="the model to swap with after a rate limit or timeout"),
            *_MODEL_FLAGS[2:],
            Flag(("--dir", *_CWD.names), "cwd", _CWD.help, "DIR", "folder", group=_FILES),
            _TRUST,
            *_RULES,
            _YOLO,
            Flag(
                ("--max-cost",),
                "max_cost",
                "end the run at this cost; needs [prices] in the configuration",
                "USD",
                "money",
                group=_LIMITS,
            ),
            Flag(
                ("--max-failures",),
                "max_failures",
                "end the run after N failed tasks in a row",
                "N",
                "count",
                group=_LIMITS,
            ),
            Flag(
                ("--max-time",),
                "max_time",
                "begin nothing after this time: 90s, 45m, 8h",
                "TIME",
                "span",
                group=_LIMITS,
            ),
            Flag(("--dry-run",), "dry_run", "show what would be done, do nothing"),
            Flag(("--status",), "status", "show how far the tasks are"),
            Flag(("--reset",), "reset", "forget state and logs, do nothing else"),
            Flag(("--retry-failed",), "retry_failed", "run the failed tasks again"),
            Flag(("--headless",), "headless", "no screen: plain lines on stdout"),
            Flag(
                ("--summary",),
                "summary",
                "write the summary, as Markdown, to FILE too",
                "FILE",
                "file",
            ),
            Flag(("--json",), "json", "no screen: one event a line; of --status, an object"),
        ),
        Positional("TASKS.md", "tasks", "the task file", "file", required=False),
    ),
    _sessions(
        "list",
        "the sessions of this folder",
        None,
        Flag(("--all",), "all", "those of all folders"),
    ),
    _sessions(
        "search", "find text in all sessions", Positional("TEXT", "target", "what to look for")
    ),
    _sessions("show", "print a session"),
    _sessions("check", "look for damage; exit 1 where there is some"),
    _sessions("view", "print the exact request that the next prompt would send"),
    _sessions(
        "repair",
        "write a repaired copy; the original is never changed",
        _ID,
        Flag(("--dry-run",), "dry_run", "show what would be done, do nothing"),
        _OUT,
    ),
    _sessions(
        "import",
        "take over another agent's session",
        Positional("FILE", "target", "a session file", "session"),
    ),
    _sessions(
        "export",
        "write a session as a document",
        _ID,
        Flag(
            ("--format",), "format", "the document's format (md)", choices=("md", "html", "jsonl")
        ),
        _OUT,
    ),
    _sessions(
        "fork",
        "copy a session, whole or up to a message",
        _ID,
        Flag(("--at",), "at", "copy up to this message", "MESSAGE", "name"),
    ),
    _sessions(
        "rename",
        "give a session another title",
        second=Positional("TITLE", "title", "the title; quote it", "name"),
    ),
    _sessions("delete", "move a session to the trash folder"),
    Command(
        ("doctor",),
        "check the installation, the configuration, the key and the sessions",
        (_CWD, _JSON),
    ),
    Command(
        ("tour",),
        "every protective feature once, in five minutes, with the practice model",
        (_THEME,),
    ),
    Command(
        ("drill",),
        "the practice model with faults, in a scratch session: see what happens to errors",
        (_THEME,),
        Positional(
            "FAULTS", "faults", f"any of {','.join(FAULTS)}", "faults", FAULTS, required=False
        ),
    ),
    Command(
        ("help",),
        "read the manual, or one topic",
        (Flag(("--list",), "list_topics", "list the topics"),),
        Positional(
            "TOPIC", "topic", "a topic, or words to search for", "text", TOPICS, required=False
        ),
    ),
    Command(
        ("completion",),
        "print the completion script of a shell",
        (),
        Positional("SHELL", "shell", "bash, zsh or fish", "name", SHELLS),
    ),
)

GROUPS = {
    "sessions": "find, read, check, repair, copy and export saved sessions",
}


def first_words() -> tuple[str, ...]:
    """The names of the subcommands, in order."""
    return tuple(dict.fromkeys(command.words[0] for command in COMMANDS))


def second_words(first: str) -> tuple[str, ...]:
    """What may follow a subcommand's name: `list` and so on after `sessions`."""
    return tuple(c.words[1] for c in COMMANDS if c.words[0] == first and len(c.words) > 1)
