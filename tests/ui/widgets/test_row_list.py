"""Rows: what is wider than the list ends with an ellipsis, beside the scrollbar too."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult

from tui.ui.widgets.row_list import RowList


class Listed(App[None]):
    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def compose(self) -> ComposeResult:
        yield RowList()

    def on_mount(self) -> None:
        rows = self.query_one(RowList)
        rows.show(self.count, lambda at, width: [(f"{at} of {width}: " + "long " * 20, "text")])


@pytest.mark.parametrize("count", [2, 50])
async def test_a_row_is_as_wide_with_a_scrollbar_as_without(count: int) -> None:
    app = Listed(count)
    async with app.run_test(size=(30, 6)):
        rows = app.query_one(RowList)
        assert rows.show_vertical_scrollbar == (count == 50)
        assert rows.row_width == 29
        text = rows.render_line(0).text
        assert text.startswith("0 of 29: ")
        assert text.endswith("…")
        assert len(text) == 29
