"""The session browser: reads what is looked at, and passes keys to those who answer them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Input, Static

from tui.app.dialog_data import Picked, SessionRow
from tui.app.session_repository import Place, SessionRepository
from tui.core.errors import HoldfastError
from tui.ui.screens.sessions import labels, reader
from tui.ui.screens.sessions.actions import Actions, Said
from tui.ui.screens.sessions.filters import Browsing, Tab
from tui.ui.screens.sessions.listing import Listing
from tui.ui.screens.sessions.preview import PreviewSide
from tui.ui.toolkit.base_app import Sized
from tui.ui.widgets.keys import SESSION_KEYS, bindings
from tui.ui.widgets.notice import NoticeLine
from tui.ui.widgets.pane_title import PaneRule
from tui.ui.widgets.row_list import Rows

WIDE = 100
SEARCH_AFTER_S = 0.25
FOLLOW_S = 0.1
"""How often it is said how far reading is."""


class SessionsScreen(Sized, Screen[Picked | None]):
    """Dismissed with what was chosen, or None.

    `current` is the file of the session that is open; `rename` gives that one another title.
    """

    CSS_PATH = "sessions.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(SESSION_KEYS),
        Binding("escape,f3", "close", "back", show=False),
        Binding("down", "move(1)", show=False),
        Binding("up", "move(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#filter"

    def __init__(
        self,
        shelf: SessionRepository,
        *,
        current: Path | None = None,
        rename: Callable[[str], object] | None = None,
    ) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]
        self._shelf = shelf
        self._seen = Browsing()
        self._listing = Listing(self._seen, shelf.clock, current)
        self._preview = PreviewSide(shelf)
        self._current = current
        self._rename = rename
        self._following: Timer | None = None
        self._search_soon: Timer | None = None
        self.notice = NoticeLine(id="notice")

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        with Horizontal(id="filter-row"):
            yield Static("❯", id="caret", markup=False)
            words = Input(placeholder="Type to filter", id="filter")
            words.cursor_blink = False
            yield words
        yield PaneRule(id="tabs")
        with Container(id="panes"):
            yield self._listing
            yield self._preview
        yield self.notice
        yield PaneRule()
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        self._following = self.set_interval(FOLLOW_S, self._follow, pause=True)
        self._draw()
        self.load()

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    @property
    def rows(self) -> Rows:
        return self._listing.rows

    @property
    def shown(self) -> Sequence[SessionRow]:
        """The sessions as they are filtered and sorted now."""
        return self._listing.shown

    @property
    def places(self) -> Sequence[Place] | None:
        """What a search found; None while titles are shown."""
        return self._seen.places if self._seen.searching else None

    @property
    def tab(self) -> Tab:
        return self._seen.tab

    @property
    def chosen(self) -> Picked | None:
        """What is under the cursor."""
        return self._listing.chosen

    # Reading

    @work(exclusive=True, group="load")
    async def load(self) -> None:
        """Read the list of the tab that is open; while that takes long, say how far it is."""
        self._seen.forget_sessions()
        self._begin()
        await reader.load(self._seen, self._shelf)
        self._draw()
        if self._seen.searching:
            self.search()

    @work(exclusive=True, group="search")
    async def search(self) -> None:
        """Look for what is typed in the texts of the sessions that the tab shows."""
        self._seen.forget_places()
        if self._seen.sessions is None or self._seen.too_short:
            self._seen.places = []
            self._draw()
            return
        self._begin()
        if await reader.search(self._seen, self._shelf):
            self._draw(anew=True)

    def _begin(self) -> None:
        """Show that something is read from here on, and how far it is."""
        self._draw()
        if self._following is not None:
            self._following.resume()

    def _follow(self) -> None:
        if not self._seen.reading and self._following is not None:
            self._following.pause()
        elif self._seen.read[1]:
            self._draw()

    # What is shown

    def _draw(self, *, anew: bool = False) -> None:
        if not self.is_mounted:
            return
        count = self._listing.show(anew=anew)
        self._head(count)
        self.set_class(not count, "-empty")
        self.set_class(self._seen.searching, "-search")
        self._preview.follow(self.chosen)

    def _head(self, count: int) -> None:
        seen = self._seen
        self.query_one("#title", Static).update(labels.title(seen))
        tabs = self.query_one("#tabs", PaneRule)
        tabs.title, tabs.right = labels.tabs(seen), labels.order(seen, self.size.width)
        field = self.query_one("#filter", Input)
        field.placeholder = "Words to find in all texts" if seen.searching else "Type to filter"
        self.query_one("#caret", Static).update("⌕" if seen.searching else "❯")
        self.query_one("#keys", Static).update(labels.keys(seen.tab, count, self.size.width - 2))

    @on(Rows.Moved)
    def _moved(self, event: Rows.Moved) -> None:
        event.stop()
        self._preview.follow(self.chosen)

    # Keys

    @on(Input.Changed, "#filter")
    def _typed(self, event: Input.Changed) -> None:
        self._seen.words = event.value
        self.notice.clear()
        if not self._seen.searching:
            self._draw(anew=True)
            return
        if self._search_soon is not None:
            self._search_soon.stop()
        self._search_soon = self.set_timer(SEARCH_AFTER_S, self.search)

    @on(Input.Submitted, "#filter")
    def _enter(self) -> None:
        if self.chosen is not None:
            self.dismiss(self.chosen)

    @on(Rows.Chosen)
    def _clicked(self, event: Rows.Chosen) -> None:
        event.stop()
        self._enter()

    def action_close(self) -> None:
        """Esc: what is typed, the search, then the screen."""
        field = self.query_one("#filter", Input)
        if field.value:
            field.value = ""
        elif self._seen.searching:
            self.action_search_texts()
        else:
            self.dismiss(None)

    def action_move(self, step: int) -> None:
        self.rows.action_move(step)

    def action_page(self, step: int) -> None:
        self.rows.action_page(step)

    def action_next_tab(self, step: int) -> None:
        """This folder, all folders, other agents."""
        self._seen.turn_tab(step)
        self.load()

    def action_sort(self) -> None:
        self._seen.turn_order()
        self._draw(anew=True)

    def action_search_texts(self) -> None:
        """Between the titles and the texts."""
        if self._seen.tab == "others":
            self.notice.say("Other agents' sessions are searched once they are taken over.")
            return
        self._seen.turn_search()
        self._draw(anew=True)
        if self._seen.searching:
            self.search()

    @property
    def _actions(self) -> Actions:
        app = cast("App[Any]", self.app)
        return Actions(app, self._shelf, self._current, self._rename)

    def action_rename(self) -> None:
        self._act(self._actions.rename)

    def action_fork(self) -> None:
        self._act(self._actions.fork)

    def action_export(self) -> None:
        self._act(self._actions.export)

    def action_delete(self) -> None:
        self._act(self._actions.delete)

    @work(group="act")
    async def _act(self, action: Callable[[Picked], Awaitable[Said | None]]) -> None:
        """Do something to what is under the cursor, and say what came of it."""
        picked = self.chosen
        if picked is None:
            return
        try:
            said = await action(picked)
        except HoldfastError as error:
            self.notice.say(error.message, "error", hint=error.hint)
            return
        if said is None:
            return
        self.notice.say(said.text, said.kind, hint=said.hint)
        if said.changed:
            self._preview.forget()
            self.load()
