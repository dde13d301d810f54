"""The list of the browser: the sessions, or the places of a search, with a cursor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Static

from tui.app.dialog_data import Picked, SessionRow
from tui.core.clock import Clock
from tui.ui.screens.sessions.filters import Browsing
from tui.ui.screens.sessions.labels import nothing
from tui.ui.screens.sessions.rows import heading, place_parts, row_parts
from tui.ui.widgets.row_list import Rows


class Columns(Widget):
    """The names of the columns, in the width that there is."""

    folders: reactive[bool] = reactive(False)

    def render(self) -> Content:
        return Content(heading(self.size.width, folders=self.folders))


class Listing(Vertical):
    """Draws what is `seen`, and says why where that is nothing. `current` is the open session."""

    def __init__(self, seen: Browsing, clock: Clock, current: Path | None) -> None:
        super().__init__(id="list-side")
        self.shown: Sequence[SessionRow] = ()
        self._seen = seen
        self._clock = clock
        self._current = current

    def compose(self) -> ComposeResult:
        yield Columns(id="columns")
        rows = Rows(id="rows")
        rows.can_focus = False
        yield rows
        yield Static(id="empty", markup=False)

    @property
    def rows(self) -> Rows:
        return self.query_one("#rows", Rows)

    @property
    def chosen(self) -> Picked | None:
        """What is under the cursor."""
        return self._seen.picked(self.rows.cursor, self.shown)

    def show(self, *, anew: bool) -> int:
        """Show what there is now: the cursor on what it was on, or `anew` on the first.

        Returns how many rows there are.
        """
        count = self._show_places(anew) if self._seen.searching else self._show_sessions(anew)
        self.query_one("#columns", Columns).folders = self._seen.tab != "here"
        if not count:
            self.query_one("#empty", Static).update(Content(nothing(self._seen)))
        return count

    def _show_places(self, anew: bool) -> int:
        places, words = self._seen.places or (), self._seen.words.split()
        self.rows.show(
            len(places),
            lambda at, width: place_parts(places[at], words, width),
            cursor=0 if anew else self.rows.cursor,
        )
        return len(places)

    def _show_sessions(self, anew: bool) -> int:
        kept = self.chosen
        shown = self.shown = self._seen.sifted()
        same = (at for at, row in enumerate(shown) if kept and row.path == kept.row.path)
        now, current, folders = self._clock.now(), self._current, self._seen.tab != "here"
        self.rows.show(
            len(shown),
            lambda at, width: row_parts(
                shown[at], now, width, current=shown[at].path == current, folders=folders
            ),
            cursor=0 if anew else next(same, 0),
        )
        return len(shown)
