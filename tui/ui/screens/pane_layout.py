"""How the chat screen's two sides share its width."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from textual.screen import Screen

from tui.ui.screens import layout
from tui.ui.screens.output_side import OutputSide
from tui.ui.widgets.pane_title import PaneRule
from tui.ui.widgets.splitter import Splitter

WIDE = 100
TALL = 22
LEFT_MIN, SIDE_MIN = 40, 30
"""Cells that neither pane goes below."""


class Panes:
    """Lays out `side` beside the rest of a screen and keeps how wide it was, in a file."""

    def __init__(
        self,
        screen: Screen[Any],
        side: OutputSide,
        splitter: Splitter,
        below: PaneRule,
        file: Path | None,
    ) -> None:
        self._screen = screen
        self._side = side
        self._splitter = splitter
        self._below = below
        self._file = file
        self._layout = layout.load(file) if file else layout.Layout()
        screen.set_class(not self._layout.open, "-side-closed")

    def toggle(self) -> None:
        """Show or hide the side. In a narrow terminal it covers the conversation."""
        if self._screen.has_class("-narrow"):
            self._screen.toggle_class("-over")
            self._side.post_message(OutputSide.Sized())
        else:
            self._keep(replace(self._layout, open=not self._layout.open))

    def resize(self, share: float) -> float:
        """Give the side so much of the width, 0 to 1, and keep that. Returns what it gets: neither
        pane goes below its least."""
        self._keep(self._layout.resized(share))
        width = self._screen.size.width
        return self._cells(width) / width if width >= WIDE else self._layout.side

    def widen(self, cells: int) -> None:
        """Make the conversation wider, by so many cells."""
        side = self._side
        if side.display and not self._screen.has_class("-narrow"):
            self.resize((side.size.width - cells) / self._screen.size.width)

    def drag(self, x: int) -> None:
        """The splitter is held at column `x`."""
        width = self._screen.size.width
        self._layout = self._layout.resized((width - x - 1) / width)
        self.arrange()

    def drop(self) -> None:
        """The splitter was let go: keep where it is."""
        self._keep(self._layout)

    def arrange(self) -> None:
        """Lay the panes out, and draw the lines between them to fit."""
        side, width = self._side, self._screen.size.width
        if width >= WIDE:
            side.styles.width = self._cells(width)
        else:
            side.styles.clear_rule("width")
        self._screen.set_class(not self._layout.open, "-side-closed")
        self._screen.call_after_refresh(self._join_rules)

    def _cells(self, width: int) -> int:
        return max(SIDE_MIN, min(round(width * self._layout.side), width - LEFT_MIN - 1))

    def _keep(self, wanted: layout.Layout) -> None:
        self._layout = wanted
        if self._file:
            layout.save(self._file, wanted)
        self.arrange()

    def _join_rules(self) -> None:
        splitter = self._splitter
        self._below.joint = splitter.region.x if splitter.display else None
        splitter.joints = frozenset({self._side.meter_rule.region.y - splitter.region.y})
