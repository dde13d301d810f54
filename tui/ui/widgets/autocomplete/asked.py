"""What the person is in the middle of typing. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["command", "argument", "file"]

_COMMAND = re.compile(r"/([a-z-]*)\Z", re.IGNORECASE)
_ARGUMENT = re.compile(r"/([a-z][a-z-]*)[ \t]+([^\n]*)\Z", re.IGNORECASE)
_FILE = re.compile(r"(?:\A|\s)@(\"[^\"\n]*|[^\s\"]*)\Z")


@dataclass(frozen=True, slots=True)
class Asked:
    """`query` stands in the text from `start` up to the cursor; `command` is whose argument it
    is, "" otherwise."""

    kind: Kind
    query: str
    start: int
    command: str = ""


def asked(text: str, cursor: int) -> Asked | None:
    """What may be completed at the cursor, None where nothing may.

    A command and its argument stand at the very beginning; a file is a word that begins with @,
    in double quotes where it holds blanks.
    """
    before = text[:cursor]
    if found := _COMMAND.match(before):
        return Asked("command", found[1], 1)
    if found := _ARGUMENT.match(before):
        return Asked("argument", found[2], found.start(2), found[1].lower())
    if found := _FILE.search(before):
        query = found[1].removeprefix('"')
        return Asked("file", query, found.start(1))
    return None


def completed(text: str, cursor: int, wanted: Asked, choice: str) -> tuple[str, int]:
    """The text with a choice in the place of the query, and where the cursor stands then.

    A blank follows, so that typing goes on; none behind a folder, which is narrowed further.
    """
    word, after = choice, text[cursor:]
    if wanted.kind == "file" and re.search(r"\s", choice):
        word = f'"{choice}"'
    if not choice.endswith("/") and not after.startswith((" ", "\n")):
        word += " "
    return text[: wanted.start] + word + after, wanted.start + len(word)
