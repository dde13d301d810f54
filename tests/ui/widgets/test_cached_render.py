"""Widgets that stand still: their rows are kept, and drawn again when something changed."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.filter import Monochrome
from textual.strip import Strip

from tui.ui.widgets.panes import CachedHorizontal, CachedVertical, PaneRule


class _Page(App[None]):
    CSS = "CachedHorizontal { height: 4; background: red; } CachedVertical { width: 1fr; }"

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return {"rule": "gray"}

    def compose(self) -> ComposeResult:
        with CachedHorizontal():
            yield CachedVertical(id="left")
            yield CachedVertical(id="right")
        yield PaneRule("before")


def _rows(app: App[None], name: str) -> list[Strip]:
    widget = app.query_one(name)
    return widget.render_lines(widget.size.region)


async def test_rows_are_the_same_until_something_changes() -> None:
    app = _Page()
    async with app.run_test(size=(40, 8)) as pilot:
        rows = _rows(app, "PaneRule")
        assert _rows(app, "PaneRule") is rows
        assert "before" in rows[0].text
        app.query_one(PaneRule).title = Content("after")
        await pilot.pause()
        assert "after" in _rows(app, "PaneRule")[0].text
        ground = _rows(app, "CachedHorizontal")
        app.query_one(CachedHorizontal).styles.background = "blue"
        await pilot.pause()
        assert [list(row) for row in _rows(app, "CachedHorizontal")] != [
            list(row) for row in ground
        ]


async def test_they_are_drawn_again_in_another_size_and_without_colours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = _Page()
    async with app.run_test(size=(40, 8)) as pilot:
        assert {row.cell_length for row in _rows(app, "CachedHorizontal")} == {40}
        await pilot.resize_terminal(30, 8)
        assert {row.cell_length for row in _rows(app, "CachedHorizontal")} == {30}
        monkeypatch.setattr(app, "get_line_filters", lambda: [Monochrome()])
        style = next(iter(_rows(app, "CachedHorizontal")[0])).style
        assert style is not None
        assert style.bgcolor is not None
        red, green, blue = style.bgcolor.get_truecolor()
        assert red == green == blue


async def test_children_stand_as_in_the_containers_of_textual() -> None:
    app = _Page()
    async with app.run_test(size=(40, 8)):
        left, right = app.query_one("#left").region, app.query_one("#right").region
        assert (left.y, left.right, left.width) == (right.y, right.x, right.width)
        assert isinstance(app.query_one(CachedHorizontal), Horizontal)
