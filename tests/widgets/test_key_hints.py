"""Keys at the foot of a screen: none is lost, and no row is longer than there is room."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui.widgets.key_hints import fitting, in_a_row, in_rows

KEYS = (("enter", "open"), ("^f", "search texts"), ("esc", "back"))
WORD = st.text("abc xyz", min_size=1, max_size=8).map(str.strip).filter(bool)
MANY = st.lists(st.tuples(WORD, WORD), min_size=1, max_size=12)


def test_a_row_has_them_all_with_space_between() -> None:
    assert in_a_row(KEYS).plain == "enter open   ^f search texts   esc back"
    assert in_a_row(KEYS, gap=2).plain == "enter open  ^f search texts  esc back"


def test_only_what_fits_is_shown_and_the_first_before_the_others() -> None:
    assert fitting(KEYS, 28).plain == "enter open   ^f search texts"
    assert fitting(KEYS, 27).plain == "enter open"
    assert fitting(KEYS, 9).plain == ""


@given(MANY, st.integers(20, 80))
def test_rows_hold_every_key_in_order_and_none_is_too_long(
    keys: list[tuple[str, str]], width: int
) -> None:
    rows = in_rows(keys, width).plain.split("\n")
    assert "  ".join(rows) == "  ".join(f"{key} {text}" for key, text in keys)
    assert all(len(row) <= width for row in rows)
    said = iter(f"{key} {text}" for key, text in keys)
    firsts: list[str] = []
    for row in rows:
        firsts.append(next(said))
        so_far = firsts[-1]
        while so_far != row:
            so_far = f"{so_far}  {next(said)}"
    for row, following in zip(rows, firsts[1:], strict=False):
        assert len(row) + 2 + len(following) > width
