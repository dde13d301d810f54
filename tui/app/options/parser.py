"""The command line, parsed: argv becomes one frozen `Options`, or a UsageError. Pure.

Only --help and --version leave by SystemExit(0), after printing.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any, NoReturn

from tui.app.options.arguments import Options
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
from tui.core.errors import UsageError
from tui.core.paths import expanded


def parse(argv: Sequence[str]) -> Options:
    """Options for the words after the program's name. Raises UsageError."""
    command, arguments = _dispatch(list(argv))
    name = " ".join(("holdfast", *command.words))
    words: list[str] = []
    if command.after and "--" in arguments:
        words = arguments[arguments.index("--") + 1 :]
        arguments = arguments[: arguments.index("--")]
    parser = build(command, name)
    if command.second and not command.second.required:  # it may stand behind an option
        parsed, extra = parser.parse_known_intermixed_args(arguments)
    else:
        parsed, extra = parser.parse_known_args(arguments)
    if extra:
        raise _unexpected(extra[0], command, name)
    values = {field: value for field, value in vars(parsed).items() if value is not None}
    if words:
        values["words"] = tuple(words)
    for flag in command.flags:
        if (flag.repeat or flag.pair) and flag.field in values:
            values[flag.field] = tuple(values[flag.field])
    if command is MAIN:
        values = {"headless": "text" in values, **_prompt(values)}
    if "practice_script" in values:
        values["practice"] = True
    first = command.words[0] if command.words else "chat"
    action = command.words[1] if len(command.words) > 1 else ""
    options = Options().having(command=first, action=action, **values)
    _check(options)
    return options


def _prompt(given: dict[str, Any]) -> dict[str, Any]:
    """-p is a switch with a value: its TEXT and PROMPT are the same thing."""
    text, prompt = str(given.pop("text", "")), str(given.pop("prompt", ""))
    if text and prompt:
        raise UsageError(
            "Two prompts given: -p TEXT and PROMPT.",
            hint="Put the whole prompt in quotes.",
        )
    return {**given, "prompt": text or prompt or None}


def _check(options: Options) -> None:
    """Check the rules that concern several flags."""
    o, opening, printing, batch = options, options.opening, options.printing, options.batch
    limits, permissions = options.limits, options.permissions
    of_tools = {
        "--parallel": batch.parallel > 1,
        "--fallback-model": o.models.fallback_models,
        "--allow": permissions.allow,
        "--deny": permissions.deny,
        "--yolo": permissions.yolo,
        "--no-sandbox": permissions.no_sandbox,
        "--max-failures": limits.max_failures,
        "--max-time": limits.max_time,
    }
    pointless = next((name for name, is_given in of_tools.items() if is_given), "")
    of_machines = {
        "--store": batch.store,
        "--remote": batch.remote,
        "--scratch": batch.scratch is not None,
        "--insecure-cluster": batch.insecure_cluster,
    }
    placing = next((name for name, is_given in of_machines.items() if is_given), "")
    conflicts = (
        ((opening.resume or "").startswith("-"), f"unknown option {opening.resume}."),
        (
            opening.newest and opening.resume is not None,
            "--continue and --resume can't be combined.",
        ),
        (
            printing.headless and opening.resume == "",
            "-p can't open the session browser; --resume needs an ID.",
        ),
        (
            (opening.fork or (o.command == "chat" and o.sessions.at is not None))
            and not (opening.newest or opening.resume),
            f"{'--fork' if opening.fork else '--at'} needs a session: --resume ID or --continue.",
        ),
        (
            o.command == "chat"
            and o.sessions.at is not None
            and not opening.fork
            and (printing.headless or opening.background or printing.for_claude),
            "Without a screen, a session continues at its end: --at needs --fork.",
        ),
        (
            opening.no_session and (opening.newest or opening.resume is not None),
            "--no-session saves nothing, so it can't be combined with --continue or --resume.",
        ),
        (opening.background and printing.headless, "--bg and -p can't be combined."),
        (
            permissions.bare and permissions.trust,
            "--bare leaves out this folder's files, so it can't be combined with --trust.",
        ),
        (
            opening.background and opening.resume == "",
            "--bg can't open the session browser; --resume needs an ID.",
        ),
        (
            opening.background and opening.no_session,
            "--bg works in a session that is saved, so it can't be combined with --no-session.",
        ),
        (
            o.screen.plain and printing.headless,
            "-p already prints lines; --plain is for conversations.",
        ),
        (
            printing.output_format != "text"
            and not printing.headless
            and not (printing.for_claude and printing.input_format == printing.output_format),
            "--output-format needs -p.",
        ),
        (
            printing.input_format == "stream-json" and not printing.headless,
            "--input-format needs -p.",
        ),
        (printing.json_schema is not None and not printing.headless, "--json-schema needs -p."),
        (
            printing.input_format not in {"text", printing.output_format},
            (
                f"--input-format {printing.input_format} needs --output-format "
                f"{printing.input_format}."
            ),
        ),
        (
            printing.input_format != "text" and printing.json_schema is not None,
            f"--json-schema is for one prompt, not for --input-format {printing.input_format}.",
        ),
        (
            printing.input_format != "text" and o.prompt is not None,
            f"With --input-format {printing.input_format}, prompts come from standard input.",
        ),
        (
            permissions.plan and permissions.permission_mode not in {None, "plan"},
            f"--plan and --permission-mode {permissions.permission_mode} can't be combined.",
        ),
        (
            sum((o.dry_run, batch.status, batch.reset)) > 1,
            "Use only one of --dry-run, --status and --reset.",
        ),
        (
            batch.summary == Path("-"),
            "--summary needs a file: without a screen, the summary is printed anyway.",
        ),
        (
            batch.junit == Path("-") and o.json,
            "--json and --junit - can't both be standard output.",
        ),
        (batch.cancel and not batch.batch_api, "--cancel needs --batch-api."),
        (
            batch.batch_api and o.models.practice,
            "The practice model doesn't offer message batches: leave out --batch-api.",
        ),
        (
            batch.batch_api and bool(pointless),
            f"--batch-api sends questions without tools; it can't be combined with {pointless}.",
        ),
        (
            batch.on is not None and batch.batch_api,
            "--on places tasks on machines; it can't be combined with --batch-api.",
        ),
        (
            o.command == "run"
            and not (batch.on or batch.reset or batch.parallel > 1)
            and bool(placing),
            f"{placing} needs --on, or --parallel.",
        ),
        (
            o.command == "serve" and not opening.stdio,
            "serve: only --stdio is served: holdfast serve --stdio.",
        ),
        (
            o.command == "run" and not (batch.tasks or batch.status or batch.reset),
            "run: name a task file: holdfast run TASKS.md.",
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
        return UsageError(f"More than one prompt: {given!r}.", hint="Put it in quotes.")
    if command.after:
        see = f"Put -- in front of a command: {name} NAME -- {command.after}"
    return UsageError(f"{prefix(name)}unexpected argument {given!r}.", hint=see)


# Which command


def _dispatch(argv: list[str]) -> tuple[Command, list[str]]:
    """The command of a line, and the line without the command's words."""
    at = _first_word(argv, 0)
    if at is None:
        return MAIN, argv
    first = argv[at]
    if first not in first_words():
        # A slip costs no request. Real prompts are longer, or less like a command.
        elsewhere = _ELSEWHERE.get(first)
        meant = f"Use {elsewhere}." if elsewhere else near(first, first_words(), cutoff=_NEARLY)
        if meant and " " not in first:
            raise UsageError(
                f"There is no command {first!r}.",
                hint=f"{meant} To send it as a prompt: holdfast -- {first}",
            )
        return MAIN, argv
    others = argv[:at] + argv[at + 1 :]
    seconds = second_words(first)
    if not seconds:
        return _command(first), others
    at = _first_word(others, at)
    if at is None:
        if {"-h", "--help"} & set(others):
            return Command((first,), GROUPS[first]), ["--help"]
        raise UsageError(f"{first}: choose one of: {', '.join(seconds)}.", hint=_see(first))
    if others[at] not in seconds:
        hint = near(others[at], seconds) or _see(first)
        raise UsageError(f"{first}: {others[at]!r} isn't one of: {', '.join(seconds)}.", hint=hint)
    return _command(first, others[at]), others[:at] + others[at + 1 :]


def _command(*words: str) -> Command:
    return next(command for command in COMMANDS if command.words == words)


def _first_word(argv: list[str], start: int) -> int | None:
    """The index of the first word that is neither a flag nor a flag's value; None after `--`."""
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
            at += flag.pair + (not (flag.optional and argv[at].startswith("-")))
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


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        text = message.removeprefix("argument ").rstrip(".")
        raise UsageError(f"{prefix(self.prog)}{text}.", hint=f"See {self.prog} --help.")


def prefix(name: str) -> str:
    """Return the beginning of a message about a command: `run: `, nothing for plain `holdfast`."""
    return "".join(f"{words}: " for words in [name.removeprefix("holdfast").strip()] if words)


def build(command: Command, name: str) -> argparse.ArgumentParser:
    """The parser of one command. Errors are UsageError; a flag not given leaves no attribute."""
    usage = [name]
    if command.flags:
        usage.append("[options]")
    if _actions(command):
        usage.append("ACTION")
    usage += (word.name if word.required else f"[{word.name}]" for word in command.arguments)
    if command.after:
        usage.append(f"[-- {command.after}]")
    parser = _Parser(
        prog=name,
        usage=" ".join(usage) + ("\n       holdfast COMMAND [options]" if command is MAIN else ""),
        description=command.help[:1].upper() + command.help[1:].removesuffix(".") + ".",
        epilog=_epilog(command),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
        argument_default=argparse.SUPPRESS,
    )
    arguments = parser.add_argument_group("Arguments") if command.word else parser
    for word in command.arguments:
        arguments.add_argument(
            word.field,
            metavar=word.name,
            help=_escaped(word.help),
            type=_CONVERT[word.kind],
            nargs=None if word.required else "?",
            choices=(word.choices or None) if word.kind == "name" else None,
            default=None,
        )
    titles = dict.fromkeys(flag.group for flag in command.flags if flag.group != "Options")
    groups = {title: parser.add_argument_group(title) for title in (*titles, "Options")}
    for flag in command.flags:
        groups[flag.group].add_argument(*flag.names, **_settings(flag))
    other = groups["Options"]
    other.add_argument("-h", "--help", action="help", help="show this help")
    shown = "show the version" if command is MAIN else argparse.SUPPRESS
    other.add_argument("--version", action=_Version, nargs=0, help=shown)
    return parser


class _Version(argparse.Action):
    """Prints the version, whose build is looked up only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from tui.app.installed import version_line  # noqa: PLC0415 - seldom needed

        print(version_line())  # noqa: T201
        parser.exit()


def _settings(flag: Flag) -> dict[str, Any]:
    common = {"dest": flag.field, "help": _escaped(flag.help)}
    if not flag.takes_value:
        return {**common, "action": "store_const", "const": flag.const}
    if flag.choices:
        return {**common, "type": _choice, "choices": flag.choices}
    valued = {**common, "metavar": flag.value, "type": _CONVERT[flag.kind]}
    if flag.optional:
        return {**valued, "type": str, "nargs": "?", "const": ""}
    if flag.pair:
        return {**valued, "metavar": tuple(flag.value.split()), "nargs": 2}
    return {**valued, "action": "append"} if flag.repeat else valued


def _epilog(command: Command) -> str:
    if command is MAIN:
        helps = GROUPS | {" ".join(command.words): command.help for command in COMMANDS}
        rows = [(name, helps[name]) for name in first_words()]
        return _rows("Commands", rows) + _EXAMPLES
    rows = _actions(command)
    return _rows("Actions", rows) if rows else ""


def _actions(command: Command) -> list[tuple[str, str]]:
    """The second words that a command takes, each with its help."""
    return [(c.words[1], c.help) for c in COMMANDS if c.words[:1] == command.words and c.words[1:]]


def _rows(title: str, rows: list[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in rows) + 2
    return "\n".join((f"{title}:", *(f"  {name:<{width}}{text}" for name, text in rows)))


_EXAMPLES = """

To send one of these words as a prompt, use -p or put it after --.

Examples:
  holdfast                                  open the screen in this folder
  holdfast "explain this repository"        open it and ask
  holdfast --practice                       try it: no key, no network
  holdfast -c                               continue the last session
  holdfast -p "fix the failing test" --allow edit_file --allow "run_command(pytest*)"
  git diff | holdfast -p "review this" --output-format json
  holdfast help permissions                 read the manual on a topic

Exit codes: 0 done, 1 failed or limit reached, 2 usage or configuration, 3 no usable key,
4 session can't be opened, 130 interrupted."""


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


_NEAR, _NEARLY = 0.7, 0.8
_ELSEWHERE = {
    "config": "/config in a session",
    "exec": "holdfast -p",
    "login": "/login in a session",
    "resume": "holdfast -r",
}
"""Commands that people know from other agents, and what does that here."""


def near(word: str, words: Sequence[str], *, cutoff: float = _NEAR) -> str:
    """A hint with the word that was probably meant, "" where none is close."""
    from difflib import get_close_matches  # noqa: PLC0415 - only on error

    names = {each.lstrip("-"): each for each in words}  # what all share makes none of them near
    near = get_close_matches(word.lstrip("-"), names, n=1, cutoff=cutoff)
    return f"Did you mean {names[near[0]]}?" if near else ""


# Values


def _count(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value > 0:
        return value
    raise argparse.ArgumentTypeError(f"must be a whole number above 0, not {text!r}.")


def _number(text: str, allowed: str, check: Callable[[float], bool]) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isfinite(value) and check(value):
        return value
    raise argparse.ArgumentTypeError(f"must be {allowed}, not {text!r}.")


_DAYS = {"today": 0, "yesterday": 1}
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_LONGEST = 1_000_000
"""The most days, hours and so on that --since goes back."""


def _span(text: str) -> float:
    """Seconds of `90`, `90s`, `45m` or `8h`."""
    unit = _UNITS.get(text[-1:], 0)
    number = text[:-1] if unit else text
    return (unit or 1) * _number(number, "a time such as 90s, 45m or 8h", lambda n: n > 0)


def _moment(text: str) -> float | datetime:
    """Seconds back of `7d` or `3h`; the moment of a date, which begins at midnight here."""
    if (days := _DAYS.get(text)) is not None:
        day = datetime.now().astimezone().date() - timedelta(days)
        return datetime.combine(day, time()).astimezone()
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError, OSError):
        pass
    number, unit = text[:-1], _UNITS.get(text[-1:], 0)
    allowed = "yesterday, a date such as 2026-11-01, or a time such as 7d or 3h"
    if not unit:
        raise argparse.ArgumentTypeError(f"must be {allowed}, not {text!r}.")
    return unit * _number(number, allowed, lambda n: 0 <= n < _LONGEST)


def _name(text: str) -> str:
    if text.strip():
        return text
    raise argparse.ArgumentTypeError("can't be empty.")


def _choice(text: str) -> str:
    return "md" if text == "markdown" else text


def _path(text: str) -> Path:
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError("can't be empty.")
    return expanded(text)


def _faults(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for name in names:
        if name not in FAULTS:
            raise argparse.ArgumentTypeError(f"{name!r} isn't one of {', '.join(FAULTS)}.")
    if not names:
        raise argparse.ArgumentTypeError("can't be empty.")
    return names


_CONVERT: dict[str, Callable[[str], object]] = {
    "text": str,
    "name": _name,
    "session": _name,
    "background": _name,
    "session file": _name,
    "profile": _name,
    "file": _path,
    "folder": _path,
    "count": _count,
    "money": lambda text: _number(text, "an amount above 0", lambda n: n > 0),
    "seconds": lambda text: _number(text, "a number of seconds, 0 or more", lambda n: n >= 0),
    "span": _span,
    "moment": _moment,
    "faults": _faults,
}
