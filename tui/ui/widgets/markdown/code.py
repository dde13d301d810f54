"""Code colored by pygments, in pieces small enough to be colored again at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from rich.style import Style

from tui.core.dataclass import dataclass, field
from tui.core.text_cleaning import clean
from tui.ui.widgets.markdown.parse import BLOCKS, parse
from tui.ui.widgets.markdown.text import Line, clip, decoration, fold, prefixed

if TYPE_CHECKING:
    from pygments.lexer import Lexer
    from pygments.token import (
        _TokenType,  # pyright: ignore[reportPrivateUsage]  # the stubs name it so
    )

    from tui.ui.widgets.markdown.text import Styles

PIECE_LINES = 60
"""A piece ends at the first line after this many that looks like a fresh start …"""
PIECE_LINES_MAX = 160
PIECE_CHARS_MAX = 8_000
_PLAIN_FROM = 1_000
"""A longer line is data: it is not colored."""

_FRESH = re.compile(r"[A-Za-z_@#/<$]")
_FENCE = re.compile(r"^[ \t>]*(?:```|~~~)`*~*[ \t]*([\w+#.-]+)", re.MULTILINE)

_KINDS = (  # the first match wins
    ("Comment", "comment"),
    ("Keyword.Constant", "number"),
    ("Keyword.Type", "builtin"),
    ("Keyword", "keyword"),
    ("Operator.Word", "keyword"),
    ("Name.Function", "name"),
    ("Name.Class", "name"),
    ("Name.Namespace", "name"),
    ("Name.Tag", "name"),
    ("Name.Decorator", "number"),
    ("Name.Builtin", "builtin"),
    ("Name.Attribute", "builtin"),
    ("Name.Constant", "number"),
    ("Name.Exception", "builtin"),
    ("Name.Variable", "builtin"),
    ("Literal.String", "string"),
    ("Literal.Number", "number"),
    ("Literal.Date", "number"),
    ("Generic.Inserted", "added"),
    ("Generic.Deleted", "removed"),
    ("Generic.Heading", "name"),
    ("Generic.Subheading", "keyword"),
    ("Generic.Prompt", "comment"),
    ("Generic.Error", "invalid"),
)


class _Colors:
    """Switches the coloring of code. Loading pygments takes longer than everything else that an
    answer is drawn with."""

    on = True


def color(*, on: bool) -> None:
    """Color the code that is drawn from now on, or draw it in one color."""
    _Colors.on = on


@lru_cache(maxsize=512)
def kind(token: _TokenType) -> str:
    """Return the style for a pygments token."""
    name = str(token).removeprefix("Token.")
    for prefix, style in _KINDS:
        if name == prefix or name.startswith(prefix + "."):
            return style
    return "fence"


@lru_cache(maxsize=64)
def lexer(language: str) -> Lexer | None:
    """Return the lexer for a fence's info string, None for plain text and unknown languages."""
    name = language.strip().split(maxsplit=1)[0].strip("{}.").lower() if language.strip() else ""
    if not name:
        return None
    from pygments import lexers, util  # noqa: PLC0415 - start-up stays light

    try:
        match = lexers.get_lexer_by_name(name, stripnl=False, ensurenl=False)  # pyright: ignore[reportUnknownMemberType]
    except util.ClassNotFound:
        return None
    return match


def languages(text: str) -> set[str]:
    """Return the names after the fences of a Markdown text, about as they are read."""
    return {match[1] for match in _FENCE.finditer(text)}


def fresh(before: str, row: str) -> bool:
    """True if code may be cut between these lines without losing the lexer's state."""
    return not before.strip() and bool(_FRESH.match(row))


def ends(size: int, chars: int, before: str, row: str) -> bool:
    """True if a piece of `size` lines that ends with `before` ends where `row` begins."""
    if size >= PIECE_LINES_MAX or chars >= PIECE_CHARS_MAX:
        return True
    return size >= PIECE_LINES and fresh(before, row)


def pieces(rows: list[str]) -> Iterator[list[str]]:
    """Yield `rows` in the pieces in which they are colored."""
    piece: list[str] = []
    chars = 0
    for row in rows:
        if piece and ends(len(piece), chars, piece[-1], row):
            yield piece
            piece, chars = [], 0
        piece.append(row)
        chars += len(row) + 1
    if piece:
        yield piece


@lru_cache(maxsize=256)
def _tokens(code: str, language: str) -> list[list[tuple[str, str]]]:
    """Return the lines of `code` as (text, style name)."""
    rows: list[list[tuple[str, str]]] = [[]]
    bare = _bare(code)
    code_lexer = lexer(language)
    if code_lexer is None or any(len(row) > _PLAIN_FROM for row in code.split("\n")):
        return bare
    for token, text in code_lexer.get_tokens(code):
        name = kind(token)
        first, *rest = text.split("\n")
        for index, part in enumerate((first, *rest)):
            if index:
                rows.append([])
            if not part:
                continue
            row = rows[-1]
            if row and row[-1][1] == name:
                row[-1] = (row[-1][0] + part, name)
            else:
                row.append((part, name))
    drawn = "\n".join("".join(text for text, _ in row) for row in rows)
    return rows if drawn == code else bare  # a lexer that changes the text can't be trusted with it


def _bare(code: str) -> list[list[tuple[str, str]]]:
    return [[(row, "fence")] if row else [] for row in code.split("\n")]


def draw_rows(
    rows: list[str], language: str, width: int, styles: Styles, number: int = 0
) -> list[Line]:
    """Return the lines of one piece on the background of code, wrapped if too long. `number` is
    that of the block, if it begins here."""
    fill = styles["fence"]
    drawn: list[Line] = []
    text = "\n".join(row.expandtabs(4) for row in rows)
    tokens = _tokens(text, language) if _Colors.on else _bare(text)
    for row, source in zip(tokens, rows, strict=True):
        spans = [(text, styles[name]) for text, name in row]
        parts = [
            prefixed(part, [(" ", fill)])._replace(fill=fill)
            for part in fold(spans, width - 2, styles["label"])
        ]
        if "\t" in source and len(parts) == 1:
            parts[0] = parts[0]._replace(source=source)
        drawn += parts
    if number:
        drawn[0] = drawn[0]._replace(block=number)
    return drawn


def height(rows: list[str], width: int) -> int:
    """Return how many lines `draw_rows` gives, without coloring anything."""
    return sum(
        1 if len(row) <= width - 2 and row.isascii() and "\t" not in row else _folded(row, width)
        for row in rows
    )


def _folded(row: str, width: int) -> int:
    null = Style.null()
    return len(fold([(row.expandtabs(4), null)], width - 2, null))


def draw_top(language: str, width: int, styles: Styles, number: int) -> list[Line]:
    """Return the row above the code, its language; none if it has no language."""
    if not language.strip():
        return []
    name = clip(language.strip().split(maxsplit=1)[0], width - 2)
    row = decoration([(f" {name}", styles["label"])], fill=styles["fence"])
    return [row._replace(block=number)]


def blocks(text: str) -> list[str]:
    """Return the code of each block in a Markdown text, in the order of their numbers."""
    units = parse(clean(text).split("\n"), {})
    tokens = (token for unit in units for token in unit.tokens if token.type in BLOCKS)
    return [token.content.removesuffix("\n") for token in tokens]


@dataclass(slots=True)
class OpenFence:
    """An open fence at the top level, and the rows of its current piece. `number` is that of the
    block, until its first line is drawn."""

    markup: str
    info: str
    indent: int
    number: int = 0
    rows: list[str] = field(default_factory=list[str])
    chars: int = 0
    drawn: list[Line] = field(default_factory=list[Line])
    seen: int = 0  # rows that `drawn` shows

    def closes(self, row: str) -> bool:
        bare = row.lstrip(" ")
        if len(row) - len(bare) > 3 or not bare.startswith(self.markup):
            return False
        return not bare.rstrip(" \t").strip(self.markup[0])

    def strip(self, row: str) -> str:
        return row[min(self.indent, len(row) - len(row.lstrip(" "))) :]

    def full(self, row: str) -> bool:
        """True if the piece ends before `row`."""
        return bool(self.rows) and ends(len(self.rows), self.chars, self.rows[-1], row)

    def tail(self, partial: str, width: int, styles: Styles) -> list[Line]:
        """Return the lines of the current piece, and of the row being written."""
        if self.seen != len(self.rows):
            self.drawn = draw_rows(self.rows, self.info, width, styles, self.number)
            self.seen = len(self.rows)
        partial = self.strip(partial)
        if not partial.strip(f" {self.markup[0]}"):
            return self.drawn
        number = 0 if self.drawn else self.number
        return self.drawn + draw_rows([partial], self.info, width, styles, number)
