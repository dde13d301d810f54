"""The completion script of bash. It needs nothing but bash itself, from 3.2 on."""

from __future__ import annotations

from collections.abc import Iterable

from tui.app.options.flags import Flag, Word, first_words
from tui.cli.completion.common import ALL, fill, flags_of, groups, values


def script() -> str:
    flags = {name: flag for c in ALL for flag in c.flags for name in flag.names}
    required = [name for name, flag in flags.items() if flag.takes_value and not flag.optional]
    return fill(
        _BASH,
        required="|".join(required),
        optional="|".join(name for name, flag in flags.items() if flag.optional),
        firsts="|".join(first_words()),
        first_words=" ".join(first_words()),
        groups="|".join(first for first, _ in groups()),
        values=_values(flags),
        offers=_offers(),
    )


def _values(flags: dict[str, Flag]) -> Iterable[str]:
    for name, flag in flags.items():
        if flag.optional:
            yield f"    {name}) [[ $cur == -* ]] || {{ {_words(flag)}; return; }} ;;"
        elif flag.takes_value:
            yield f"    {name}) {_words(flag)}; return ;;"


def _words(part: Flag | Word) -> str:
    match values(part):
        case "choices":
            return f"_holdfast_reply -W '{' '.join(part.choices)}'"
        case "folders":
            return "_holdfast_reply -d"
        case "files":
            return "_holdfast_reply -f"
        case "text":
            return ":"


def _offers() -> Iterable[str]:
    for command in ALL:
        flags = " ".join(name for flag in flags_of(command) for name in flag.names)
        words = _words(command.word) if command.word else ":"
        yield f"    '{' '.join(command.words)}') flags='{flags}'; words=\"{words}\" ;;"
    for first, seconds in groups():
        words = f"_holdfast_reply -W '{' '.join(seconds)}'"
        yield f"    '{first}') flags='-h --help'; words=\"{words}\" ;;"


_BASH = """\
# bash completion for holdfast: source it, or put it into bash's completions folder.
_holdfast_reply() {
    local line
    [[ $1 == -[df] ]] && compopt -o filenames 2>/dev/null
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen "$@" -- "$cur")
}

_holdfast() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local command='' seen='' ended='' flags='' words='' i
    COMPREPLY=()
    if [[ $cur == '=' ]]; then
        cur=''
    elif [[ $prev == '=' ]]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ -n $ended ]]; then
            seen=1
            continue
        fi
        case ${COMP_WORDS[i]} in
        --) ended=1 ;;
        @required@)
            [[ ${COMP_WORDS[i + 1]} == '=' ]] && ((i++))
            ((i++)) ;;
        @optional@)
            [[ ${COMP_WORDS[i + 1]} == '=' ]] && ((i++))
            [[ ${COMP_WORDS[i + 1]} == -* ]] || ((i++)) ;;
        -*) ;;
        @firsts@)
            if [[ -z $command$seen ]]; then command=${COMP_WORDS[i]}; else seen=1; fi ;;
        *)
            case $command in
            @groups@) command="$command ${COMP_WORDS[i]}" ;;
            *) seen=1 ;;
            esac ;;
        esac
    done
    [[ -n $ended ]] || case $prev in
@values@
    esac
    case $command in
@offers@
    esac
    if [[ -z $ended && $cur == -* ]]; then
        _holdfast_reply -W "$flags"
    elif [[ -z $seen ]]; then
        [[ -z $ended$command ]] && _holdfast_reply -W '@first_words@'
        eval "$words"
    fi
}

complete -F _holdfast holdfast
"""
