"""Widgets that stand still while others change.

Textual asks every widget whose part of the screen overlaps what is drawn anew for all its rows,
and goes through them one by one. Under a conversation that streams, that is most of a frame.
"""

from __future__ import annotations

from textual.containers import Horizontal, Vertical
from textual.filter import LineFilter
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget


class Still(Widget):
    """Its rows are kept, as they are painted, until something about it changes."""

    _rows: tuple[Region, tuple[LineFilter, ...], list[Strip]] | None = None

    def _set_dirty(self, *regions: Region) -> None:
        self._rows = None
        super()._set_dirty(*regions)

    def render_lines(self, crop: Region) -> list[Strip]:
        filters = tuple(self.get_line_filters())
        if self._rows is None or self._rows[:2] != (crop, filters):
            self._rows = crop, filters, super().render_lines(crop)
        return self._rows[2]


class StillRow(Horizontal, Still):
    """A `Horizontal` of which only the children change."""


class StillColumn(Vertical, Still):
    """A `Vertical` of which only the children change."""
