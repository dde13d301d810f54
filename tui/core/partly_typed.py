"""A prompt of which not every character was typed: pasted text switches nothing."""

from __future__ import annotations


class PartlyTyped(str):
    """The text of a prompt whose first `typed` characters, and no others, were typed.

    `folded` is True if the person sees a word in place of its beginning, so that it can't even be a
    command.
    """

    typed: int
    folded: bool

    def __new__(cls, text: str, typed: int, *, folded: bool = False) -> PartlyTyped:
        made = super().__new__(cls, text)
        made.typed, made.folded = typed, folded
        return made


def count_typed(text: str) -> int:
    """Return how many of the first characters of a text were typed: of any other text, all of
    them."""
    return text.typed if isinstance(text, PartlyTyped) else len(text)


def part_of(text: str, part: str, start: int) -> str:
    """Return a part of a text that begins at `start`, with how much of it was typed."""
    typed = count_typed(text) - start
    return part if typed >= len(part) else PartlyTyped(part, max(0, typed))


def note_of(text: str) -> str:
    """Return what comes after `# ` in a line that was typed: a note to keep. A paste is none."""
    if not text.startswith("# ") or count_typed(text) < len(text) or "\n" in text.strip():
        return ""
    return text[2:].strip()
