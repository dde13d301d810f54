"""The completion script of zsh."""

from __future__ import annotations

from collections.abc import Iterable

from tui.app.options.flags import COMMANDS, MAIN, Command, Flag, Word, first_words, second_words
from tui.cli.completion.common import fill, flags_of, groups, quoted, text_of, values


def script() -> str:
    functions = [_function(command) for command in COMMANDS]
    cases = [f"        {first}) _holdfast_{first} ;;" for first in first_words()]
    return fill(
        _ZSH,
        functions="\n\n".join([*functions, *(_group(first) for first, _ in groups())]),
        first_lines=_described((first,) for first in first_words()),
        main=_specs(MAIN),
        cases=cases,
    )


def _function(command: Command) -> str:
    words = [_word(word, place) for place, word in enumerate(command.arguments, 1)]
    specs = [*_specs(command), *words]
    name = "_".join(("_holdfast", *command.words))
    return "\n".join((f"{name}() {{", "    _arguments -s -S \\", *specs, "        && ret=0", "}"))


def _group(first: str) -> str:
    seconds = second_words(first)
    return fill(
        _ZSH_GROUP,
        first=first,
        second_lines=_described((first, second) for second in seconds),
        cases=[f"        {second}) _holdfast_{first}_{second} ;;" for second in seconds],
    )


def _described(commands: Iterable[tuple[str, ...]]) -> list[str]:
    return [f"        {quoted(f'{words[-1]}:{text_of(*words)}')}" for words in commands]


def _specs(command: Command) -> list[str]:
    return [f"        {spec} \\" for flag in flags_of(command) for spec in _flag(flag)]


def _flag(flag: Flag) -> Iterable[str]:
    help_text = flag.help.replace("[", "\\[").replace("]", "\\]")
    value = ""
    if flag.takes_value:
        colon = "::" if flag.optional else ":"
        value = f"{colon}{(flag.value or flag.names[-1].lstrip('-')).lower()}:{_action(flag)}"
    for name in flag.names:
        others = "*" if flag.repeat else f"({' '.join(flag.names)})"
        attach = "=" if flag.takes_value and name.startswith("--") else ""
        yield quoted(f"{others}{name}{attach}[{help_text}]{value}")


def _word(word: Word, place: int) -> str:
    colon = ":" if word.required else "::"
    return f"        {quoted(f'{place}{colon}{word.name.lower()}:{_action(word)}')} \\"


def _action(part: Flag | Word) -> str:
    match values(part):
        case "choices":
            return f"({' '.join(part.choices)})"
        case "folders":
            return "_files -/"
        case "files":
            return "_files"
        case "text":
            return " "


_ZSH = """\
#compdef holdfast
# zsh completion for holdfast: save it as _holdfast in a folder of $fpath.

@functions@

_holdfast() {
    local context state line curcontext=$curcontext ret=1
    local -a commands
    commands=(
@first_lines@
    )
    _arguments -s -S -C \\
@main@
        '1: :->first' \\
        '*:: :->rest' && ret=0
    case $state in
    first) _describe -t commands command commands && ret=0 ;;
    rest)
        curcontext="${curcontext%:*}-$line[1]:"
        case $line[1] in
@cases@
        *)
            _arguments -s -S \\
@main@
                && ret=0 ;;
        esac ;;
    esac
    return ret
}

if [[ $funcstack[1] == _holdfast ]]; then
    _holdfast "$@"
else
    compdef _holdfast holdfast
fi
"""

_ZSH_GROUP = """\
_holdfast_@first@() {
    local context state line
    local -a actions
    actions=(
@second_lines@
    )
    _arguments -s -S -C \\
        '(-h --help)'{-h,--help}'[show this help]' \\
        '1: :->second' \\
        '*:: :->rest' && ret=0
    case $state in
    second) _describe -t actions action actions && ret=0 ;;
    rest)
        case $line[1] in
@cases@
        esac ;;
    esac
}"""
