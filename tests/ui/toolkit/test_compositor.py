"""What is drawn of a frame: the rows that changed, of the widgets that are seen there."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.style import Style
from textual._compositor import ChopsUpdate
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from tui.ui.toolkit.base_screen import BaseScreen

SIZE = (40, 12)


class Rows(Widget):
    """Draws its letter, and remembers which rows it drew."""

    def __init__(self, letter: str) -> None:
        super().__init__(id=letter)
        self.letter = letter
        self.drawn: list[int] = []

    def render_lines(self, crop: Region) -> list[Strip]:
        self.drawn += crop.line_range
        return [Strip.blank(crop.width, Style(meta={"of": self.letter})) for _ in crop.line_range]


class Page(BaseScreen, Screen[None]):
    DEFAULT_CSS = """
    Page { layers: below above; }
    #a, #b { layer: below; height: 6; }
    #c { layer: above; offset: 10 3; width: 12; height: 5; }
    """

    def compose(self) -> ComposeResult:
        yield from map(Rows, "abc")


class Book(App[None]):
    def get_default_screen(self) -> Screen[Any]:
        return Page()


def frame(screen: Any, **changed: Region) -> ChopsUpdate:
    """What is sent once these parts of widgets have changed."""
    for name, region in changed.items():
        widget = screen.query_one(f"#{name}", Rows)
        widget.drawn.clear()
        widget.refresh(region)
    screen._compositor.update_widgets(set(screen.query(Rows)))
    update = screen._compositor.render_update()
    assert isinstance(update, ChopsUpdate)
    return update


async def test_only_the_rows_that_changed_are_drawn_and_of_nothing_else() -> None:
    app = Book()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        a, b, c = app.screen.query(Rows)
        for one in (a, b, c):
            one.drawn.clear()
        frame(app.screen, a=Region(0, 1, 40, 2))
        assert (a.drawn, b.drawn, c.drawn) == ([1, 2], [], [])


async def test_what_lies_over_a_change_is_drawn_where_it_does() -> None:
    app = Book()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        update = frame(app.screen, a=Region(8, 3, 4, 1))
        assert update.spans == [(3, 8, 12)]
        row = [strip and strip.cell_length for strip in update.chops[3].values()]
        assert row == [10, 12, None]
        over = update.chops[3][10]
        assert over is not None
        assert [segment.style and segment.style.meta["of"] for segment in over] == ["c"]


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.builds(Region, st.integers(0, 8), st.integers(0, 4), st.integers(1, 9), st.just(1)),
        ),
        min_size=1,
        max_size=4,
    )
)
async def test_what_is_sent_is_what_a_whole_frame_shows_there(
    changes: list[tuple[str, Region]],
) -> None:
    app = Book()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        screen: Any = app.screen
        update = frame(screen, **dict(changes))
        rows = set(range(SIZE[1]))
        whole = screen._compositor._render_chops(Region(0, 0, *SIZE), rows.__contains__)
        for y, first, last in update.spans:
            ends = update.chop_ends[y]
            for end, (x, strip) in zip(ends, update.chops[y].items(), strict=True):
                if x < last and end > first:
                    assert strip == whole[y][x]
