"""The command line, parsed: argv becomes one frozen `Options`, or a UsageError. Pure.

Only --help and --version leave by SystemExit(0), after printing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tui.app.options.flags import (
    COMMANDS,
    FAULTS,
    GROUPS,
    MAIN,
    Command,
    Flag,
    first_words,
    second_words,
)
from tui.app.options.parser import build, near, prefix
from tui.core.errors import UsageError

CommandName: TypeAlias = Literal[
    "chat", "run", "sessions", "doctor", "tour", "drill", "help", "completion"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line asks for. None and () mean: not given.

    `command` is "chat" for plain `holdfast`; `action` belongs to `sessions`. `prompt` is what was
    typed, as PROMPT or as the TEXT of -p. `headless` is -p or `run --headless`. `resume` is ""
    for the session browser. Paths are as typed, `~` expanded.
    """

    command: CommandName = "chat"
    action: str = ""
    json: bool = False
    cwd: Path | None = None

    prompt: str | None = None
    newest: bool = False
    resume: str | None = None
    no_session: bool = False
    model: str | None = None
    fallback_models: tuple[str, ...] = ()
    practice: bool = False
    practice_script: Path | None = None
    add_dirs: tuple[Path, ...] = ()
    trust: bool = False
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    yolo: bool = False
    headless: bool = False
    output_format: Literal["text", "json", "stream-json"] = "text"
    max_turns: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    max_wait: float | None = None
    verbose: bool = False
    plain: bool = False
    theme: str | None = None

    tasks: Path | None = None
    dry_run: bool = False
    status: bool = False
    reset: bool = False
    retry_failed: bool = False
    max_failures: int | None = None
    max_time: float | None = None
    summary: Path | None = None

    target: str | None = None
    all: bool = False
    out: Path | None = None
    format: Literal["md", "html", "jsonl"] = "md"
    at: str | None = None
    title: str | None = None

    faults: tuple[str, ...] = FAULTS
    topic: str | None = None
    list_topics: bool = False
    shell: Literal["bash", "zsh", "fish"] = "bash"

    @property
    def overrides(self) -> dict[str, Any]:
        """What of it belongs to the configuration, in the shape of the file."""
        found: dict[str, Any] = {
            "model": self.model,
            "fallback_models": list(self.fallback_models),
            "theme": self.theme,
            "permissions": {
                name: list(rules)
                for name, rules in (("allow", self.allow), ("deny", self.deny))
                if rules
            },
        }
        return {key: value for key, value in found.items() if value not in (None, [], {})}


def parse(argv: Sequence[str]) -> Options:
    """Options for the words after the program's name. Raises UsageError."""
    command, rest = _dispatch(list(argv))
    name = " ".join(("holdfast", *command.words))
    parsed, extra = build(command, name).parse_known_args(rest)
    if extra:
        raise _unexpected(extra[0], command, name)
    given = {field: value for field, value in vars(parsed).items() if value is not None}
    for flag in command.flags:
        if flag.repeat and flag.field in given:
            given[flag.field] = tuple(given[flag.field])
    if command is MAIN:
        given = {"headless": "text" in given, **_prompt(given)}
    if "practice_script" in given:
        given["practice"] = True
    first = command.words[0] if command.words else "chat"
    action = command.words[1] if len(command.words) > 1 else ""
    options = Options(command=first, action=action, **given)  # pyright: ignore[reportArgumentType] - COMMANDS holds these names only
    _check(options)
    return options


def _prompt(given: dict[str, Any]) -> dict[str, Any]:
    """-p is a switch with a value: its TEXT and PROMPT are the same thing."""
    text, prompt = str(given.pop("text", "")), str(given.pop("prompt", ""))
    if text and prompt:
        raise UsageError(
            "There are two prompts: the TEXT of -p and PROMPT.",
            hint="Put the whole prompt in quotes.",
        )
    return {**given, "prompt": text or prompt or None}


def _check(options: Options) -> None:
    """What no single flag can know."""
    o = options
    conflicts = (
        ((o.resume or "").startswith("-"), f"unknown option {o.resume}."),
        (o.newest and o.resume is not None, "--continue and --resume exclude each other."),
        (
            o.headless and o.resume == "",
            "-p cannot open the session browser; --resume needs an ID.",
        ),
        (
            o.no_session and (o.newest or o.resume is not None),
            "--no-session keeps nothing, --continue and --resume go on with what was kept.",
        ),
        (o.plain and o.headless, "-p prints lines already; --plain is for a conversation."),
        (o.output_format != "text" and not o.headless, "--output-format is for -p."),
        (sum((o.dry_run, o.status, o.reset)) > 1, "Only one of --dry-run, --status and --reset."),
        (
            o.command == "run" and not (o.tasks or o.status or o.reset),
            "run: a task file is needed: holdfast run TASKS.md.",
        ),
    )
    for wrong, message in conflicts:
        if wrong:
            raise UsageError(message, hint=_see(o.command))


def _see(command: str) -> str:
    return f"See holdfast {'' if command == 'chat' else command + ' '}--help."


def _unexpected(given: str, command: Command, name: str) -> UsageError:
    see = f"See {name} --help."
    if given.startswith("-") and given != "-":
        flag = given.split("=", 1)[0]
        names = [n for f in command.flags for n in f.names if n.startswith("--")]
        return UsageError(f"{prefix(name)}unknown option {flag}.", hint=near(flag, names) or see)
    if command is MAIN:
        return UsageError(f"There is more than one prompt: {given!r}.", hint="Put it in quotes.")
    return UsageError(f"{prefix(name)}{given!r} is too much.", hint=see)


# Which command


def _dispatch(argv: list[str]) -> tuple[Command, list[str]]:
    """The command of a line, and the line without the command's words."""
    at = _first_word(argv, 0)
    if at is None or argv[at] not in first_words():
        return MAIN, argv
    first = argv[at]
    rest = argv[:at] + argv[at + 1 :]
    seconds = second_words(first)
    if not seconds:
        return _command(first), rest
    at = _first_word(rest, at)
    if at is None:
        if {"-h", "--help"} & set(rest):
            return Command((first,), GROUPS[first]), ["--help"]
        raise UsageError(f"{first}: what? One of: {', '.join(seconds)}.", hint=_see(first))
    if rest[at] not in seconds:
        hint = near(rest[at], seconds) or _see(first)
        raise UsageError(f"{first}: {rest[at]!r} is none of: {', '.join(seconds)}.", hint=hint)
    return _command(first, rest[at]), rest[:at] + rest[at + 1 :]


def _command(*words: str) -> Command:
    return next(command for command in COMMANDS if command.words == words)


def _first_word(argv: list[str], start: int) -> int | None:
    """Where the first word stands that is no flag and no flag's value; None after `--`."""
    flags = {name: flag for c in (MAIN, *COMMANDS) for flag in c.flags for name in flag.names}
    at = start
    while at < len(argv):
        part = argv[at]
        if part == "--":
            return None
        if not part.startswith("-") or part == "-":
            return at
        at += 1
        flag = flags.get(part) or _last_of_cluster(part, flags)
        if flag and flag.takes_value and at < len(argv):
            at += not (flag.optional and argv[at].startswith("-"))
    return None


def _last_of_cluster(part: str, flags: dict[str, Flag]) -> Flag | None:
    """The flag of `-ym` that the next word belongs to; None where the value is attached."""
    if part.startswith("--"):
        return None
    for place, letter in enumerate(part[1:], 1):
        flag = flags.get(f"-{letter}")
        if flag is None:
            return None
        if flag.takes_value:
            return flag if place == len(part) - 1 else None
    return None
