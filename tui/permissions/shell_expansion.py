"""The nodes of a syntax tree as words: variables and substitutions put in as far as known."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tui.permissions.shell_words import (
    PIPE,
    UNKNOWN,
    Word,
    ansi_c,
    expand,
    unescape,
    unescape_quoted,
)

if TYPE_CHECKING:
    from tree_sitter import Node

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

    def words(self, group: Sequence[Node]) -> list[Word]:
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
        """Pieces of adjacent nodes: text and how it counts (see `words.expand`)."""
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
