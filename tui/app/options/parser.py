"""The argument parser of one command, with its help, built from `tui.app.options.flags`."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import tui
from tui.app.options.flags import COMMANDS, FAULTS, GROUPS, MAIN, Command, Flag, first_words
from tui.core.errors import UsageError


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        text = message.removeprefix("argument ").rstrip(".")
        raise UsageError(f"{prefix(self.prog)}{text}.", hint=f"See {self.prog} --help.")


def prefix(name: str) -> str:
    """How a message about a command begins: `run: `, nothing for plain `holdfast`."""
    return "".join(f"{words}: " for words in [name.removeprefix("holdfast").strip()] if words)


def build(command: Command, name: str) -> argparse.ArgumentParser:
    """The parser of one command. Errors are UsageError; a flag not given leaves no attribute."""
    usage = [name]
    if command.flags:
        usage.append("[options]")
    usage += (word.name if word.required else f"[{word.name}]" for word in command.arguments)
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
    if command is MAIN:
        version = f"holdfast {tui.__version__}"
        other.add_argument("--version", action="version", version=version, help="show the version")
    return parser


def _settings(flag: Flag) -> dict[str, Any]:
    common = {"dest": flag.field, "help": _escaped(flag.help)}
    if not flag.takes_value:
        return {**common, "action": "store_true", "default": argparse.SUPPRESS}
    if flag.choices:
        return {**common, "choices": flag.choices}
    valued = {**common, "metavar": flag.value, "type": _CONVERT[flag.kind]}
    if flag.optional:
        return {**valued, "type": str, "nargs": "?", "const": ""}
    return {**valued, "action": "append"} if flag.repeat else valued


def _epilog(command: Command) -> str:
    if command is MAIN:
        helps = GROUPS | {" ".join(command.words): command.help for command in COMMANDS}
        rows = [(name, helps[name]) for name in first_words()]
        return _rows("Commands", rows) + _EXAMPLES
    rows = [(c.words[1], c.help) for c in COMMANDS if c.words[:1] == command.words and c.words[1:]]
    return _rows("Actions", rows) if rows else ""


def _rows(title: str, rows: list[tuple[str, str]]) -> str:
    return "\n".join((f"{title}:", *(f"  {name:<12}{text}" for name, text in rows)))


_EXAMPLES = """

A prompt that is one of these words is given with -p or after --.

Examples:
  holdfast                                  open the screen in this folder
  holdfast "explain this repository"        open it and ask
  holdfast --practice                       try it: no key, no network
  holdfast -c                               go on where you stopped
  holdfast -p "fix the failing test" --allow edit_file --allow "run_command(pytest*)"
  git diff | holdfast -p "review this" --output-format json
  holdfast help permissions                 read the manual on a topic

Exit codes: 0 done, 1 failed or a limit reached, 2 usage or configuration, 3 no usable key,
4 the session cannot be opened, 130 interrupted."""


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def near(word: str, words: Sequence[str]) -> str:
    """A hint with the word that was probably meant, "" where none is close."""
    from difflib import get_close_matches  # noqa: PLC0415 - only on error

    near = get_close_matches(word, words, n=1)
    return f"Did you mean {near[0]}?" if near else ""


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


_UNITS = {"s": 1, "m": 60, "h": 3600}


def _span(text: str) -> float:
    """Seconds of `90`, `90s`, `45m` or `8h`."""
    unit = _UNITS.get(text[-1:], 0)
    number = text[:-1] if unit else text
    return (unit or 1) * _number(number, "a time such as 90s, 45m or 8h", lambda n: n > 0)


def _name(text: str) -> str:
    if text.strip():
        return text
    raise argparse.ArgumentTypeError("must not be empty.")


def _path(text: str) -> Path:
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError("must not be empty.")
    try:
        return Path(text).expanduser()
    except RuntimeError:  # "~nobody"
        return Path(text)


def _faults(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for name in names:
        if name not in FAULTS:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(FAULTS)}.")
    if not names:
        raise argparse.ArgumentTypeError("must not be empty.")
    return names


_CONVERT: dict[str, Callable[[str], object]] = {
    "text": str,
    "name": _name,
    "session": _name,
    "file": _path,
    "folder": _path,
    "count": _count,
    "money": lambda text: _number(text, "an amount above 0", lambda n: n > 0),
    "seconds": lambda text: _number(text, "a number of seconds, 0 or more", lambda n: n >= 0),
    "span": _span,
    "faults": _faults,
}
