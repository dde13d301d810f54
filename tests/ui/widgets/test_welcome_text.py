"""The words of an empty conversation fit their place."""

from __future__ import annotations

import pytest

from tui.ui.widgets.welcome_text import intro


@pytest.mark.parametrize("height", [12, 17, 33, 55])
@pytest.mark.parametrize("width", [36, 55, 76, 107])
def test_it_fits_and_leaves_twice_as_much_room_below_as_above(width: int, height: int) -> None:
    rows = intro("1.2", width, height).plain.split("\n")
    above = next(at for at, row in enumerate(rows) if row)
    assert rows[above] == "holdfast 1.2"
    assert max(map(len, rows)) <= width or width < 56
    assert above == max(1, (height - len(rows) + above) // 3)
    if height >= 17 and width >= 55:
        assert len(rows) <= height


def test_where_there_is_room_it_tells_more() -> None:
    assert "shift+tab" not in intro("1", 76, 17).plain
    assert "shift+tab" in intro("1", 59, 33).plain
