"""Divides the width between the chat screen's two sides, and keeps that for the next run."""

from __future__ import annotations

import json
import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from textual.screen import Screen

from tui.core.dataclass import asdict, dataclass, replace
from tui.ui.screens.output_side import OutputSide
from tui.ui.widgets.panes import PaneRule, Splitter

log = logging.getLogger(__name__)

NARROWEST, WIDEST = 0.2, 0.75


@dataclass(frozen=True, slots=True)
class PaneLayout:
    """The layout that the person has chosen.

    `side` is the output's share of the screen's width. `open` is what the person chose last; None
    opens it if there is room for both.
    """

    side: float = 0.44
    open: bool | None = None

    def is_open(self, width: int) -> bool:
        """True if the output is beside the conversation in a screen of that many columns."""
        return width >= ROOMY if self.open is None else self.open

    def resized(self, side: float) -> PaneLayout:
        """Return the layout with another width, within sensible limits."""
        return PaneLayout(max(NARROWEST, min(WIDEST, side)), open=True)


def load_layout(path: Path) -> PaneLayout:
    """Load the saved layout; the default if there is none or it can't be read."""
    try:
        stored: object = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return PaneLayout()
    data = cast("dict[str, Any]", stored) if isinstance(stored, dict) else {}
    side, shown = data.get("side"), data.get("open")
    layout = PaneLayout(open=shown if isinstance(shown, bool) else None)
    if isinstance(side, float) and NARROWEST <= side <= WIDEST:
        layout = PaneLayout(side, layout.open)
    return layout


def save_layout(path: Path, layout: PaneLayout) -> None:
    """Save a layout. If that fails, the next run has the default."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(json.dumps(asdict(layout)))
        new.replace(path)
    except OSError:
        log.debug("couldn't save the layout", exc_info=True)
        with suppress(OSError):
            new.unlink()


WIDE, ROOMY = 100, 160
"""Columns from which the output can be beside the conversation, and opens by itself."""
TALL = 22
LEFT_MIN, SIDE_MIN = 40, 30
"""Least cells of either pane."""


class Panes:
    """Lays out the output beside the rest of a chat screen, and keeps its width in a file."""

    def __init__(
        self,
        screen: Screen[None],
        side: OutputSide,
        splitter: Splitter,
        rule: PaneRule,
        file: Path | None,
    ) -> None:
        """`rule` is the line above the prompt, which the splitter joins."""
        self._screen, self._side, self._splitter, self._rule = screen, side, splitter, rule
        self._file = file
        self._layout = load_layout(file) if file else PaneLayout()

    def begin(self, width: int) -> None:
        """Set the layout before the first frame, in a screen of that many columns."""
        self._screen.set_class(not self._is_open(width), "-side-closed")

    def _is_open(self, width: int) -> bool:
        """True if the side is open. In a new session it opens by itself once something was said."""
        begins = self._layout.open is None and self._screen.has_class("-start", "-fresh")
        return self._layout.is_open(width) and not begins

    @property
    def opened(self) -> bool:
        """True if the side is open at a width at which it would not be by itself."""
        return bool(self._layout.open) and WIDE <= self._screen.size.width < ROOMY

    def toggle(self) -> None:
        """Show or hide the side. In a narrow terminal it covers the conversation."""
        if self._screen.has_class("-narrow"):
            self._screen.toggle_class("-over")
            self._side.post_message(OutputSide.Resized())
        else:
            opened = self._is_open(self._screen.size.width)
            self._keep(replace(self._layout, open=not opened))

    def resize(self, share: float) -> float:
        """Give the side that share of the width, 0 to 1, save it, and return its actual share:
        neither pane gets less than its minimum."""
        self._keep(self._layout.resized(share))
        width = self._screen.size.width
        return self._cells(width) / width if width >= WIDE else self._layout.side

    def widen(self, cells: int) -> None:
        """Make the conversation wider, by that many cells."""
        side = self._side
        if side.display and not self._screen.has_class("-narrow"):
            self.resize((side.size.width - cells) / self._screen.size.width)

    def drag(self, x: int) -> None:
        """Follow the splitter while it is held at column `x`."""
        width = self._screen.size.width
        self._layout = self._layout.resized((width - x - 1) / width)
        self.arrange()

    def drop(self) -> None:
        """Save the place at which the splitter was released."""
        self._keep(self._layout)

    def arrange(self) -> None:
        """Lay the panes out, and draw the lines between them to fit."""
        side, width = self._side, self._screen.size.width
        if width >= WIDE:
            side.styles.width = self._cells(width)
        else:
            side.styles.clear_rule("width")
        self._screen.set_class(not self._is_open(width), "-side-closed")
        self._screen.call_after_refresh(self._join_rules)

    def _cells(self, width: int) -> int:
        return max(SIDE_MIN, min(round(width * self._layout.side), width - LEFT_MIN - 1))

    def _keep(self, wanted: PaneLayout) -> None:
        self._layout = wanted
        if self._file:
            save_layout(self._file, wanted)
        self.arrange()

    def _join_rules(self) -> None:
        self._rule.joint = self._splitter.region.x if self._splitter.display else None
