"""Scroll positions and sizes of line views, set without the detours that other widgets need."""

from __future__ import annotations

from math import ceil
from typing import cast

from textual.geometry import Region, Size
from textual.reactive import Reactive
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar
from textual.widget import Widget


def jump(view: ScrollView, y: int) -> None:
    """Set the scroll position; the view's `watch_scroll_y` is not told."""
    if view.scroll_y == y:
        return
    for position in (Widget.scroll_y, Widget.scroll_target_y):
        view.set_reactive(cast("Reactive[float]", position), float(y))
    # The bar may come with the next layout, which asks for its size only.
    _tell(view.vertical_scrollbar, position=float(y))


def reset_x(view: ScrollView) -> None:
    """Back to the first column."""
    for position in (Widget.scroll_x, Widget.scroll_target_x):
        view.set_reactive(cast("Reactive[float]", position), 0.0)
    view.horizontal_scrollbar.position = 0


def resize(view: ScrollView, virtual: Size) -> None:
    """Set the virtual size; the screen is laid out anew only where a scroll bar comes or goes."""
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
        _tell(view.vertical_scrollbar, virtual=virtual.height)
    if wide:
        _tell(view.horizontal_scrollbar, virtual=virtual.width)


def _tell(bar: ScrollBar, *, virtual: int | None = None, position: float | None = None) -> None:
    """Tell a scroll bar; it is drawn again only on the rows where its thumb looks different."""
    before = _thumb(bar)
    if virtual is not None:
        bar.set_reactive(ScrollBar.window_virtual_size, virtual)
    if position is not None:
        bar.set_reactive(ScrollBar.position, position)
    after = _thumb(bar)
    if after == before:
        return
    if not (bar.vertical and before[1] and after[1]):
        bar.refresh()
        return
    for one, other in zip(_ends(before), _ends(after), strict=True):
        if one != other:
            first, last = sorted((one // 8, other // 8))
            bar.refresh(Region(0, first, bar.size.width, last - first + 1))


def _thumb(bar: ScrollBar) -> tuple[int, int]:
    """Where the thumb begins and how long it is, in the eighths of a cell in which it is drawn."""
    size = bar.size.height if bar.vertical else bar.size.width
    room = bar.window_virtual_size - bar.window_size
    if room <= 0 or not size:
        return 0, 0
    length = max(1.0, bar.window_size * size / bar.window_virtual_size)
    return int((size - length) * bar.position / room * 8), ceil(length * 8)


def _ends(thumb: tuple[int, int]) -> tuple[int, int]:
    start, length = thumb
    return start, start + length
