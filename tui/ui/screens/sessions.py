"""F3: the sessions. Typing filters, Tab shows other folders and other agents, Enter continues."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, cast

from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, Static

from tui.app.conversation import Conversation
from tui.app.dialog_data import PickedSession, SessionRow
from tui.app.session_repository import SearchHit, SessionRepository
from tui.core.errors import HoldfastError
from tui.ui.screens import session_rows
from tui.ui.screens.session_actions import ActionOutcome, PreviewSide, SessionActions
from tui.ui.screens.session_rows import Browsing, Tab
from tui.ui.screens.table_screen import TableScreen
from tui.ui.widgets.keys import SESSION_KEYS, bindings
from tui.ui.widgets.panes import PaneRule
from tui.ui.widgets.row_list import RowList


class SessionColumns(Widget):
    """The names of the columns, in the available width."""

    folders: reactive[bool] = reactive(False)

    def render(self) -> Content:
        return Content(session_rows.heading(self.size.width, folders=self.folders))


SEARCH_AFTER_S = 0.25
FOLLOW_S = 0.1
"""Seconds between updates of the reading progress."""


class SessionsScreen(TableScreen[PickedSession | None]):
    """Dismissed with the chosen session, or None.

    `current` is the file of the open session, that of the `conversation`.
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
        sessions: SessionRepository,
        *,
        current: Path | None = None,
        conversation: Conversation | None = None,
    ) -> None:
        super().__init__()
        self.shown: Sequence[SessionRow] = ()
        """The sessions as they are filtered and sorted now."""
        self._sessions = sessions
        self._seen = Browsing()
        self._preview = PreviewSide(sessions)
        self._current, self._conversation = current, conversation
        self._following: Timer | None = None
        self._searches = 0

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield self.filter_row("›", "Filter")
        yield PaneRule(id="tabs")
        with Container(id="panes"):
            with Vertical(id="list-side"):
                yield SessionColumns(id="columns")
                rows = RowList(id="rows")
                rows.can_focus = False
                yield rows
                yield Static(id="empty", markup=False)
            yield self._preview
        yield from self.foot()

    def on_mount(self) -> None:
        self._following = self.set_interval(FOLLOW_S, self._follow, pause=True)
        self._draw()
        self.load()

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    @property
    def places(self) -> Sequence[SearchHit] | None:
        """The hits of a search; None while titles are shown."""
        return self._seen.places if self._seen.searching else None

    @property
    def tab(self) -> Tab:
        return self._seen.tab

    @property
    def chosen(self) -> PickedSession | None:
        """The session or search hit under the cursor."""
        return self._seen.picked(self.rows.cursor, self.shown)

    # Reading

    @work(exclusive=True, group="load")
    async def load(self) -> None:
        """Read the sessions of the open tab."""
        seen = self._seen
        seen.sessions, seen.problem = None, ""
        self._begin()
        try:
            if seen.tab == "others":
                seen.sessions = await asyncio.to_thread(self._sessions.others)
            else:
                seen.sessions = await asyncio.to_thread(
                    self._sessions.ours,
                    everywhere=seen.tab == "everywhere",
                    sub_agents=seen.sub_agents,
                    progress=self._progress,
                )
        except (HoldfastError, OSError) as error:
            seen.sessions, seen.problem = [], str(error)
        self._draw()
        if seen.searching:
            self.search()

    @work(exclusive=True, group="search")
    async def search(self, after_s: float = 0.0) -> None:
        """Search the texts of the tab's sessions for the typed words."""
        await asyncio.sleep(after_s)
        seen, words = self._seen, self._seen.words.strip()
        seen.places = None
        if seen.sessions is None or seen.too_short:
            seen.places = []
            self._draw()
            return
        self._begin()
        self._searches += 1
        number = self._searches

        def still_wanted(done: int, of: int) -> None:
            """Called in the thread, which would otherwise read on when nobody waits for it."""
            if number != self._searches or not self.is_attached:
                raise HoldfastError("Stopped.")
            self._progress(done, of)

        try:
            hits, remark = await asyncio.to_thread(
                self._sessions.search, words, seen.sessions, progress=still_wanted
            )
        except (HoldfastError, OSError) as error:
            hits, remark, seen.problem = [], "", str(error)
        if (
            seen.searching and words == seen.words.strip()
        ):  # otherwise the search has changed meanwhile
            seen.places = hits
            if remark:
                self.notice.say(remark)
            self._draw(from_top=True)
            with suppress(HoldfastError, OSError):
                await asyncio.to_thread(self._sessions.restore_index, still_wanted)

    def _progress(self, done: int, of: int) -> None:
        """Note how much has been read; called in the reading thread."""
        self._seen.read = (done, of)

    def _begin(self) -> None:
        """Show that reading begins, and its progress."""
        self._seen.read = (0, 0)
        self._draw()
        if self._following is not None:
            self._following.resume()

    def _follow(self) -> None:
        if not self._seen.reading and self._following is not None:
            self._following.pause()
        elif self._seen.read[1]:
            self._draw()

    # What is shown

    def _draw(self, *, from_top: bool = False) -> None:
        """Draw the current state, with the cursor where it was or, with `from_top`, on the first
        row."""
        if not self.is_mounted:
            return
        seen, width = self._seen, self.size.width
        count = self._show_places(from_top) if seen.searching else self._show_sessions(from_top)
        self.query_one("#columns", SessionColumns).folders = seen.tab != "here"
        self.show_empty("" if count else session_rows.empty_text(seen))
        self.put("title", session_rows.sessions_title(seen, width - 2))
        tabs = self.query_one("#tabs", PaneRule)
        tabs.title = session_rows.tabs_of(seen, width)
        tabs.right = session_rows.order_name(seen, width)
        placeholder = "Search the full text" if seen.searching else "Filter"
        self.filter_field.placeholder = placeholder
        self.put("caret", "⌕" if seen.searching else "›")
        self.put("keys", session_rows.session_keys(seen.tab, count, width - 2))
        self.set_class(seen.searching, "-search")
        self._preview.follow(self.chosen)

    def _show_places(self, from_top: bool) -> int:
        places, words = self._seen.places or (), self._seen.words.split()
        self.rows.show(
            len(places),
            lambda at, width: session_rows.place_parts(places[at], words, width),
            cursor=0 if from_top else self.rows.cursor,
        )
        return len(places)

    def _show_sessions(self, from_top: bool) -> int:
        before = self.chosen
        shown = self.shown = self._seen.sifted()
        same = (at for at, row in enumerate(shown) if before and row.path == before.row.path)
        now, current, folders = self._sessions.clock.now(), self._current, self._seen.tab != "here"
        self.rows.show(
            len(shown),
            lambda at, width: session_rows.row_parts(
                shown[at], now, width, current=shown[at].path == current, folders=folders
            ),
            cursor=0 if from_top else next(same, 0),
        )
        return len(shown)

    def row_moved(self, index: int) -> None:  # noqa: ARG002
        self._preview.follow(self.chosen)

    # Keys

    @on(Input.Changed, "#filter")
    def _typed(self, event: Input.Changed) -> None:
        self._seen.words = event.value
        self.notice.clear()
        if not self._seen.searching:
            self._draw(from_top=True)
            return
        self.search(SEARCH_AFTER_S)

    @on(Input.Submitted, "#filter")
    def _enter(self) -> None:
        if self.chosen is not None:
            self.dismiss(self.chosen)

    def row_chosen(self, index: int) -> None:  # noqa: ARG002
        self._enter()

    def action_close(self) -> None:
        """Esc: clear the text, leave the search, then close the screen."""
        if self.filter_field.value:
            self.filter_field.value = ""
        elif self._seen.searching:
            self.action_search_texts()
        else:
            self.dismiss(None)

    def action_next_tab(self, step: int) -> None:
        """Switch between this folder, all folders and other agents."""
        self._seen.turn_tab(step)
        self.load()

    def action_sort(self) -> None:
        self._seen.turn_order()
        self._draw(from_top=True)

    def action_sub_agents(self) -> None:
        """Show or hide the sessions of sub-agents."""
        if self._seen.tab == "others":
            self.notice.say("Only Holdfast's own sessions have sub-agents here.")
            return
        self._seen.sub_agents = not self._seen.sub_agents
        self.load()

    def action_search_texts(self) -> None:
        """Switch between titles and texts."""
        self._seen.searching, self._seen.places = not self._seen.searching, None
        self._draw(from_top=True)
        if self._seen.searching:
            self.search()

    @property
    def _actions(self) -> SessionActions:
        app = cast("App[Any]", self.app)
        return SessionActions(app, self._sessions, self._current, self._conversation)

    def action_rename(self) -> None:
        self._act(self._actions.rename)

    def action_fork(self) -> None:
        self._act(self._actions.fork)

    def action_export(self) -> None:
        self._act(self._actions.export)

    def action_delete(self) -> None:
        self._act(self._actions.delete)

    @work(group="act")
    async def _act(
        self, action: Callable[[PickedSession], Awaitable[ActionOutcome | None]]
    ) -> None:
        """Perform an action on what is under the cursor, and show its outcome."""
        picked = self.chosen
        if picked is None:
            return
        try:
            outcome = await action(picked)
        except HoldfastError as error:
            self.refuse(error)
            return
        if outcome is None:
            return
        self.notice.say(outcome.text, outcome.kind, hint=outcome.hint)
        if outcome.changed:
            self._preview.forget()
            self.load()
