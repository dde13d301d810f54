"""The context inspector: keeps its table up to date, and passes keys to those who answer them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, Static

from tui.agent.events import Event
from tui.context import masks, request_assembly
from tui.context.file_changes import change_checker
from tui.context.masks import record_of
from tui.context.token_ledger import Item
from tui.core.errors import HoldfastError
from tui.core.formatting import plural
from tui.ui.screens.context import labels
from tui.ui.screens.context.bulk_menu import BulkMenu
from tui.ui.screens.context.changes import Change, masking, pinning, told, undoing
from tui.ui.screens.context.item import ContextItemScreen
from tui.ui.screens.context.listing import Listing
from tui.ui.screens.context.port import Inspected
from tui.ui.screens.context.rows import Order, Row
from tui.ui.screens.context.texts import texts_in
from tui.ui.toolkit.base_app import Sized
from tui.ui.widgets.file_viewer.line_file import CopyFile
from tui.ui.widgets.file_viewer.pane import CopyPane
from tui.ui.widgets.key_hints import in_rows
from tui.ui.widgets.keys import CONTEXT_KEYS, bindings
from tui.ui.widgets.notice import NoticeLine
from tui.ui.widgets.pane_title import PaneRule
from tui.ui.widgets.row_list import Rows

FOLLOW_S = 1.0
"""How often the table is brought up to date while a turn runs behind it."""


class ContextScreen(Sized, Screen[None]):
    """`tell` gets the events of what is changed here; `root` is the workspace."""

    CSS_PATH = "context.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(CONTEXT_KEYS),
        Binding("escape,f2", "close", "back", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#rows"

    def __init__(
        self, agent: Inspected, tell: Callable[[Event], None], root: Path = Path()
    ) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]
        self._agent = agent
        self._tell = tell
        self._root = root
        self._records_seen = -1
        self._undo: list[Change] = []
        self._listing = Listing()
        self.notice = NoticeLine(id="notice")

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield Static(id="totals", markup=False)
        with Horizontal(id="filter-row"):
            yield Static("/", id="caret", markup=False)
            words = Input(placeholder="kind, text, state or pinned", id="filter")
            words.cursor_blink = False
            yield words
        yield PaneRule("items", id="items-rule")
        yield self._listing
        yield CopyPane(id="request")
        yield self.notice
        yield PaneRule()
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        self._agent.view()  # the ledger takes from it how each record stands now
        self._load()
        self.set_interval(FOLLOW_S, self._follow)

    def on_resize(self) -> None:
        self._draw()

    @property
    def rows(self) -> Rows:
        return self._listing.rows

    @property
    def shown(self) -> Sequence[Row]:
        """The rows as they are sorted and filtered now."""
        return self._listing.shown

    @property
    def chosen(self) -> Row | None:
        """The row under the cursor."""
        return self._listing.chosen

    @property
    def _shows_request(self) -> bool:
        return self.has_class("-request")

    # What is shown

    def _follow(self) -> None:
        if len(self._agent.session.records) != self._records_seen:
            self._load()

    def _load(self) -> None:
        records = self._agent.session.records
        self._records_seen = len(records)
        turns = masks.ages(records)
        items = self._agent.ledger.items(images=True)
        self._listing.items = [Row(one, turns.get(record_of(one.id)[0])) for one in items]
        self._draw()

    def _draw(self) -> None:
        count, window = self._agent.ledger.tokens, self._agent.window
        items, width = [row.item for row in self._listing.items], self.size.width - 2
        self._listing.show(window)
        self.query_one("#title", Static).update(labels.title(items, count, window))
        self.query_one("#totals", Static).update(labels.totals(items, count, window, width))
        self.query_one("#keys", Static).update(in_rows(labels.KEYS, width))
        rule = self.query_one("#items-rule", PaneRule)
        rule.title = labels.tabs(request=self._shows_request)
        right = "" if self._shows_request else self._listing.order
        rule.right = Content.styled(right, "$text-muted")

    def action_sort(self, order: Order) -> None:
        """In an order; the same again gives the order of the request."""
        self._listing.sort(order)
        self._draw()
        self.rows.move_to(0)

    def action_filter(self) -> None:
        if not self._shows_request:
            self.add_class("-filter")
            self.query_one("#filter", Input).focus()

    @on(Input.Changed, "#filter")
    def _filter_changed(self, event: Input.Changed) -> None:
        self._listing.words = event.value
        self._draw()

    @on(Input.Submitted, "#filter")
    def _filter_set(self) -> None:
        self.rows.focus()

    async def action_close(self) -> None:
        """Esc: the filter, the request, then the screen."""
        words = self.query_one("#filter", Input)
        if words.value or words.has_focus:
            words.value = ""
            self.remove_class("-filter")
            self.rows.focus()
        elif self._shows_request:
            await self.action_other_tab()
        else:
            self.dismiss(None)

    # Looking closer

    async def action_other_tab(self) -> None:
        """Between the items and the request."""
        self.toggle_class("-request")
        self.notice.clear()
        self._draw()
        if not self._shows_request:
            self.rows.focus()
            return
        pane = self.query_one("#request", CopyPane)
        sent = self._agent.next_request(prompt_follows=True)
        text = await asyncio.to_thread(request_assembly.printed, sent)
        pane.show(CopyFile(text.encode("utf-8", "replace")))
        pane.view.focus()

    @on(Rows.Chosen)
    def _open(self, event: Rows.Chosen) -> None:
        item = self.shown[event.index].item
        screen = ContextItemScreen(item, texts_in(self._agent, item), self._agent.window)
        self.app.push_screen(screen, self._after_item)  # pyright: ignore[reportUnknownMemberType]

    def _after_item(self, action: str | None) -> None:
        if action == "mask":
            self.action_mask()
        elif action == "pin":
            self.action_pin()

    def action_copy(self) -> None:
        """Copy the item as the model sees it, or the exact request."""
        if self._shows_request:
            sent = request_assembly.to_json(self._agent.next_request(prompt_follows=True))
            text = json.dumps(sent, ensure_ascii=True, indent=2)
        elif row := self.chosen:
            text = texts_in(self._agent, row.item).sent
        else:
            return
        self.app.copy_to_clipboard(text)  # pyright: ignore[reportUnknownMemberType]
        self.notice.say(f"Copied: {plural(len(text), 'character')}.", "success")

    # Changing

    def action_mask(self) -> None:
        """Mask the item under the cursor, or unmask it."""
        if item := self._changeable():
            self.change(masking(item, self._agent.session.records))

    def action_pin(self) -> None:
        """Pin the item under the cursor, or let it go."""
        if item := self._changeable():
            self.change(pinning(item))

    def _changeable(self) -> Item | None:
        """The item under the cursor, where it can be changed; else it is said why not."""
        row = None if self._shows_request else self.chosen
        if row is not None and row.age is None:
            self.notice.say(labels.FIXED)
            return None
        return row.item if row else None

    def action_undo(self) -> None:
        """Take back the last change that was made on this screen."""
        if self._undo:
            self.change(self._undo.pop(), undo=True)
        else:
            self.notice.say("Nothing was changed here that could be undone.")

    @work(exclusive=True, group="bulk")
    async def action_many(self) -> None:
        """Mask many results at once, with the effect shown first."""
        records = list(self._agent.session.records)
        stands, weigh = self._agent.view().stands, self._agent.ledger.would
        found = masks.results(records, stands=stands, weigh=weigh)
        stale = await asyncio.to_thread(masks.outdated, found, change_checker(self._root))
        menu = BulkMenu(found, stale, self._agent.window)
        plan = await self.app.push_screen_wait(menu)  # pyright: ignore[reportUnknownMemberType]
        if plan is not None and plan.targets:
            self.change(Change(plan.overlays()))

    @work(group="change")
    async def change(self, change: Change, *, undo: bool = False) -> None:
        """Change how records stand, and say what that came to."""
        back, before = undoing(change, self._agent.session.records), self._agent.ledger.tokens
        try:
            for event in await self._agent.overlay(change.overlays) if change.overlays else ():
                self._tell(event)
            for event in await self._agent.pin(change.pins) if change.pins else ():
                self._tell(event)
        except HoldfastError as error:
            self.notice.say(error.message, "error", hint=error.hint)
            return
        if not undo:
            self._undo.append(back)
        self._load()
        text = told(change, before - self._agent.ledger.tokens, self._agent.window)
        if undo:
            self.notice.say(f"Undone: {text}", "success")
        else:
            self.notice.say(text, "success", hint="u undoes it.")
