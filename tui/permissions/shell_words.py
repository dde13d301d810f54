"""Shell words: quotes, escapes, braces, tildes and variables resolved, without running anything.

`expand` works on pieces of text; `Expander` makes such pieces of the nodes of a syntax tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node


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
class ShellWord:
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


def expand(pieces: Iterable[tuple[str, str]], *, home: str) -> list[ShellWord]:
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
        return [ShellWord(UNKNOWN)]
    return [_finish(word, home) for marked in fields for word in _braces(marked)]


def _finish(marked: str, home: str) -> ShellWord:
    if re.match(r"~(?=/|$)", marked):
        marked = home + marked[1:]
    elif marked.startswith("~"):
        marked = UNKNOWN
    return ShellWord(marked.replace(_MARK, ""), glob=bool(_GLOB.search(marked)))


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


_SUBSTITUTIONS = {"command_substitution", "process_substitution"}
_PLAIN = {"word", "number", "test_operator", "variable_name", "extglob_pattern"}


class Expander:
    """Words of one source. `variables` and `cwd` are those at the place that is being read.

    `substitute` walks a substitution and returns what it prints, UNKNOWN where that is open.
    """

    def __init__(
        self,
        source: bytes,
        cwd: Path | None,
        variables: dict[str, str],
        substitute: Callable[[Node], str],
    ) -> None:
        self._source = source
        self._substitute = substitute
        self.cwd = cwd
        self.variables = variables

    def text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def words(self, group: Sequence[Node]) -> list[ShellWord]:
        """The words that adjacent nodes expand to."""
        return expand(self._joined(group, quoted=False), home=self.variables["HOME"])

    def walk_substitutions(self, node: Node) -> None:
        """The commands in substitutions anywhere below `node`."""
        pending = [node]
        while pending:
            current = pending.pop()
            if current.type in _SUBSTITUTIONS:
                self._substitute(current)
            else:
                pending += reversed(current.named_children)

    def _joined(self, nodes: Sequence[Node], *, quoted: bool) -> Iterator[tuple[str, str]]:
        """Pieces of adjacent nodes: text and how it counts (see `expand`)."""
        dollar = ""
        for node in _flat(nodes):
            if node.type == "$":  # the grammar leaves some `$name` and `$"…"` in two
                dollar = "$"
            elif node.type in _PLAIN:
                yield from self._plain(dollar + self.text(node))
                dollar = ""
            else:
                yield from self._pieces(node, quoted=quoted)
                dollar = ""
        if dollar:
            yield dollar, "plain"

    def _plain(self, text: str) -> Iterator[tuple[str, str]]:
        """A bare text. The grammar leaves some `$name` in it."""
        end = 0
        for found in re.finditer(r"\\.|\$([A-Za-z_]\w*)", text, re.DOTALL):
            if found[1]:
                yield from unescape(text[end : found.start()])
                yield self._value(found[1]), "split"
                end = found.end()
        yield from unescape(text[end:])

    def _pieces(self, node: Node, *, quoted: bool) -> Iterator[tuple[str, str]]:
        kind, text = node.type, self.text(node)
        if kind == "raw_string":
            yield text[1:-1], "quoted"
        elif kind == "ansi_c_string":
            yield ansi_c(text[2:-1]), "quoted"
        elif kind in {"string", "translated_string"}:
            yield "", "quoted"
            yield from self._string(node)
        elif kind in {"simple_expansion", "expansion", "command_substitution"}:
            yield self._expanded(node), "quoted" if quoted else "split"
        elif kind == "arithmetic_expansion":
            self.walk_substitutions(node)
            yield "1", "quoted"
        elif kind == "process_substitution":
            self._substitute(node)
            yield PIPE, "quoted"
        elif not node.is_named:
            yield text, "plain"
        else:
            self.walk_substitutions(node)
            numbers = re.fullmatch(r"\{-?\d+\.\.-?\d+\}", text)
            yield "1" if numbers else UNKNOWN, "quoted"

    def _string(self, node: Node) -> Iterator[tuple[str, str]]:
        """The inside of double quotes, with the spaces that the tree leaves out."""
        if node.type == "translated_string":
            for child in node.named_children:
                yield from self._string(child)
            return
        end = node.start_byte + 1
        for child in node.children[1:-1]:
            yield self._source[end : child.start_byte].decode("utf-8", "replace"), "quoted"
            if child.type == "string_content":
                yield unescape_quoted(self.text(child)), "quoted"
            else:
                yield from self._joined((child,), quoted=True)
            end = child.end_byte
        yield self._source[end : node.end_byte - 1].decode("utf-8", "replace"), "quoted"

    def _expanded(self, node: Node) -> str:
        if node.type == "command_substitution":
            return self._substitute(node)
        if node.type == "simple_expansion":
            return self._value(self.text(node)[1:])
        return self._expansion(node)

    def _value(self, name: str) -> str:
        if name == "PWD":
            return str(self.cwd) if self.cwd else UNKNOWN
        return self.variables.get(name, UNKNOWN)

    def _expansion(self, node: Node) -> str:
        """`${name}`, and with a default; everything else is not known."""
        self.walk_substitutions(node)
        match [child.type for child in node.children[1:-1]]:
            case ["variable_name"] | ["special_variable_name"]:
                return self._value(self.text(node.children[1]))
            case ["variable_name", ":-" | "-" | ":=" | "=" | ":+" | "+" as operator, *_]:
                name = self.text(node.children[1])
                if operator in {":-", "-", ":=", "="} and self.variables.get(name):
                    return self.variables[name]
                return " ".join(word.text for word in self.words(node.children[3:-1]))
            case _:
                return UNKNOWN


def _flat(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        if node.type == "concatenation":
            yield from _flat(node.children)
        else:
            yield node
