"""What the three scripts have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from tui.app.options.flags import (
    COMMANDS,
    GROUPS,
    MAIN,
    Command,
    Flag,
    Word,
    first_words,
    second_words,
)

ALL = (MAIN, *COMMANDS)

_HELP = Flag(("-h", "--help"), "help", "show this help")
_VERSION = Flag(("--version",), "version", "show the version")


def flags_of(command: Command) -> tuple[Flag, ...]:
    """The flags of a command, those included that the parser adds."""
    return (*command.flags, _HELP, *((_VERSION,) if command is MAIN else ()))


def groups() -> list[tuple[str, tuple[str, ...]]]:
    """The subcommands that have subcommands of their own."""
    return [(first, second_words(first)) for first in first_words() if second_words(first)]


def text_of(*words: str) -> str:
    """What a command, or a group of commands, does."""
    group = GROUPS.get(words[0]) if len(words) == 1 else None
    return group or next(command.help for command in COMMANDS if command.words == words)


def values(part: Flag | Word) -> Literal["choices", "folders", "files", "text"]:
    """How a value is completed; "text" is free text, for which nothing can be offered."""
    if part.choices:
        return "choices"
    if part.kind == "folder":
        return "folders"
    return "files" if part.kind in {"file", "session"} else "text"


def fill(template: str, **parts: str | Iterable[str]) -> str:
    """Put parts in the place of their @names@."""
    for name, part in parts.items():
        template = template.replace(f"@{name}@", part if isinstance(part, str) else "\n".join(part))
    return template


def quoted(text: str) -> str:
    """A word in single quotes, as all three shells take it."""
    return "'" + text.replace("'", "'\\''") + "'"
