"""Keys at the foot of a screen: none is lost, and no row is longer than there is room."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui.ui.widgets.keys import fitting, in_a_row, in_rows

KEYS = (("enter", "open"), ("^f", "search texts"), ("esc", "back"))
WORD = st.text("abc xyz", min_size=1, max_size=8).map(str.strip).filter(bool)
MANY = st.lists(st.tuples(WORD, WORD), min_size=1, max_size=12)


def test_a_row_has_them_all_with_space_between() -> None:
    assert in_a_row(KEYS).plain == "enter open   ^f search texts   esc back"


def test_only_what_fits_is_shown_and_the_first_before_the_others() -> None:
    assert fitting(KEYS, 28).plain == "enter open   ^f search texts"
    assert fitting(KEYS, 27).plain == "enter open"
    assert fitting(KEYS, 9).plain == ""


def test_the_way_out_stays_where_there_is_room_for_few() -> None:
    assert in_rows(KEYS, 39, rows=1).plain == "enter open   ^f search texts   esc back"
    assert in_rows(KEYS, 38, rows=1).plain == "enter open   esc back"
    assert in_rows(KEYS, 20, rows=1).plain == "esc back"
    assert in_rows(KEYS, 20, rows=2).plain == "enter open\nesc back"


@given(MANY, st.integers(20, 80))
def test_rows_hold_the_keys_in_order_and_none_is_too_long(
    keys: list[tuple[str, str]], width: int
) -> None:
    rows = in_rows(keys, width).plain.split("\n")
    assert len(rows) <= 2
    assert all(len(row) <= width for row in rows)
    every = [f"{key} {text}" for key, text in keys]
    shown = "   ".join(rows)
    kept = next(n for n in range(len(every)) if shown == "   ".join([*every[:n], every[-1]]))
    if kept < len(every) - 1:
        one_more = in_rows([*keys[: kept + 1], keys[-1]], width, rows=99).plain
        assert one_more.count("\n") >= 2
