"""Turns Markdown text in any pieces into complete clean rows, and rows into blocks that can be
drawn one by one.

The only user of markdown-it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tui.core.dataclass import dataclass, field
from tui.core.text_cleaning import clean

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


ROW_MAX = 4_000
"""A longer row is broken at a space."""

_UNDECIDED = re.compile(
    r" {0,3}(?:(?:[-=+*_#>~`|:][-=+*_#>~`|: ]*+|\d{1,9}[.)]?|<!?[a-zA-Z/!-]*)[ \t]*|(?:```|~~~).*)$"
)
_OPEN_LINK = re.compile(r"\[([^\[\]\n]*)\](?:\([^)\n]*)?$")


class Intake:
    """Collects text into rows, which depend on the text alone, never on the pieces in which it is
    fed."""

    def __init__(self) -> None:
        self._pending: list[str] = []
        self._partial = ""

    @property
    def partial(self) -> str:
        """The row that has no end yet, cleaned."""
        return clean(self._partial.removesuffix("\r")).replace("\n", " ")

    def feed(self, text: str) -> None:
        """Add text."""
        self._pending.append(text)

    def take(self, *, final: bool) -> list[str]:
        """Return the rows that were completed since; with `final`, the last one too."""
        if not self._pending and not (final and self._partial):
            return []
        *whole, last = (self._partial + "".join(self._pending)).split("\n")
        self._pending.clear()
        rows = [part for row in whole for part in _broken(row)]
        *broken, self._partial = _broken(last)
        rows += broken
        if final and self._partial:
            rows.append(self._partial)
            self._partial = ""
        return [part for row in rows for part in clean(row.removesuffix("\r")).split("\n")]


def _broken(row: str) -> list[str]:
    """Return the parts of a row, more than one if it is too long."""
    parts: list[str] = []
    while len(row) > ROW_MAX:
        end = row.rfind(" ", 1, ROW_MAX) + 1 or ROW_MAX
        parts.append(row[:end])
        row = row[end:]
    return [*parts, row]


def as_if_ended(rows: list[str], partial: str) -> list[str]:
    """Return `rows` and the row being written as they are shown if nothing more comes.

    Text that a few more characters could turn into something quite different is held back, and open
    emphasis, code and links are closed instead of being shown as characters.
    """
    if partial and not _UNDECIDED.match(partial):
        rows.append(partial)
    if not rows:
        return rows
    last, text = rows[-1], "\n".join(rows)
    if text.count("`") % 2:
        last = last.removesuffix("`") if last.endswith("`") else last + "`"
    else:
        last = _OPEN_LINK.sub(r"\1", last)
        open_strong = text.count("**") % 2 == 1
        if open_strong and last.endswith("**"):
            last = last[:-2]
        elif open_strong:
            last = last.rstrip(" *") + "**"
        elif last.endswith("*") and not last.endswith("**"):
            last = last[:-1]
    return [*rows[:-1], last]


BLOCKS = frozenset({"fence", "code_block"})
"""The tokens of code blocks."""

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

    `start` is its first line in the parsed source; `first` is true for an item that begins its
    list; `number` is an ordered item's.
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


def groups(tokens: list[Token]) -> list[list[Token]]:
    """Split tokens into the blocks they belong to, one level deep."""
    depth = 0
    blocks: list[list[Token]] = [[]]
    for token in tokens:
        blocks[-1].append(token)
        depth += token.nesting
        if depth == 0:
            blocks.append([])
    return blocks[:-1]


def start_of(group: list[Token]) -> int:
    """Return the line on which a group of tokens begins."""
    return group[0].map[0] if group[0].map else 0


def parse(rows: list[str], references: References) -> list[Unit]:
    """Return the units of the source, in order; inlines are not parsed yet. Adds to
    `references`."""
    tokens: list[Token] = []
    parser = _parser()
    parser.block.parse("\n".join(rows) + "\n", parser, {"references": references}, tokens)
    units: list[Unit] = []
    for group in groups(tokens):
        opening = group[0]
        if opening.type in {"bullet_list_open", "ordered_list_open"}:
            ordered = opening.type == "ordered_list_open"
            start = int(opening.attrs.get("start", 1)) if ordered else 0
            for index, item in enumerate(groups(group[1:-1])):
                number = start + index if ordered else None
                units.append(Unit("item", start_of(item), item, not index, number, opening.markup))
        else:
            units.append(Unit(_KINDS.get(opening.type, "flow"), start_of(group), group))
    return units


def inline(token: Token, references: References) -> list[Token]:
    """Return the children of an inline token."""
    children: list[Token] = []
    parser = _parser()
    parser.inline.parse(token.content, parser, {"references": references}, children)
    return children
