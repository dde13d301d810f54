"""F3: the sessions. Typing filters, Tab shows other folders and other agents, Enter goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias, cast

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, Static

from tui.errors import HoldfastError
from tui.paths import shorten
from tui.screens.choices import Picked, SessionRow
from tui.screens.session_rows import (
    BADGES,
    ORDERS,
    Order,
    heading,
    in_order,
    matching,
    place_parts,
    row_parts,
)
from tui.screens.shelf import Format, Place, Preview, Shelf
from tui.widgets.conversation.view import Conversation
from tui.widgets.figures import plural
from tui.widgets.keys import SESSION_KEYS, bindings
from tui.widgets.notice import NoticeLine
from tui.widgets.plain import one_line
from tui.widgets.rows import Rows
from tui.widgets.rule import PaneRule
from tui.widgets.transcript import entry_of, items_of
from tui.widgets.ways import Way, WaysModal

Tab: TypeAlias = Literal["here", "everywhere", "others"]

TABS: dict[Tab, str] = {
    "here": "this folder",
    "everywhere": "all folders",
    "others": "other agents",
}
WIDE = 100
PREVIEW_AFTER_S = 0.06
SEARCH_AFTER_S = 0.25
SHORTEST = 2
"""Characters that a search needs."""

_HINTS = (
    ("enter", "open"),
    ("tab", "scope"),
    ("^f", "search texts"),
    ("^s", "sort"),
    ("^r", "rename"),
    ("^b", "fork"),
    ("^e", "export"),
    ("^d", "delete"),
    ("esc", "back"),
)
_NOTHING: dict[Tab, str] = {
    "here": "No sessions in this folder yet.\n"
    "Every conversation that begins here is kept and listed here.\n"
    "Tab shows those of all folders, and of other agents.",
    "everywhere": "No sessions yet.\nEvery conversation is kept and listed here.\n"
    "Tab shows the sessions of other agents.",
    "others": "No sessions of other agents were found.\n"
    "Those of Claude Code, pi, OpenClaw and Codex are looked for in their usual folders.\n"
    "A file that lies elsewhere: holdfast -r FILE.",
}


class Columns(Widget):
    """The names of the columns, in the width that there is."""

    folders: reactive[bool] = reactive(False)

    def render(self) -> Content:
        return Content(heading(self.size.width, folders=self.folders))


class SessionsScreen(Screen[Picked | None]):
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
        shelf: Shelf,
        *,
        current: Path | None = None,
        rename: Callable[[str], object] | None = None,
    ) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]
        self._shelf = shelf
        self._current = current
        self._rename = rename
        self._tab: Tab = "here"
        self._order: Order = "age"
        self._all: list[SessionRow] | None = None
        self._shown: list[SessionRow] = []
        self._places: list[Place] | None = None
        self._searching = False
        self._read = (0, 0)
        self._problem = ""
        self._previewed: tuple[Path, str] | None = None
        self._soon: Timer | None = None
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
            with Vertical(id="list-side"):
                yield Columns(id="columns")
                rows = Rows(id="rows")
                rows.can_focus = False
                yield rows
                yield Static(id="empty", markup=False)
            with Vertical(id="preview-side"):
                yield PaneRule(id="preview-rule")
                preview = Conversation(id="preview")
                preview.can_focus = False
                yield preview
        yield self.notice
        yield PaneRule()
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        self._draw()
        self.load()
        self.set_interval(0.1, self._follow)

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    @property
    def rows(self) -> Rows:
        return self.query_one("#rows", Rows)

    @property
    def shown(self) -> Sequence[SessionRow]:
        """The sessions as they are filtered and sorted now."""
        return self._shown

    @property
    def places(self) -> Sequence[Place] | None:
        """What a search found; None while titles are shown."""
        return self._places if self._searching else None

    @property
    def tab(self) -> Tab:
        return self._tab

    @property
    def chosen(self) -> Picked | None:
        """What is under the cursor."""
        at = self.rows.cursor
        if self._searching:
            places = self._places or []
            return Picked(places[at].row, places[at].message) if at < len(places) else None
        return Picked(self._shown[at]) if at < len(self._shown) else None

    @property
    def _words(self) -> str:
        return self.query_one("#filter", Input).value

    # Reading

    @work(exclusive=True, group="load")
    async def load(self) -> None:
        """Read the list of the tab that is open; while that takes long, say how far it is."""
        self._all, self._problem, self._read = None, "", (0, 0)
        tab = self._tab
        self._draw()
        try:
            if tab == "others":
                found = await asyncio.to_thread(self._shelf.others, everywhere=True)
            else:
                found = await asyncio.to_thread(
                    self._shelf.ours, everywhere=tab == "everywhere", progress=self._progress
                )
        except (HoldfastError, OSError) as error:
            found, self._problem = [], str(error)
        self._all = found
        self._draw()
        if self._searching:
            self.search()

    def _progress(self, done: int, of: int) -> None:
        """Called in the thread that reads."""
        self._read = (done, of)

    def _follow(self) -> None:
        if self._read[1] and (self._all is None or (self._searching and self._places is None)):
            self._draw()

    @work(exclusive=True, group="search")
    async def search(self) -> None:
        """Look for what is typed in the texts of the sessions that the tab shows."""
        words = self._words.strip()
        self._places, self._read = None, (0, 0)
        if self._all is None or len(words) < SHORTEST:
            self._places = []
            self._draw()
            return
        self._draw()
        try:
            found = await asyncio.to_thread(
                self._shelf.search, words, self._all, progress=self._progress
            )
        except (HoldfastError, OSError) as error:
            found, self._problem = [], str(error)
        if self._searching and words == self._words.strip():
            self._places = found
            self._draw(anew=True)

    # What is shown

    def _draw(self, *, anew: bool = False) -> None:
        if not self.is_mounted:
            return
        kept = self.chosen
        self._head()
        if self._searching:
            places, words = self._places or [], self._words.split()
            self.rows.show(
                len(places), lambda at, width: place_parts(places[at], words, width),
                cursor=0 if anew else self.rows.cursor,
            )  # fmt: skip
        else:
            shown = self._shown = in_order(matching(self._all or [], self._words), self._order)
            now, folders = self._shelf.clock.now(), self._tab != "here"
            at = next((n for n, row in enumerate(shown) if kept and row.path == kept.row.path), 0)
            self.rows.show(
                len(shown),
                lambda at, width: row_parts(
                    shown[at], now, width, current=shown[at].path == self._current, folders=folders
                ),
                cursor=0 if anew else at,
            )
        count = len(self._places or []) if self._searching else len(self._shown)
        self.set_class(not count, "-empty")
        self.set_class(self._searching, "-search")
        if not count:
            self.query_one("#empty", Static).update(Content(self._nothing()))
        self._preview_soon()

    def _head(self) -> None:
        rows = self._all or []
        states = [
            f"{n:,} {BADGES[state][0]}"
            for state in ("interrupted", "needs_repair", "unreadable")
            if (n := sum(row.state == state for row in rows))
        ]
        facts = [plural(len(rows), "session"), *states] if self._all is not None else []
        if self._searching and self._places is not None:
            facts = [plural(len(self._places), "place")]
        title = Content.assemble(
            ("sessions", "bold $text-primary"), (f"   {' · '.join(facts)}", "$text-muted")
        )
        self.query_one("#title", Static).update(title)
        tabs = self.query_one("#tabs", PaneRule)
        tabs.title = Content("   ").join(
            [
                Content.styled(text, "bold $text-primary" if tab == self._tab else "$text-muted")
                for tab, text in TABS.items()
            ]
        )
        right = "search" if self._searching else ORDERS[self._order]
        tabs.right = Content.styled(right, "$text-muted")
        field = self.query_one("#filter", Input)
        field.placeholder = "Words to find in all texts" if self._searching else "Type to filter"
        self.query_one("#caret", Static).update("⌕" if self._searching else "❯")
        self.query_one("#columns", Columns).folders = self._tab != "here"
        self.query_one("#keys", Static).update(_keys(self.size.width - 2))

    def _nothing(self) -> str:
        words = one_line(self._words)
        done, of = self._read
        if self._problem:
            return self._problem
        if self._searching and len(words) < SHORTEST:
            return "Type words that stand in what you look for: in a prompt, an answer, a result."
        if self._all is None or (self._searching and self._places is None):
            if not of:
                return "Searching …" if self._searching else "Looking for sessions …"
            full = round(24 * done / of)
            return f"Reading sessions: {done:,} of {of:,}\n{'█' * full}{'░' * (24 - full)}"
        if words and self._all:
            if self._searching:
                return f"Nothing has “{words}” in it.\nTab looks in other folders too."
            return f"No session matches “{words}”.\nCtrl+F looks for it in the texts, Esc clears."
        return _NOTHING[self._tab]

    def _preview_soon(self) -> None:
        if self._soon is not None:
            self._soon.stop()
        self._soon = self.set_timer(PREVIEW_AFTER_S, self._preview)

    @on(Rows.Moved)
    def _moved(self, event: Rows.Moved) -> None:
        event.stop()
        self._preview_soon()

    def _preview(self) -> None:
        picked = self.chosen
        wanted = (picked.row.path, picked.message) if picked else None
        if wanted != self._previewed:
            self._previewed = wanted
            self.preview(picked)

    @work(exclusive=True, group="preview")
    async def preview(self, picked: Picked | None) -> None:
        """Show the end of a session, or what stands around the place that was found."""
        rule = self.query_one("#preview-rule", PaneRule)
        view = self.query_one("#preview", Conversation)
        if picked is None:
            rule.title = Content.styled("nothing chosen", "$text-muted")
            view.clear()
            return
        row = picked.row
        try:
            seen = await asyncio.to_thread(self._shelf.preview, row, picked.message)
        except (HoldfastError, OSError) as error:
            seen = Preview(())
            rule.title = Content.styled(one_line(str(error)), "$text-error")
        else:
            where = shorten(Path(row.cwd)) if row.cwd else ""
            facts = [row.id[:12], where, ", ".join(row.problems)]
            rule.title = Content.styled(" · ".join(filter(None, facts)), "$text-muted")
        items = items_of(seen.records)
        view.clear()
        view.extend(items)
        if seen.message and (item := entry_of(seen.records, seen.message, items)):
            view.go_to(item)
        else:
            view.action_edge(1)

    def on_conversation_item_selected(self, event: Conversation.ItemSelected) -> None:
        event.stop()  # the preview is only looked at

    # Keys

    def action_close(self) -> None:
        """Esc: what is typed, the search, then the screen."""
        if self._words:
            self.query_one("#filter", Input).value = ""
        elif self._searching:
            self.action_search_texts()
        else:
            self.dismiss(None)

    def action_move(self, step: int) -> None:
        self.rows.action_move(step)

    def action_page(self, step: int) -> None:
        self.rows.action_page(step)

    def action_next_tab(self, step: int) -> None:
        """This folder, all folders, other agents."""
        tabs = list(TABS)
        self._tab = tabs[(tabs.index(self._tab) + step) % len(tabs)]
        if self._tab == "others" and self._searching:
            self._searching = False
        self.load()

    def action_sort(self) -> None:
        orders = list(ORDERS)
        self._order = orders[(orders.index(self._order) + 1) % len(orders)]
        self._draw(anew=True)

    def action_search_texts(self) -> None:
        """Between the titles and the texts."""
        if self._tab == "others":
            self.notice.say("Other agents' sessions are searched once they are taken over.")
            return
        self._searching = not self._searching
        self._places = None
        self._draw(anew=True)
        if self._searching:
            self.search()

    @on(Input.Changed, "#filter")
    def _typed(self) -> None:
        self.notice.clear()
        if not self._searching:
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

    # What is done to a session

    @work(group="act")
    async def action_rename(self) -> None:
        from tui.widgets.ask_text import AskText  # noqa: PLC0415 - on demand

        row = self._ours("renamed")
        if row is None:
            return
        ask = AskText("Rename the session", row.title)
        title = await self.app.push_screen_wait(ask)  # pyright: ignore[reportUnknownMemberType]
        if title is None:
            return
        if row.path == self._current and self._rename is not None:
            self._rename(title)
            self._changed(f"It is called “{title}” now.")
        else:
            await self._act(lambda: self._shelf.rename(row, title), f"It is called “{title}” now.")

    @work(group="act")
    async def action_fork(self) -> None:
        """A copy, up to the place that was found in a search, or whole."""
        row, picked = self._ours("forked"), self.chosen
        if row is None or picked is None:
            return
        what = "A copy up to the place found is made." if picked.message else "A copy is made."
        await self._act(lambda: self._shelf.fork(row, picked.message), what)

    @work(group="act")
    async def action_export(self) -> None:
        picked = self.chosen
        if picked is None:
            return
        where = shorten(self._shelf.workspace)
        modal = WaysModal(
            "Export the session",
            f"The document is written into {where}. Keys of known shapes are masked in it.",
            (
                Way("m", "Markdown", "md"),
                Way("h", "HTML, one file", "html"),
                Way("j", "JSON lines, every record", "jsonl"),
                Way("b", "Back", "back"),
            ),
        )
        chosen = await self.app.push_screen_wait(modal)  # pyright: ignore[reportUnknownMemberType]
        if chosen not in {"md", "html", "jsonl"}:
            return
        format_ = cast("Format", chosen)
        try:
            path, secrets = await asyncio.to_thread(self._shelf.export, picked.row, format_)
        except HoldfastError as error:
            self.notice.say(error.message, "error", hint=error.hint)
        else:
            masked = f"{plural(secrets, 'secret')} masked." if secrets else ""
            self.notice.say(f"Written to {shorten(path)}.", "success", hint=masked)

    @work(group="act")
    async def action_delete(self) -> None:
        from tui.widgets.confirmation import Confirmation, Question  # noqa: PLC0415 - on demand

        row = self._ours("deleted")
        if row is None:
            return
        if row.path == self._current:
            self.notice.say("This session is open here.", "warning", hint="/new leaves it.")
            return
        question = Question(
            "Delete this session?",
            "It goes to the trash folder, from where it can be moved back.",
            yes="Delete it",
            no="Keep it",
            details=(one_line(row.title) or "(nothing asked)", str(row.path)),
        )
        yes = await self.app.push_screen_wait(Confirmation(question))  # pyright: ignore[reportUnknownMemberType]
        if yes:
            trash = shorten(self._shelf.folders.data / "trash")
            await self._act(lambda: self._shelf.delete(row), f"It is in the trash: {trash}.")

    def _ours(self, what: str) -> SessionRow | None:
        picked = self.chosen
        if picked is not None and picked.row.agent:
            agent = picked.row.agent
            self.notice.say(
                f"{agent}'s own files are never {what}.", "warning", hint="Enter makes a copy."
            )
            return None
        return picked.row if picked else None

    async def _act(self, work: Callable[[], object], done: str) -> None:
        try:
            await asyncio.to_thread(work)
        except HoldfastError as error:
            self.notice.say(error.message, "error", hint=error.hint)
        else:
            self._changed(done)

    def _changed(self, done: str) -> None:
        self.notice.say(done, "success")
        self._previewed = None
        self.load()


def _keys(width: int) -> Content:
    """The keys, on as many rows as they take."""
    hints = [
        Content.assemble((key, "$text-accent"), (f" {text}", "$text-muted")) for key, text in _HINTS
    ]
    rows: list[Content] = []
    for hint in hints:
        longer = Content("  ").join([rows[-1], hint]) if rows else hint
        if rows and longer.cell_length <= width:
            rows[-1] = longer
        else:
            rows.append(hint)
    return Content("\n").join(rows)
