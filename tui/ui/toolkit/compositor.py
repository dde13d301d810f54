"""Renders only the rows in which something changed, of the widgets that are seen there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, cast

from textual._compositor import ChopsUpdate, Compositor
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget


def draw_now(*widgets: Widget) -> None:
    """Draw what has changed in these widgets of a screen, with everything else that is due there.

    Otherwise each tells its screen by messages, which then waits for its timer: ten turns of the
    loop for one frame.
    """
    screen: Any = widgets[0].screen
    for widget in cast("tuple[Any, ...]", widgets):
        if widget._repaint_required and widget.display:  # noqa: SLF001
            widget._repaint_required = False  # noqa: SLF001
            screen._dirty_widgets.add(widget)  # noqa: SLF001
    screen._on_timer_update()  # noqa: SLF001


class RowCompositor(Compositor):
    """Textual renders every row of each widget that the bounding box of all changes touches, and
    cuts up those that change. While an answer streams, that is every row of the scroll bar beside
    it, and of what is behind.
    """

    def render_partial_update(self) -> ChopsUpdate | None:
        regions = self._dirty_regions.copy()
        self._dirty_regions.clear()
        if not regions:
            return None
        spans = list(self._regions_to_spans(regions))
        cuts, nothing = self.cuts, dict[int, Strip | None]()
        chops = [nothing] * len(cuts)
        open_: defaultdict[int, set[int]] = defaultdict(set)  # where nothing is drawn yet, by row
        for y, first, last in spans:
            chops[y] = dict.fromkeys(cuts[y][:-1])
            open_[y].update(at for at, end in pairwise(cuts[y]) if first < end and at < last)
        for widget, (region, clip) in self.visible_widgets.items():  # from front to back
            if not open_:
                break
            x, top, width, height = region.intersection(clip)
            right = x + width
            rows = [
                y
                for y, places in open_.items()
                if top <= y < top + height and any(x <= at < right for at in places)
            ]
            if not rows:
                continue
            begin = rows[0]
            part = Region(x - region.x, begin - region.y, width, rows[-1] + 1 - begin)
            strips = widget.render_lines(part)
            cut, own, ends = list[int](), list[int](), list[int]()
            for y in rows:
                if cuts[y] != cut:  # mostly the same as in the row before
                    cut = cuts[y]
                    own = [at for at in cut if x <= at <= right]
                    ends = [at - x for at in own[1:]]
                strip, places = strips[y - begin], open_[y]
                pieces = [strip] if ends == [strip.cell_length] else strip.divide(ends)
                chops[y].update(
                    (at, piece) for at, piece in zip(own, pieces, strict=False) if at in places
                )
                places.difference_update(own[: len(pieces)])
                if not places:  # the rest is covered, or has not changed
                    del open_[y]
        return ChopsUpdate(chops, spans, [cut[1:] for cut in cuts])

    def _get_renders(
        self, crop: Region | None = None
    ) -> Iterator[tuple[Region, Region, list[Strip]]]:
        """Yield from front to back, as far as anything is visible: Textual also cuts up the rows of
        everything behind, and discards them."""
        for region, clip, strips in super()._get_renders(crop):
            yield region, clip, strips
            if crop and region.intersection(clip).contains_region(crop):
                return
