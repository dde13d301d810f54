"""The one way for a command line to write to the standard streams, terminal or pipe.

Text for people is cleaned: nothing in it controls the terminal that shows it, even if a pager or a
file comes first. Data is printed as it is; for a terminal, `TerminalStream` cleans that, too. Half
characters never stop either.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, TextIO
from unicodedata import east_asian_width

from tui.core.text_cleaning import clean

STDOUT: Final = Path("-")
"""What standard output is called where a file is asked for."""
_TEXT_MIN: Final = 40
"""Columns of text below which it stands under the head, not beside it."""


def print_text(text: str, *, end: str = "\n") -> None:
    """Print a text for people on stdout. Raises OSError."""
    sys.stdout.write(clean(text) + end)


def print_data(text: str, *, end: str = "\n") -> None:
    """Print data on stdout, exactly except for half characters. Raises OSError."""
    sys.stdout.write(text.encode("utf-8", "replace").decode() + end)


def note(text: str) -> None:
    """Print a line for the person on stderr. Raises OSError."""
    sys.stderr.write(clean(text) + "\n")


def note_wrapped(text: str) -> None:
    """Print a text for the person on stderr, broken between words on a terminal. Raises OSError."""
    for line in hanging("", text, terminal_width(sys.stderr)):
        note(line)


def terminal_width(stream: TextIO) -> int | None:
    """The columns of the terminal that a stream writes to; None where there is no terminal: what is
    piped keeps its lines."""
    import shutil  # noqa: PLC0415 - seldom needed

    return shutil.get_terminal_size().columns if stream.isatty() else None


def cells(text: str) -> int:
    """The cells of a text on a terminal: two for a wide character."""
    if text.isascii():
        return len(text)
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def clipped(text: str, most: int) -> str:
    """A text in at most `most` cells; of a longer one the beginning, and an ellipsis."""
    if cells(text) <= most:
        return text
    text = text[: most - 1]
    while cells(text) > most - 1:
        text = text[:-1]
    return f"{text}…"


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows of as many texts each, one below the other. Raises OSError."""
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        *padded, last = (
            text + " " * (width - cells(text)) for text, width in zip(row, widths, strict=True)
        )
        print_text("  ".join((*padded, last.rstrip())))


def folded(head: str, text: str, width: int) -> Iterator[str]:
    """A text behind a head, in lines of at most `width` cells that begin below the first one's
    text. They end between words; a word that is longer than a line is cut."""
    indent = " " * min(cells(head), width // 2)
    line, room = head, max(1, width - cells(head))
    begun = False
    for word in text.split(" "):
        rest = word
        if begun and cells(rest) < room:
            line, room = f"{line} {rest}", room - cells(rest) - 1
            continue
        if begun:
            yield line.rstrip()
            line, room = indent, max(1, width - cells(indent))
        while cells(rest) > room:
            end = 1
            while end < len(rest) and cells(rest[: end + 1]) <= room:
                end += 1
            yield line + rest[:end]
            rest, line, room = rest[end:], indent, max(1, width - cells(indent))
        line, room, begun = line + rest, room - cells(rest), True
    yield line.rstrip()


def hanging(head: str, text: str, width: int | None, *, inner: int = 0) -> list[str]:
    """A head and the text beside it, or below it where there is little room: lines of at most
    `width` characters, broken between words; a single one without a width. Lines after the first
    begin `inner` columns further to the right."""
    if width is None or len(head) + len(text) <= width:
        return [head + text]
    import textwrap  # noqa: PLC0415 - seldom needed

    above: list[str] = []
    if head and width - len(head) < _TEXT_MIN:
        above, head = [head.rstrip()] if head.strip() else [], "  "
    indent = " " * (len(head) + inner)
    broken = textwrap.wrap(
        text,
        max(width, len(indent) + 1),
        initial_indent=head,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [*above, *broken]
