"""Draws parsed blocks and inline text as lines. Nothing is parsed as markup again.

Spacing inside lists and quotes follows the source, line by line, so that an item looks the same
whatever comes after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from rich.style import Style

from tui.core.dataclass import dataclass, field, replace
from tui.ui.widgets.markdown import code
from tui.ui.widgets.markdown.parse import References, groups, start_of
from tui.ui.widgets.markdown.parse import inline as parse_inline
from tui.ui.widgets.markdown.table import Align, Table
from tui.ui.widgets.markdown.table import draw as draw_table
from tui.ui.widgets.markdown.text import (
    BLANK,
    Line,
    Span,
    decoration,
    line,
    linked,
    prefixed,
    wrap,
)

if TYPE_CHECKING:
    from markdown_it.token import Token

    from tui.ui.widgets.markdown.text import Styles


_OVERLAYS = {"strong_open": "strong", "em_open": "em", "s_open": "strike"}
_ALIGNS: dict[str, Align] = {"text-align:center": "center", "text-align:right": "right"}
_SAFE = ("http://", "https://")


def link(href: str, styles: Styles) -> Style:
    """Return the style of a link; the terminal can open it only if it leads to the web."""
    safe = href.lower().startswith(_SAFE) and href.isprintable()
    return styles["link"] + Style(link=href) if safe else styles["link"]


def inline_spans(children: list[Token], base: Style, styles: Styles) -> list[Span]:
    """Return the spans of a parsed inline; a hard break is a newline."""
    drawn: list[Span] = []
    bare = partial(linked, link=styles["link"])
    stack = [base]
    for token in children:
        style = stack[-1]
        # `stack` has the styles of the open marks, the innermost last.
        match token.type:
            case "text":
                drawn += [(token.content, style)] if style.link else bare(token.content, style)
            case "text_special":
                drawn.append((token.content, style))
            case "softbreak":
                drawn.append((" ", style))
            case "hardbreak":
                drawn.append(("\n", style))
            case "code_inline":
                drawn += bare(token.content, style + styles["code"])
            case "strong_open" | "em_open" | "s_open":
                stack.append(style + styles[_OVERLAYS[token.type]])
            case "link_open":
                stack.append(style + link(str(token.attrs.get("href", "")), styles))
            case "strong_close" | "em_close" | "s_close" | "link_close":
                if len(stack) > 1:
                    stack.pop()
            case "image":
                text = token.content or str(token.attrs.get("src", ""))
                look = link(str(token.attrs.get("src", "")), styles)
                drawn.append((f"[{text}]", style + look))
            case _:
                drawn.append((token.content, style + styles["muted"]))
    return [(text.replace("\t", " "), style) for text, style in drawn if text]


MEASURE = 120
"""Maximum width of prose: longer lines are hard to follow back."""
_BULLETS = "•◦▪"
_TASK = re.compile(r"\[([ xX])\](?= |$)")
_LEAF = 3
"""Tokens of a paragraph or a heading: its beginning, its text and its end."""
_MARK_MAX = 20
"""Most cells of a list item's mark."""
_MAY_GROW = re.compile(r"[&<\[\n]")
"""Text that may take more cells than characters, or more rows: entities, addresses, images,
breaks."""
_BLANK_ROW = re.compile(r"[ \t>]*$")


@dataclass(frozen=True, slots=True)
class Pen:
    """The context of drawing: the source's lines, the room, the styles, the depth; `numbers` are
    those of the code blocks to come."""

    rows: list[str]
    width: int
    styles: Styles
    references: References
    base: Style
    depth: int = 0
    numbers: Iterator[int] = field(default_factory=count)

    def within(self, cells: int) -> Pen:
        """Return a pen for a container's inside."""
        return replace(self, width=max(8, self.width - cells), depth=self.depth + 1)


def _spans(token: Token, pen: Pen, base: Style) -> list[Span]:
    return inline_spans(parse_inline(token, pen.references), base, pen.styles)


def _prose(spans: list[Span], pen: Pen) -> list[Line]:
    return wrap(spans, min(pen.width, MEASURE))


def _heading(group: list[Token], pen: Pen) -> list[Line]:
    level = int(group[0].tag[1])
    spans = _spans(group[1], pen, pen.styles[f"h{min(level, 4)}"])
    rows = _prose(spans, pen)
    rows[0] = rows[0]._replace(lead="#" * level + " ")
    return rows


def _verbatim(content: str, pen: Pen, style: Style) -> list[Line]:
    rows = content.rstrip("\n").split("\n")
    return [
        part for row in rows for part in wrap([(row.expandtabs(4), style)], min(pen.width, MEASURE))
    ]


def _fence(token: Token, pen: Pen) -> list[Line]:
    rows = token.content.removesuffix("\n").split("\n") if token.content else []
    number = next(pen.numbers)
    drawn = code.draw_top(token.info, pen.width, pen.styles, number)
    for piece in code.pieces(rows):
        first = 0 if drawn else number
        drawn += code.draw_rows(piece, token.info, pen.width, pen.styles, first)
    return drawn


def _table(group: list[Token], pen: Pen) -> list[Line]:
    table = Table()
    for token in group:
        if token.type == "tr_open":
            table.rows.append([])
        elif token.type in {"th_open", "td_open"}:
            if token.type == "th_open":
                table.aligns.append(_ALIGNS.get(str(token.attrs.get("style", "")), "left"))
        elif token.type == "inline":
            base = pen.styles["head"] if len(table.rows) == 1 else pen.base
            table.rows[-1].append(_spans(token, pen, base))
    return draw_table(table, pen.width, pen.styles)


def item(group: list[Token], number: int | None, pen: Pen) -> list[Line]:
    """Return one list item: its marker, and its blocks beside it."""
    opening = group[0]
    text = f"{number}{opening.markup}" if number is not None else "-"
    mark = text if number is not None else _BULLETS[min(pen.depth, len(_BULLETS) - 1)]
    look, inside = pen.styles["bullet"], groups(group[1:-1])
    if inside and inside[0][0].type == "paragraph_open":
        content = inside[0][1]
        if task := _TASK.match(content.content):
            content.content = content.content[task.end() :].lstrip()
            text += f" {task.group()}"
            box, style = ("☐", "muted") if task.group(1) == " " else ("☑", "done")
            if number is None:
                mark, look = box, pen.styles[style]
            else:
                mark += f" {box}"
    size = len(mark) + 1
    rows = blocks(inside, pen.within(size)) or [line([])]
    first = prefixed(rows[0], [(f"{mark} ", look)], f"{text} ")
    return [first, *(prefixed(row, [(" " * size, pen.base)], " " * size) for row in rows[1:])]


def _list(group: list[Token], pen: Pen) -> list[Line]:
    ordered = group[0].type == "ordered_list_open"
    start = int(group[0].attrs.get("start", 1))
    drawn: list[Line] = []
    for index, entry in enumerate(groups(group[1:-1])):
        if index and _spaced(entry, pen):
            drawn.append(BLANK)
        drawn += item(entry, start + index if ordered else None, pen)
    return drawn


def _quote(group: list[Token], pen: Pen) -> list[Line]:
    inner = replace(pen.within(2), base=pen.styles["quote"])
    bar = [("▎ ", pen.styles["bar"])]
    return [prefixed(row, bar, "> ") for row in blocks(groups(group[1:-1]), inner)]


def _spaced(group: list[Token], pen: Pen) -> bool:
    before = start_of(group) - 1
    return 0 <= before < len(pen.rows) and bool(_BLANK_ROW.match(pen.rows[before]))


def block(group: list[Token], pen: Pen) -> list[Line]:
    """Return the lines of one block."""
    opening = group[0]
    match opening.type:
        case "paragraph_open":
            return _prose(_spans(group[1], pen, pen.base), pen)
        case "heading_open":
            return _heading(group, pen)
        case "bullet_list_open" | "ordered_list_open":
            return _list(group, pen)
        case "blockquote_open":
            return _quote(group, pen)
        case "fence" | "code_block":
            return _fence(opening, pen)
        case "table_open":
            return _table(group, pen)
        case "hr":
            width = min(pen.width, MEASURE)
            return [decoration([("─" * width, pen.styles["border"])], source="---")]
        case "html_block":
            return _verbatim(opening.content, pen, pen.styles["muted"])
        case _:
            return _verbatim(opening.content, pen, pen.base)


def unit(group: list[Token], number: int | None, pen: Pen) -> list[Line]:
    """Return the lines of a top-level block, or of one item of a list; `number` is an ordered
    item's."""
    return item(group, number, pen) if group[0].type == "list_item_open" else block(group, pen)


def height(group: list[Token], pen: Pen) -> int | None:
    """Return how many lines `unit` gives, if that is known without parsing and drawing it: one, for
    a short text in which nothing takes more cells than its source."""
    item = group[0].type == "list_item_open"
    inside = group[1:-1] if item else group
    if len(inside) != _LEAF or inside[0].type not in {"paragraph_open", "heading_open"}:
        return None
    room = min(pen.width - _MARK_MAX if item else pen.width, MEASURE)
    text = inside[1].content
    return 1 if len(text) <= room and text.isascii() and not _MAY_GROW.search(text) else None


def blocks(inside: list[list[Token]], pen: Pen) -> list[Line]:
    """Return the blocks of a container, spaced as in the source."""
    drawn: list[Line] = []
    for index, group in enumerate(inside):
        if index and _spaced(group, pen):
            drawn.append(BLANK)
        drawn += block(group, pen)
    return drawn
