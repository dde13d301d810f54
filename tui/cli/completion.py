"""`holdfast completion`: scripts for bash, zsh and fish, made from the table of flags."""

from __future__ import annotations

import re
from argparse import Action, ArgumentParser
from typing import Any, Final, Literal

from tui.app.options.arguments import Options
from tui.app.options.flags import (
    COMMANDS,
    GROUPS,
    MAIN,
    PROFILE_NAMES,
    Command,
    Flag,
    Positional,
)
from tui.core.errors import ConfigError
from tui.core.paths import folders
from tui.settings.layers import read
from tui.settings.profiles import profiles_in

_NAMES: Final = f"holdfast completion {PROFILE_NAMES} 2>/dev/null"


def run(options: Options) -> int:
    """Print the completion script of a shell, or the names of the profiles. Returns the exit
    code."""
    shell = options.help.shell
    print(_profiles() if shell == "profiles" else script(shell))  # noqa: T201
    return 0


def _profiles() -> str:
    """The names of the profiles that a shell takes without quotes, a line each; none where the
    settings are broken, since it is no place to say so."""
    try:
        table = read(folders().config_file)
        names = profiles_in(table, "")
    except ConfigError:
        return ""
    return "\n".join(name for name in names if re.fullmatch(r"[\w.-]+", name))


def script(shell: Literal["bash", "zsh", "fish"]) -> str:
    """Return the completion script of a shell, to be sourced or put into its completions folder."""
    import shtab  # noqa: PLC0415 - for this only

    text = shtab.complete(_parser(), shell)
    return text.replace(_ZSH_BY_EVAL, _ZSH_BY_ANY) if shell == "zsh" else text


_ZSH_BY_EVAL: Final = "if [[ $zsh_eval_context[-1] == eval ]]; then\n"
_ZSH_BY_ANY: Final = """if [[ $funcstack[1] != _holdfast ]]; then
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i -D }
"""
"""Replaces the check of shtab 1.13, which registers the script when sourced in `eval` alone. A
script that zsh doesn't call as the function `_holdfast` is sourced, and registers itself. Needs
compinit, which a bare zsh 5.9 hasn't run."""


def _parser() -> ArgumentParser:
    """Return the table as an argparse parser. It parses nothing: completion is made from it."""
    main = _filled(ArgumentParser("holdfast", description=MAIN.help), MAIN)
    main.add_argument("--version", action="store_true", help="show the version")
    first = main.add_subparsers()
    groups = {
        name: first.add_parser(name, help=text).add_subparsers() for name, text in GROUPS.items()
    }
    for command in COMMANDS:
        *group, name = command.words
        below = groups[group[0]] if group else first
        _filled(below.add_parser(name, help=command.help), command)
    return main


def _filled(parser: ArgumentParser, command: Command) -> ArgumentParser:
    for flag in command.flags:
        given: dict[str, Any] = {
            "action": "append" if flag.repeat else "store",
            "metavar": flag.value,
        }
        if flag.optional:
            given["nargs"] = "?"
        elif flag.pair:
            given |= {"nargs": 2, "metavar": tuple(flag.value.split())}
        if not flag.takes_value:
            given = {"action": "store_true"}
        elif flag.choices:
            given["choices"] = flag.choices
        _completed(parser.add_argument(*flag.names, help=flag.help, **given), flag)
    if command is not MAIN:  # a prompt is free text
        for word in command.arguments:
            extra: dict[str, Any] = {"choices": word.choices} if word.choices else {}
            action = parser.add_argument(
                word.field,
                help=word.help,
                metavar=word.name,
                nargs=None if word.required else "?",
                **extra,
            )
            _completed(action, word)
    return parser


def _completed(action: Action, part: Flag | Positional) -> None:
    """Offer files or folders where a value is one."""
    import shtab  # noqa: PLC0415 - as above

    if part.kind == "folder":
        vars(action)["complete"] = shtab.DIRECTORY
    elif part.kind == "profile":
        vars(action)["complete"] = shtab.cmd(_NAMES)
    elif part.kind in {"file", "session"}:
        vars(action)["complete"] = shtab.FILE
    elif isinstance(part, Positional) and not part.choices:
        # Nothing to offer: without this, zsh 5.9 offers no options in the word's place either.
        vars(action)["complete"] = {"zsh": "()"}
