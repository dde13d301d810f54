"""Markdown source → blocks that can be drawn one by one. The only user of markdown-it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

References: TypeAlias = dict[str, Any]
"""Link definitions, as markdown-it keeps them: the first of a name counts."""

Kind: TypeAlias = Literal["flow", "item", "fence", "table", "html", "quote", "code"]

_KINDS: dict[str, Kind] = {
    "fence": "fence",
    "table_open": "table",
    "html_block": "html",
    "blockquote_open": "quote",
    "code_block": "code",
}


@dataclass(slots=True)
class Unit:
    """A top-level block, or one item of a top-level list.

    `start` is its first line in the parsed source; `first` tells an item that begins its list;
    `number` is an ordered item's.
    """

    kind: Kind
    start: int
    tokens: list[Token] = field(repr=False)
    first: bool = True
    number: int | None = None
    mark: str = ""


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - start-up stays light

    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def _groups(tokens: list[Token]) -> Iterator[list[Token]]:
    """Tokens by the block they belong to, one level deep."""
    depth = 0
    group: list[Token] = []
    for token in tokens:
        group.append(token)
        depth += token.nesting
        if depth == 0:
            yield group
            group = []


def start_of(group: list[Token]) -> int:
    """The line on which a group of tokens begins."""
    return group[0].map[0] if group[0].map else 0


def parse(source: str, references: References) -> list[Unit]:
    """The units of `source`, in order; inlines are not parsed yet. Adds to `references`."""
    tokens: list[Token] = []
    parser = _parser()
    parser.block.parse(source, parser, {"references": references}, tokens)
    units: list[Unit] = []
    for group in _groups(tokens):
        opening = group[0]
        if opening.type in {"bullet_list_open", "ordered_list_open"}:
            ordered = opening.type == "ordered_list_open"
            start = int(opening.attrs.get("start", 1)) if ordered else 0
            for index, item in enumerate(_groups(group[1:-1])):
                number = start + index if ordered else None
                units.append(Unit("item", start_of(item), item, not index, number, opening.markup))
        else:
            units.append(Unit(_KINDS.get(opening.type, "flow"), start_of(group), group))
    return units


def inline(token: Token, references: References) -> list[Token]:
    """The children of an inline token."""
    children: list[Token] = []
    parser = _parser()
    parser.inline.parse(token.content, parser, {"references": references}, children)
    return children


def groups(tokens: list[Token]) -> list[list[Token]]:
    """The blocks inside a container's tokens."""
    return list(_groups(tokens))


def warm() -> None:
    """Import what parsing and colouring need: for a thread, before the first answer comes."""
    _parser().parse("*x*")
    for name in ("pygments.lexers.python", "pygments.lexers.shell"):
        import_module(name)
