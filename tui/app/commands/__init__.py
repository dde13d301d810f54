"""The slash commands: their handlers, and which of them a typed line means."""

from __future__ import annotations

import re

from tui.app.commands.table import COMMANDS, ELSEWHERE, INSTEAD, SlashCommand
from tui.core.late_pattern import late_pattern

_COMMAND = late_pattern(r"/(\w[\w:.-]*)(?:\s+(.*))?\s*", re.DOTALL)


def find(word: str) -> SlashCommand | None:
    """The command of that name or alias."""
    wanted = word.lower()
    return next((c for c in COMMANDS if wanted == c.name or wanted in c.aliases), None)


def split(text: str) -> tuple[str, str] | None:
    """Name and argument of a typed command; None for other text, a path among them."""
    match = _COMMAND.fullmatch(text)
    return (match[1], (match[2] or "").strip()) if match else None


def unknown(word: str, others: tuple[str, ...] = ()) -> tuple[str, str]:
    """The message about a command that does not exist, and its hint."""
    if word in INSTEAD:
        return f"No command /{word} here.", INSTEAD[word]
    import difflib  # noqa: PLC0415 - for a typing mistake only

    names = [name for c in COMMANDS for name in (c.name, *c.aliases)]
    near = difflib.get_close_matches(word, [*names, *others], n=1)
    near = near or difflib.get_close_matches(word, ELSEWHERE, n=1)
    suggestion = f"Did you mean /{near[0]}? " if near else ""
    return f"Unknown command /{word}.", f"{suggestion}Press space first to send it as text."


TAKEN: frozenset[str] = frozenset(name for c in COMMANDS for name in (c.name, *c.aliases))
"""Names that no command of the person's can have."""
