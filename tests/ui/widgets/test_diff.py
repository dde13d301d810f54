"""Diffs as they are drawn: numbers, signs, changed words; nothing is left out or made up."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.style import Style
from textual.containers import VerticalScroll

from tests.ui.widgets.stage import Stage
from tui.core.text_cleaning import visible
from tui.ui.widgets.diff import Diff, DiffView, counts, draw_diff
from tui.ui.widgets.line_view.strips import copied
from tui.ui.widgets.markdown.text import Line

MARKED = {name: Style(color=f"color({n})") for n, name in enumerate(
    ("c-added", "c-removed", "c-added-word", "c-removed-word", "c-label"), 1
)}  # fmt: skip
STYLES = defaultdict(Style, MARKED)
ROW = st.text(
    st.characters(exclude_categories=["C", "Z"], include_characters=" ,;()"), max_size=120
)


def shown(lines: list[Line]) -> list[str]:
    return [line.text.rstrip() for line in lines]


def whole(lines: list[Line]) -> str:
    return copied(lines, (0, 0), (len(lines), 1 << 30))


def body_of(rows: list[tuple[str, str]]) -> str:
    return "\n".join(sign + text for sign, text in rows)


def hunk_of(rows: list[tuple[str, str]]) -> str:
    old, new = (sum(sign != other for sign, _ in rows) for other in "+-")
    return f"@@ -1,{old} +1,{new} @@\n{body_of(rows)}\n"


def words(lines: list[Line], style: str) -> list[str]:
    return [
        segment.text
        for line in lines
        for segment in line.segments
        if segment.style == STYLES[style]
    ]


def test_a_diff_is_counted_without_its_file_names() -> None:
    assert counts("--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n-old\n+new\n+more\n same\n") == "+2 −1"


def test_where_there_is_room_both_line_numbers_stand_beside_a_row() -> None:
    diff = "--- a\n+++ a\n@@ -9,2 +9,3 @@\n same\n-old\n+new\n+more\n"
    assert shown(draw_diff(diff, 80, STYLES)) == [
        " 9  9   same",
        "10    − old",
        "   10 + new",
        "   11 + more",
    ]
    assert shown(draw_diff(diff, 40, STYLES)) == [" 9   same", "10 − old", "10 + new", "11 + more"]


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        ("a/x.py", "b/x.py", "x.py"),
        ("x.py", "x.py", "x.py"),
        ("a/x.py\t2026-11-21", "b/x.py\t2026-11-22", "x.py"),
        ("/dev/null", "b/x.py", "x.py  new"),
        ("a/x.py", "/dev/null", "x.py  removed"),
        ("a/x.py", "b/y.py", "x.py → y.py"),
    ],
)
def test_a_file_is_named_and_what_became_of_it(before: str, after: str, name: str) -> None:
    diff = f"--- {before}\n+++ {after}\n@@ -1 +1 @@\n-a\n+b\n"
    assert shown(draw_diff(diff, 40, STYLES, names=True))[0] == name


def test_the_words_that_changed_within_a_line_are_marked() -> None:
    rows = [("-", "    return self.size + 1"), ("+", "    return self.count + 1")]
    drawn = draw_diff(hunk_of(rows), 60, STYLES)
    assert words(drawn, "c-removed-word") == ["size"]
    assert words(drawn, "c-added-word") == ["count"]


@pytest.mark.parametrize(
    "rows",
    [
        [("-", "import os"), ("+", "the quick brown fox, jumping")],
        [("-", "x = 1"), (" ", "between"), ("+", "x = 2")],
        [("-", "a " * 500 + "1"), ("+", "a " * 500 + "2")],
    ],
    ids=["other lines", "apart", "too long"],
)
def test_no_word_is_marked_where_lines_cannot_be_compared(rows: list[tuple[str, str]]) -> None:
    drawn = draw_diff(hunk_of(rows), 60, STYLES)
    assert not words(drawn, "c-removed-word") + words(drawn, "c-added-word")


def test_only_so_many_lines_are_compared() -> None:
    rows = [
        row for n in range(300) for row in (("-", f"value = {n}"), ("+", f"value = {n + 1000}"))
    ]
    marked = words(draw_diff(hunk_of(rows), 60, STYLES), "c-added-word")
    assert len(marked) == 100


@given(st.lists(st.tuples(st.sampled_from("+- "), ROW), min_size=1), st.integers(12, 127))
def test_copying_the_rows_of_a_hunk_gives_its_text(rows: list[tuple[str, str]], width: int) -> None:
    drawn = draw_diff(hunk_of(rows), width, STYLES)
    assert whole(drawn) == body_of(rows)
    assert all(line.cells <= width for line in drawn)


@given(st.lists(st.tuples(st.sampled_from("+- "), ROW), min_size=1), st.integers(128, 220))
def test_side_by_side_nothing_is_lost_and_a_copy_is_the_same_change(
    rows: list[tuple[str, str]], width: int
) -> None:
    drawn = draw_diff(hunk_of(rows), width, STYLES)
    assert all(line.cells <= width for line in drawn)
    copy = [(row[:1], row[1:]) for row in whole(drawn).split("\n")]
    for side in "-+":
        assert [text for sign, text in copy if sign in side + " "] == [
            text for sign, text in rows if sign in side + " "
        ]


def test_side_by_side_old_and_new_are_in_one_row_with_their_words_marked() -> None:
    diff = "--- a\n+++ a\n@@ -9,3 +9,4 @@\n same\n-x = old\n-gone\n+x = new\n+more\n+most\n"
    drawn = draw_diff(diff, 130, STYLES)
    left, right = zip(*(row.split(" │ ") for row in shown(drawn)), strict=True)
    assert [text.rstrip() for text in left] == [" 9   same", "10 − x = old", "11 − gone", ""]
    assert list(right) == [" 9   same", "10 + x = new", "11 + more", "12 + most"]
    assert words(drawn, "c-removed-word") == ["old"]
    assert words(drawn, "c-added-word") == ["new"]


@pytest.mark.parametrize("sign", "+-")
def test_a_file_that_is_only_added_or_removed_has_one_column(sign: str) -> None:
    drawn = draw_diff(hunk_of([(sign, "a"), (sign, "b " * 60 + "END")]), 140, STYLES)
    assert all(" │ " not in row for row in shown(drawn))
    assert len(drawn) == 2


@given(st.lists(st.tuples(st.sampled_from("+- "), ROW), min_size=1), st.integers(12, 220))
def test_the_height_of_a_part_is_told_before_it_is_drawn(
    rows: list[tuple[str, str]], width: int
) -> None:
    diff = Diff("--- a\n+++ b\n" + hunk_of(rows) + "? other\n", names=True)
    for index in range(len(diff)):
        height, exact = diff.height(index, width)
        assert not exact or height == len(diff.lines(index, width, STYLES))


def test_a_tab_is_drawn_as_four_and_copied_as_it_is() -> None:
    drawn = draw_diff(hunk_of([("-", "\tif x:\t# a"), ("+", "\tif y:\t# a")]), 60, STYLES)
    assert shown(drawn) == ["1 −     if x:   # a", "1 +     if y:   # a"]
    assert whole(drawn) == "-\tif x:\t# a\n+\tif y:\t# a"


@given(st.text(), st.integers(8, 60))
def test_what_is_no_part_of_a_diff_is_drawn_all_the_same(text: str, width: int) -> None:
    rows = shown(draw_diff(visible(text), width, STYLES, names=True, rows_max=1000))
    assert "".join("".join(rows).split()) == "".join(visible(text).split())


def test_rows_beyond_the_count_of_a_hunk_are_not_hidden() -> None:
    drawn = shown(draw_diff("@@ -1 +1 @@\n-a\n+b\n+rm -rf ~\n\\ No newline\n", 40, STYLES))
    assert drawn == ["1 − a", "1 + b", "+rm -rf ~", "\\ No newline"]


async def test_the_view_spells_out_what_hides_and_is_as_high_as_its_rows() -> None:
    diff = DiffView("--- a\n+++ a\n@@ -1 +1,2 @@\n-old\n+[b]new[/b]\u202e\n+more\n")
    app = Stage(VerticalScroll(diff))
    async with app.run_test(size=(40, 12)) as pilot:
        await pilot.pause()
        rows = [diff.render_line(y).text.rstrip() for y in range(diff.size.height)]
        assert rows == ["a", "1 − old", "1 + [b]new[/b]\\u202e", "2 + more"]


async def test_the_view_gives_the_text_that_is_selected() -> None:
    diff = DiffView("--- a\n+++ a\n@@ -1 +1,2 @@\n-old\n+new\n+more\n")
    app = Stage(VerticalScroll(diff))
    async with app.run_test(size=(40, 12)) as pilot:
        await pilot.pause()
        app.screen.text_select_all()
        found = app.screen.get_selected_text()
        assert found is not None
        assert found.strip() == "+++ a\n-old\n+new\n+more"


async def test_the_view_draws_anew_in_another_theme() -> None:
    diff = DiffView("@@ -1 +1 @@\n-old\n+new\n")
    app = Stage(VerticalScroll(diff))
    async with app.run_test(size=(40, 12)) as pilot:
        await pilot.pause()
        before = diff.render_line(0)
        app.theme = "textual-light"
        await pilot.pause()
        assert diff.render_line(0) != before
        assert diff.render_line(0).text == before.text


def test_a_long_diff_is_cut_with_a_count() -> None:
    rows = draw_diff("+x\n" * 2500, 20, STYLES, rows_max=2000)
    assert (len(rows), rows[-1].text) == (2001, "… +500 lines")


def test_what_is_left_out_of_the_middle_is_not_called_unchanged() -> None:
    """Someone decides about it: a changed line that is not shown must not look like an old one."""
    rows = [("+", f"line {n}") for n in range(30)]
    drawn = shown(draw_diff(hunk_of(rows), 60, STYLES, rows_max=10, ends=True))
    assert "… 21 lines aren't shown here, 21 of them changed" in drawn
    rows = [("+", "a"), *[(" ", f"line {n}") for n in range(30)], ("+", "b")]
    drawn = shown(draw_diff(hunk_of(rows), 60, STYLES, rows_max=10, ends=True))
    assert "… 23 unchanged lines" in drawn
