"""The completion script of fish."""

from __future__ import annotations

from collections.abc import Iterable

from tui.app.options.flags import Flag, Word, first_words
from tui.cli.completion.common import ALL, flags_of, groups, quoted, text_of, values


def script() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterable[str]:
    yield "# fish completion for holdfast: save it as holdfast.fish in fish's completions folder."
    yield "complete -c holdfast -f"
    none = f"not __fish_seen_subcommand_from {' '.join(first_words())}"
    for first in first_words():
        yield _line(none, "-a", first, "-d", text_of(first))
    for first, seconds in groups():
        missing = f"not __fish_seen_subcommand_from {' '.join(seconds)}"
        for second in seconds:
            condition = f"__fish_seen_subcommand_from {first}; and {missing}"
            yield _line(condition, "-a", second, "-d", text_of(first, second))
    for command in ALL:
        condition = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in command.words)
        for flag in flags_of(command):
            yield _line(condition or none, *_flag(flag))
        if command.words and command.word and values(command.word) != "text":
            yield _line(condition, *_values(command.word))


def _line(condition: str, *parts: str) -> str:
    return " ".join(("complete -c holdfast -n", quoted(condition), *map(_part, parts)))


def _part(part: str) -> str:
    return part if part.startswith("-") and " " not in part else quoted(part)


def _flag(flag: Flag) -> Iterable[str]:
    for name in flag.names:
        yield from ("-l", name[2:]) if name.startswith("--") else ("-s", name[1:])
    if flag.takes_value and not flag.optional:
        yield "-r" if values(flag) == "files" else "-x"
    if flag.takes_value:
        yield from _values(flag)
    yield from ("-d", flag.help)


def _values(part: Flag | Word) -> Iterable[str]:
    match values(part):
        case "choices":
            return ("-a", " ".join(part.choices))
        case "folders":
            return ("-a", "(__fish_complete_directories)")
        case "files":
            return ("-F",)
        case "text":
            return ()
