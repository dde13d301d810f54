"""Shell words: quotes, escapes, braces and tildes resolved, without running anything."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

UNKNOWN = "\0"
"""Stands in a word for text that only the shell will know. No command line can hold it."""

PIPE = "/dev/fd/63"
"""What a process substitution is to the command that it is given to."""

_MARK = "\x01"
"""Before a character that quotes have made ordinary."""

_SPECIAL = re.compile(r"[{},*?\[\]~]")
_GLOB = re.compile(rf"(?<!{_MARK})[*?\[]")
_MOST_BRACES = 64
_MOST_WORDS = 1000


@dataclass(frozen=True, slots=True)
class Word:
    """One word after expansion. `glob` says that it holds an unquoted pattern."""

    text: str
    glob: bool = False

    @property
    def known(self) -> bool:
        return UNKNOWN not in self.text


def unescape(text: str) -> Iterator[tuple[str, str]]:
    """An unquoted text in pieces: what a backslash protects counts as quoted."""
    for plain, escaped in re.findall(r"([^\\]+)|\\(.?)", text, re.DOTALL):
        if plain:
            yield plain, "plain"
        elif escaped != "\n":
            yield escaped, "quoted"


def unescape_quoted(text: str) -> str:
    """The inside of double quotes."""
    return re.sub(r'\\([$`"\\]|\n)', lambda m: "" if m[1] == "\n" else m[1], text)


def ansi_c(text: str) -> str:
    """The inside of `$'…'`."""
    simple = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b"}

    def one(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] in "xuU" and len(code) > 1:
            number = int(code[1:], 16)
            return chr(number) if 1 < number <= 0x10FFFF else UNKNOWN
        if code[0] in "01234567":
            number = int(code, 8) & 0xFF
            return chr(number) if number > 1 else UNKNOWN
        if code[0] == "c":
            return UNKNOWN
        return simple.get(code, code)

    pattern = r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|c.|.)"
    return re.sub(pattern, one, text, flags=re.DOTALL)


def expand(pieces: Iterable[tuple[str, str]], *, home: str) -> list[Word]:
    """The words that pieces of one word become: split, braces and tilde expanded.

    A piece is text with `quoted`, `plain` or `split` (an unquoted expansion).
    """
    fields: list[str] = []
    current: str | None = None
    for text, mode in pieces:
        if mode != "split":
            quoted = mode == "quoted"
            marked = _SPECIAL.sub(lambda m: _MARK + m[0], text) if quoted else text
            current = (current or "") + marked
            continue
        protected = re.sub(r"[{},~]", lambda m: _MARK + m[0], text)
        first, *more = re.split(r"\s+", protected)
        if first or (current is None and more):
            current = (current or "") + first
        for word in more:
            if current:
                fields.append(current)
            current = word
        if current == "" and more:
            current = None
    if current is not None:
        fields.append(current)
    if len(fields) > _MOST_WORDS:
        return [Word(UNKNOWN)]
    return [_finish(word, home) for marked in fields for word in _braces(marked)]


def _finish(marked: str, home: str) -> Word:
    if re.match(r"~(?=/|$)", marked):
        marked = home + marked[1:]
    elif marked.startswith("~"):
        marked = UNKNOWN
    return Word(marked.replace(_MARK, ""), glob=bool(_GLOB.search(marked)))


def _braces(marked: str) -> list[str]:
    """`a{b,c}` → `ab`, `ac`. Braces without a comma stay."""
    done: list[str] = []
    pending = [marked]
    while pending:
        text = pending.pop(0)
        found = _first_brace(text)
        if found is None:
            done.append(text)
        else:
            start, end, choices = found
            pending = [text[:start] + choice + text[end:] for choice in choices] + pending
        if len(done) + len(pending) > _MOST_BRACES:
            return [UNKNOWN]
    return done


def _first_brace(text: str) -> tuple[int, int, list[str]] | None:
    """The first brace group with a comma: where it starts and ends, and its choices."""
    opened: list[tuple[int, list[int]]] = []
    for n, char in enumerate(text):
        if char not in "{},," or (n and text[n - 1] == _MARK):
            continue
        if char == "{":
            opened.append((n, []))
        elif opened and char == ",":
            opened[-1][1].append(n)
        elif opened and char == "}":
            start, commas = opened.pop()
            if commas:
                cuts = [start, *commas, n]
                pairs = pairwise(cuts)
                return start, n + 1, [text[a + 1 : b] for a, b in pairs]
    return None
