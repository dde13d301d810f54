"""Scroll positions, sizes and bars of line views, without the detours that other widgets need.

Vertical bars look as Textual draws them, but without Rich, because the thumb of a growing view
changes with every other frame; horizontal ones are a thin line, since a cell is twice as high as it
is wide.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil
from typing import cast

from rich.color import Color
from rich.segment import Segment, Segments
from rich.style import Style as RichStyle
from textual.css.styles import RulesMap
from textual.geometry import Region, Size
from textual.reactive import Reactive
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual
from textual.widget import Widget


def jump(view: ScrollView, y: int) -> None:
    """Set the scroll position, without calling the view's `watch_scroll_y`."""
    if view.scroll_y == y:
        return
    for position in (Widget.scroll_y, Widget.scroll_target_y):
        view.set_reactive(cast("Reactive[float]", position), float(y))
    # The bar may appear with the next layout, which asks only for its size.
    _update_bar(view.vertical_scrollbar, position=float(y))


def reset_x(view: ScrollView) -> None:
    """Go back to the first column."""
    for position in (Widget.scroll_x, Widget.scroll_target_x):
        view.set_reactive(cast("Reactive[float]", position), 0.0)
    view.horizontal_scrollbar.position = 0


def expect(view: ScrollView, rows: int) -> None:
    """Expect that many rows before the first layout. If they need a scroll bar, the view would
    otherwise be laid out a second time to get it."""
    view.set_reactive(cast("Reactive[Size]", Widget.virtual_size), Size(0, rows))
    view.show_vertical_scrollbar = True


def resize(view: ScrollView, virtual: Size) -> None:
    """Set the virtual size; the screen is laid out again only if a scroll bar appears or
    disappears."""
    if virtual == view.virtual_size:
        return
    room = view.container_size
    sideways = str(view.styles.overflow_x) == "auto"  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    tall = virtual.height > room.height
    wide = sideways and virtual.width > room.width - tall
    tall = virtual.height > room.height - wide
    if (wide, tall) != (view.show_horizontal_scrollbar, view.show_vertical_scrollbar):
        view.virtual_size = virtual
        return
    view.set_reactive(cast("Reactive[Size]", Widget.virtual_size), virtual)
    if tall:
        _update_bar(view.vertical_scrollbar, virtual=virtual.height)
    if wide:
        _update_bar(view.horizontal_scrollbar, virtual=virtual.width)


def _update_bar(
    bar: ScrollBar, *, virtual: int | None = None, position: float | None = None
) -> None:
    """Update a scroll bar; only the rows where its thumb looks different are drawn again."""
    before = _thumb(bar)
    if virtual is not None:
        bar.set_reactive(ScrollBar.window_virtual_size, virtual)
    if position is not None:
        bar.set_reactive(ScrollBar.position, position)
    after = _thumb(bar)
    if after == before:
        return
    if not (bar.vertical and any(before) and any(after)):
        bar.refresh()
        return
    for one, other in zip(before, after, strict=True):
        if one != other:
            first, last = sorted((one // 8, other // 8))
            last = min(last, bar.size.height - 1)  # what ends with the bar ends behind its rows
            if first <= last:
                bar.refresh(Region(0, first, bar.size.width, last - first + 1))


def _thumb(bar: ScrollBar) -> tuple[int, int]:
    """Return where the thumb begins and ends, in eighths of a cell."""
    size = bar.size.height if bar.vertical else bar.size.width
    room = bar.window_virtual_size - bar.window_size
    if room <= 0 or not size:
        return 0, 0
    length = max(1.0, bar.window_size * size / bar.window_virtual_size)
    start = int((size - length) * bar.position / room * 8)
    return start, start + ceil(length * 8)


_BLACK, _WHITE = Color.parse("black"), Color.parse("white")


class VerticalBarRenderer(ScrollBarRender, Visual):
    """A `renderer` of scroll bars."""

    def render_strips(
        self,
        width: int,
        height: int | None,
        style: Style,
        options: RenderOptions,  # noqa: ARG002
    ) -> list[Strip]:
        look = self.style
        assert isinstance(look, RichStyle)
        assert look.bgcolor is not None
        assert look.color is not None
        bar = self.render_bar(
            size=height or 0,
            virtual_size=self.virtual_size,
            window_size=self.window_size,
            position=self.position,
            thickness=width,
            back_color=look.bgcolor,
            bar_color=look.color,
        )
        base = style.rich_style
        return [_strip(text, own or base, base) for text, own, _ in bar.segments]

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:  # noqa: ARG002
        return self.thickness

    def get_height(self, rules: RulesMap, width: int) -> int:  # noqa: ARG002
        return 1


class HorizontalBarRenderer(ScrollBarRender):
    """A `renderer` of horizontal scroll bars."""

    @classmethod
    def render_bar(  # noqa: PLR0917 - Textual's signature
        cls,
        size: int = 25,
        virtual_size: float = 50,
        window_size: float = 20,
        position: float = 0,
        thickness: int = 1,  # noqa: ARG003
        vertical: bool = True,  # noqa: ARG003
        back_color: Color = _BLACK,
        bar_color: Color = _WHITE,
    ) -> Segments:
        room = virtual_size - window_size
        length = max(1, round(size * window_size / virtual_size)) if room > 0 else 0
        start = round((size - length) * position / room) if room > 0 else size
        parts = (
            (" " * start, "scroll_up"),
            ("━" * length, "grab"),
            (" " * (size - start - length), "scroll_down"),
        )
        segments = [
            Segment(
                text, RichStyle(color=bar_color, bgcolor=back_color, meta={"@mouse.down": action})
            )
            for text, action in parts
            if text
        ]
        return Segments([*segments, Segment.line()])


@lru_cache(maxsize=256)
def _strip(text: str, style: RichStyle, base: RichStyle) -> Strip:
    return Strip([Segment(text, base + style)], len(text))
