"""Lines of code that are too long: where they are broken, and that nothing of them is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.style import Style

from tui.ui.widgets.line_view.strips import copied
from tui.ui.widgets.markdown.text import Line, fold, wrap

PLAIN, MARK = Style(), Style(dim=True)


def rows(text: str, width: int) -> list[str]:
    return [line.text for line in fold([(text, PLAIN)], width, MARK)]


def whole(lines: list[Line]) -> str:
    return copied(lines, (0, 0), (len(lines), 1 << 30))


def test_a_line_that_fits_stays_as_it_is() -> None:
    assert rows("    x = 1", 9) == ["    x = 1"]


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        (
            "    value = compute(alpha, beta, gamma, delta)",
            ["    value = compute(alpha, beta,", "    ↪ gamma, delta)"],
        ),
        (
            "https://example.org/a/very/long/path/to/it.html",
            ["https://example.org/a/very/long/", "↪ path/to/it.html"],
        ),
        ("x" * 40, ["x" * 32, "↪ " + "x" * 8]),
        ("a" * 31 + " " * 6 + "b", ["a" * 31, "↪ b"]),
        (
            "# 行ごとに読む行ごとに読む行ごとに読む",
            ["# 行ごとに読む行ごとに読む行ごと", "↪ に読む"],
        ),
    ],
    ids=["spaces", "punctuation", "one word", "many spaces", "wide"],
)
def test_it_is_broken_where_a_reader_would_and_marked(text: str, drawn: list[str]) -> None:
    assert rows(text, 32) == drawn


def test_without_room_it_is_broken_all_the_same_and_not_marked() -> None:
    assert rows("abcdefgh", 3) == ["abc", "def", "gh"]


@given(st.text("ab ,.(_漢🎉", max_size=200), st.integers(2, 60))
def test_copied_it_is_the_line_and_no_row_is_wider_than_asked(text: str, width: int) -> None:
    drawn = fold([(text[:9], PLAIN), (text[9:], MARK)], width, MARK)
    assert whole(drawn) == text
    assert all(line.cells <= width for line in drawn)


@pytest.mark.parametrize("width", [8, 30, 60])
def test_a_pile_of_accents_longer_than_a_row_is_drawn(width: int) -> None:
    text = "x" * (width + 1) + "\u0301" * 200
    for lines in (fold([(text, PLAIN)], width, MARK), wrap([(text, PLAIN)], width)):
        assert whole(lines) == text
