"""Frames are sent as what changed in them, and the terminal shows what it would show of all."""

from __future__ import annotations

import re
from io import StringIO
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import get_character_cell_size
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, InlineUpdate, LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip

from tui.ui.toolkit.screen_diff import PaintedScreen

WIDTH, HEIGHT = 12, 3
CONSOLE = Console(file=StringIO(), force_terminal=True, color_system="truecolor")
STYLES = [
    None,
    Style.parse("red"),
    Style.parse("bold on blue"),
    Style(meta={"offset": (1, 2)}),
    Style.parse("red") + Style(meta={"offset": (3, 4)}),
    Style(link="https://example.org"),
]
_TOKENS = re.compile(
    r"\x1b\[(\d+);(\d+)r\x1b\[(\d+)([ST])\x1b\[r|\x1b\[(\d+);(\d+)H|(\x1b\[[\d;]*m)|\x1b\]8;[^;]*;([^\x1b]*)\x1b\\|(.)",
    re.DOTALL,
)

Cells: TypeAlias = dict[tuple[int, int], tuple[str, str, str]]
"""By row and column: what is drawn there, in which style, with which link."""


def shown(cells: Cells, sent: str) -> Cells:
    """What a terminal shows after more was sent to it."""
    x = y = 0
    style = link = ""
    for top, bottom, count, move, row, column, codes, target, char in _TOKENS.findall(sent):
        if move:
            scroll(cells, range(int(top) - 1, int(bottom)), int(count) * (1 if move == "S" else -1))
        elif row:
            y, x = int(row) - 1, int(column) - 1
        elif codes:
            style = "" if codes == "\x1b[0m" else codes
        elif char:
            width = get_character_cell_size(char)
            cells[y, x] = (char, style, link)
            for more in range(1, width):
                cells[y, x + more] = ("", style, link)
            x += width
        else:
            link = target
    return cells


def scroll(cells: Cells, rows: range, by: int) -> None:
    before = {at: cells.pop(at) for at in list(cells) if at[0] in rows}
    cells |= {(y - by, x): cell for (y, x), cell in before.items() if y - by in rows}


def strip(pieces: list[tuple[str, int]], width: int) -> Strip:
    """The pieces, each a text and the number of its style, cut or filled to a width."""
    segments = [Segment(text, STYLES[style]) for text, style in pieces]
    return Strip(segments).adjust_cell_length(width)


texts = st.text("ab …é漢", max_size=8)
rows = st.lists(st.tuples(texts, st.integers(0, len(STYLES) - 1)), max_size=4)
frames = st.lists(st.tuples(rows, rows, rows, st.integers(1, WIDTH - 1)), min_size=1, max_size=6)


def layout(frame: tuple[list[tuple[str, int]], ...], cut: int) -> LayoutUpdate:
    """A frame of three rows, each in two parts."""
    lines = [[strip(row, cut), strip(row[::-1], WIDTH - cut)] for row in frame]
    return LayoutUpdate(list(lines), Region(0, 0, WIDTH, HEIGHT))


@given(frames)
def test_what_is_sent_of_a_frame_makes_all_of_it(
    many: list[tuple[list[tuple[str, int]], list[tuple[str, int]], list[tuple[str, int]], int]],
) -> None:
    painted = PaintedScreen()
    seen: Cells = {}
    for *frame, cut in many:
        update = layout(tuple(frame), cut)
        shown(seen, painted.difference(update).render_segments(CONSOLE))
        assert seen == shown({}, update.render_segments(CONSOLE).replace("\n", ""))
        assert painted.difference(update).render_segments(CONSOLE) == "", "it is there already"


@given(rows, rows, st.integers(0, WIDTH), st.integers(0, WIDTH))
def test_a_part_of_a_row_is_sent_alone(
    before: list[tuple[str, int]], after: list[tuple[str, int]], first: int, last: int
) -> None:
    painted = PaintedScreen()
    first, last = min(first, last), max(first, last)
    whole = LayoutUpdate([[strip(before, WIDTH)]], Region(0, 0, WIDTH, 1))
    seen = shown({}, painted.difference(whole).render_segments(CONSOLE))
    part = ChopsUpdate([{0: strip(after, WIDTH)}], [(0, first, last)], [[WIDTH]])
    shown(seen, painted.difference(part).render_segments(CONSOLE))
    expected = shown({}, whole.render_segments(CONSOLE))
    assert seen == shown(expected, part.render_segments(CONSOLE))


SCREEN = Console(file=StringIO(), force_terminal=True, color_system="truecolor", width=30)
TALL = 16
lines = st.lists(st.sampled_from(["", "one", "two", "three 漢", *map(str, range(20))]), min_size=60)


def screenful(text: list[str], at: int, clock: int, bar: int) -> LayoutUpdate:
    """A header and a footer that stay, and between them text that scrolls, with a bar beside it."""
    body = [
        [strip([(line, 0)], 28), strip([("█" if y == bar else " ", 1)], 2)]
        for y, line in enumerate(text[at : at + TALL - 2])
    ]
    edge = [strip([(f"edge {clock}", 2)], 30)]
    return LayoutUpdate([edge, *body, edge], Region(0, 0, 30, len(body) + 2))


@given(lines, st.lists(st.tuples(st.integers(0, 44), st.integers(0, 1), st.integers(0, 20))))
def test_text_that_scrolls_is_what_it_would_be_if_all_of_it_were_sent(
    text: list[str], moves: list[tuple[int, int, int]]
) -> None:
    painted = PaintedScreen()
    seen: Cells = {}
    for at, clock, bar in [(0, 0, 0), *moves]:
        update = screenful(text, at, clock, bar)
        shown(seen, painted.difference(update).render_segments(SCREEN))
        assert seen == shown({}, update.render_segments(SCREEN).replace("\n", ""))


@pytest.mark.parametrize(("by", "way"), [(3, "S"), (-3, "T")])
def test_rows_that_only_move_are_moved_by_the_terminal(by: int, way: str) -> None:
    painted, text = PaintedScreen(), [f"row {n} {'x' * 20}" for n in range(60)]
    painted.difference(screenful(text, 10, 0, 0)).render_segments(SCREEN)
    sent = painted.difference(screenful(text, 10 + by, 0, 0)).render_segments(SCREEN)
    assert sent.startswith(f"\x1b[2;15r\x1b[3{way}\x1b[r")
    assert sent.count("row ") == 3


def test_a_word_more_costs_a_word() -> None:
    painted = PaintedScreen()
    for text in ("hello", "hello world"):
        row = Strip([Segment(" ● ", STYLES[1]), Segment(text), Segment(" " * 60)])
        update = LayoutUpdate([[row.adjust_cell_length(70)]], Region(0, 4, 70, 1))
        sent = painted.difference(update).render_segments(CONSOLE)
    assert sent == "\x1b[5;10Hworld"


def test_after_something_else_wrote_all_is_sent_again() -> None:
    painted, update = PaintedScreen(), layout(([("a", 1)], [], []), 4)
    first = painted.difference(update).render_segments(CONSOLE)
    painted.forget()
    assert painted.difference(update).render_segments(CONSOLE) == first
    inline = InlineUpdate([])
    assert painted.difference(inline) is inline
    assert painted.difference(update).render_segments(CONSOLE) == first


@pytest.mark.parametrize("whole", [True, False])
def test_nothing_that_is_drawn_steers_the_terminal(*, whole: bool) -> None:
    evil = "a\x1b]0;x\x07\x9b2Jb\x7f\u202ec\n"
    strip = Strip([Segment(evil, Style.parse("red")), Segment("é😀👩‍👩‍👦")])
    update = (
        LayoutUpdate([[strip]], Region(0, 0, strip.cell_length, 1))
        if whole
        else ChopsUpdate([{0: strip}], [(0, 0, strip.cell_length)], [[strip.cell_length]])
    )
    sent = PaintedScreen().difference(update).render_segments(CONSOLE)
    assert sent == ("\x1b[1;1H\x1b[31ma]0;x2Jbc\x1b[0mé😀👩‍👩‍👦")
