"""`holdfast completion`: scripts for bash, zsh and fish, made from the table of flags."""

from __future__ import annotations

import re
from argparse import Action, ArgumentParser
from collections.abc import Iterable
from typing import Any, Final, Literal

from tui.app import background
from tui.app.options.arguments import Options
from tui.app.options.flags import (
    BACKGROUND_NAMES,
    COMMANDS,
    GROUPS,
    MAIN,
    NAMES,
    PROFILE_NAMES,
    SESSION_NAMES,
    Command,
    Flag,
    Positional,
)
from tui.core.clock import SystemClock
from tui.core.errors import ConfigError
from tui.core.paths import folders
from tui.session import index
from tui.session.naming import completed
from tui.settings.layers import read
from tui.settings.profiles import profiles_in

_NAMES: Final = f"command holdfast completion {PROFILE_NAMES} 2>/dev/null"
_BASH: Final = r"""
_holdfast_NAMES_or_files() {
  local name id word unsafe='[$\`!]'  # bash 5.2 quotes some of these in some places only
  local -a all=() same=() alike=()
  case $1 in
    \'*) word=${1#?} ;;
    \"*) IFS= read word <<< "${1#?}" ;;  # takes the backslashes out
    *) IFS= read word <<< "$1" ;;
  esac
  shopt -u nocasematch
  while IFS=$'\t' read -r name id; do
    all+=("$name")
    if [[ $name == "$word"* ]]; then
      if [[ $name =~ $unsafe ]]; then same+=("$id"); else same+=("$name"); fi
    elif [[ -n $word && $id == "$word"* ]]; then same+=("$id"); fi
  done < <(command holdfast completion NAMES 2>/dev/null)
  if (( ${#same[@]} )); then printf '%s\n' "${same[@]}"
  elif (( ${#all[@]} )); then
    shopt -s nocasematch  # for one alone: several may share less than was typed
    for name in "${all[@]}"; do
      if [[ $name == "$word"* && ! $name =~ $unsafe ]]; then alike+=("$name"); fi
    done
    if (( ${#alike[@]} == 1 )); then printf '%s\n' "${alike[@]}"; fi
  fi
  compgen -f -- "$word"
}
"""
_ZSH: Final = r"""
_holdfast_NAMES_or_files() {
  local name id
  local -a names ids
  while IFS=$'\t' read -r name id; do
    names+=("$name")
    [[ -n $id ]] && ids+=("$id")
  done < <(command holdfast completion NAMES 2>/dev/null)
  compadd -M 'm:{[:lower:][:upper:]}={[:upper:][:lower:]}' -a names
  [[ -n $PREFIX ]] && compadd -a ids
  _files
}
"""
_FISH: Final = r"""
function _holdfast_NAMES_or_files
  set -l word (commandline -ct)
  set -l lines (command holdfast completion NAMES 2>/dev/null)
  printf '%s\n' $lines
  if test -n "$word"
    printf '%s\n' $lines | string replace -r '^(.*)\t(.+)$' '$2\t$1'
  end
  __fish_complete_path "$word"
end
"""


def run(options: Options) -> int:
    """Print the completion script of a shell, or the names that it asks for. Returns the exit
    code."""
    shell = options.help.shell
    match shell:
        case "profiles":
            text = _profiles()
        case "sessions":
            text = _sessions((one.title, one.id) for one in index.list_sessions(folders()))
        case "background":
            every = background.listed(folders(), SystemClock().now())
            text = _sessions((one.title, one.id) for one in every)
        case _:
            text = script(shell)
    print(text)  # noqa: T201
    return 0


def _sessions(every: Iterable[tuple[str, str]]) -> str:
    """The sessions, a line each: what names one, a tab, and its id where that is a title."""
    return "\n".join("\t".join(one) for one in completed(every))


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
            choices = [one for one in word.choices if one not in NAMES]  # those are for scripts
            extra: dict[str, Any] = {"choices": choices} if choices else {}
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
    elif part.kind in {"session", "background"}:
        vars(action)["complete"] = _named_or_file(_ASKED[part.kind])
    elif part.kind in {"file", "session file"}:
        vars(action)["complete"] = shtab.FILE
    elif isinstance(part, Positional) and not part.choices:
        # Nothing to offer: without this, zsh 5.9 offers no options in the word's place either.
        vars(action)["complete"] = {"zsh": "()"}


_ASKED: Final = {"session": SESSION_NAMES, "background": BACKGROUND_NAMES}


def _named_or_file(names: str) -> dict[str, Any]:
    """The completion of a session, for each shell: its name in the function's makes bash quote what
    it offers, as it does files."""
    function = f"_holdfast_{names}_or_files"
    texts = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
    preamble = {shell: text.replace("NAMES", names) for shell, text in texts.items()}
    return {"bash": function, "zsh": function, "fish": f"({function})", "preamble": preamble}
