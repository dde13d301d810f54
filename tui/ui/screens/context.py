"""F2: the next request, item by item; mask, pin, undo."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from msgspec import structs
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Input, Static

from tui.agent import answer_reports
from tui.agent.request.pruning import Waiting
from tui.context import masks, request_assembly
from tui.context.file_changes import change_checker
from tui.context.masks import record_of
from tui.context.token_ledger import Item, Kind
from tui.core.errors import HoldfastError
from tui.core.fact_words import break_price
from tui.core.facts import Fact
from tui.core.formatting import plural
from tui.provider.base import Request
from tui.session.records import Record
from tui.ui.screens import context_changes, context_rows
from tui.ui.screens.context_changes import BulkMenu, ContextChange
from tui.ui.screens.context_item import ContextItemScreen, file_of, texts_in
from tui.ui.screens.context_rows import LedgerRow, Order
from tui.ui.screens.table_screen import WIDE, TableScreen, tab_names
from tui.ui.widgets.file_viewer.line_file import LineFile
from tui.ui.widgets.file_viewer.pane import FilePane
from tui.ui.widgets.keys import CONTEXT_KEYS, bindings
from tui.ui.widgets.panes import PaneRule
from tui.ui.widgets.row_list import RowList

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.ui.screens.timeline_moment import MomentOpener

LONG = 300
"""With more records, a price is worked out only for a row on which the cursor rests."""
REST_S = 0.15

SMALL = 60
"""With fewer cells, a price takes a third row."""

FOLLOW_S = 1.0
"""Seconds between updates of the table while a turn runs behind it."""


class ContextScreen(TableScreen[None]):
    """The next request as a table of its items.

    `tell` gets the events of changes made here; `root` is the workspace; `opener` shows the
    context at an earlier request.
    """

    CSS_PATH = "context.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(CONTEXT_KEYS),
        Binding("escape,f2", "close", "back", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#rows"

    def __init__(
        self,
        agent: Agent,
        tell: Callable[[Fact], None],
        root: Path = Path(),
        opener: MomentOpener | None = None,
    ) -> None:
        super().__init__()
        self._agent, self._tell, self._root, self._opener = agent, tell, root, opener
        self._records_seen = -1
        self._undo: list[ContextChange] = []
        self._items: Sequence[LedgerRow] = ()
        self._waiting = Waiting()
        self._order: Order = "tokens"
        self._unfolded: frozenset[Kind] = frozenset()
        self._changing = asyncio.Lock()
        self._prices: dict[str, str] = {}
        self._outdated: Collection[str] = frozenset()
        self._comparing = False
        self._resting: Timer | None = None
        self.shown: Sequence[LedgerRow] = ()
        """The rows as they are sorted and filtered now."""

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield Static(id="totals", markup=False)
        yield self.filter_row("/", "kind, text, state or pinned")
        yield PaneRule("items", id="items-rule")
        with Vertical(id="items"):
            yield Static(id="columns", markup=False)
            yield RowList(id="rows")
            yield Static(id="empty", markup=False)
            yield Static(id="price", markup=False)
        yield FilePane(id="request")
        yield from self.foot()

    def on_mount(self) -> None:
        self._agent.context.view()  # the ledger takes the state of each record from it
        self._load()
        self.rows.move_to(context_rows.largest_result(self.shown))
        self.set_interval(FOLLOW_S, self._follow)
        self._compare_files()

    def on_resize(self) -> None:
        self._draw()

    @property
    def chosen(self) -> LedgerRow | None:
        """The row under the cursor."""
        return self.shown[self.rows.cursor] if self.shown else None

    @property
    def _shows_request(self) -> bool:
        return self.has_class("-request")

    # What is shown

    def _follow(self) -> None:
        if len(self._agent.session.records) != self._records_seen and not self._changing.locked():
            self._load()
        if not self._comparing:
            self._compare_files()

    @work
    async def _compare_files(self) -> None:
        """Mark the rows that show an outdated state of files."""
        self._comparing = True
        try:
            outdated = await self._agent.context.outdated()
        finally:
            self._comparing = False
        if outdated != self._outdated:
            self._outdated = outdated
            async with self._changing:
                self._load()

    def _load(self, *, same_row: bool = False) -> None:
        records = self._agent.session.records
        self._records_seen = len(records)
        self._prices = {}  # one that is being worked out is of before
        turns = masks.ages(records)
        items = self._agent.context.ledger.items(images=True)
        self._waiting = self._agent.context.waiting()
        old = self._waiting.records
        self._items = [
            LedgerRow(one, turns.get(record_of(one.id)[0]), one.id in old, one.id in self._outdated)
            for one in items
        ]
        self._draw(same_row=same_row)

    def _draw(self, *, same_row: bool = False) -> None:
        """Draw the current items, with the cursor on the same item or, with `same_row`, in the same
        row."""
        count, window = self._agent.context.ledger.tokens, self._agent.models.window
        items, width = [row.item for row in self._items], self.size.width - 2
        before, words = self.chosen, self.filter_field.value
        shown = context_rows.arranged(self._items, words, self._order, self._unfolded)
        # The item under the cursor may have moved by sorting, filtering or folding.
        self.shown = shown
        item = before.item.id if before and not same_row else None
        same = (at for at, row in enumerate(shown) if row.item.id == item)
        self.rows.show(
            len(shown),
            lambda at, width: context_rows.row_parts(shown[at], width, window),
            cursor=next(same, self.rows.cursor),
        )
        begun = words or any(row.age is not None for row in self._items)
        self.show_empty("" if shown and begun else context_rows.empty_text("" if shown else words))
        self.put("columns", Content(context_rows.heading(max(20, width - 1))))
        outdated_count = sum(row.outdated for row in self._items)
        title = context_rows.context_title(
            items, count, window, self._waiting, outdated=outdated_count, width=width
        )
        self.put("title", title)
        self.put("totals", context_rows.totals(items, self._agent.context.measure(), width))
        self.show_keys(context_rows.REQUEST_KEYS if self._shows_request else context_rows.KEYS)
        self._explain()
        rule = self.query_one("#items-rule", PaneRule)
        rule.title = tab_names(("items", "request"), "request" if self._shows_request else "items")
        order = "" if self._shows_request else context_rows.ORDERS[self._order][0]
        rule.right = Content.styled(order, "$text-muted")

    def action_sort(self, order: Order) -> None:
        """Sort in an order; the same order again restores that of the request."""
        self._order = "request" if self._order == order else order
        self._draw()
        by_size = self._order == "tokens"
        self.rows.move_to(context_rows.largest_result(self.shown) if by_size else 0)

    def action_fold(self, fold: bool) -> None:
        """Fold the system items or the tools into one row with their sum, or unfold them."""
        row = None if self._shows_request else self.chosen
        if row is None or not (row.parts or (fold and row.inner)):
            return
        kind: Kind = row.item.kind
        others = self._unfolded - {kind}
        self._unfolded = others if fold else frozenset[Kind]({*others, kind})
        self._draw()
        sums = (at for at, one in enumerate(self.shown) if one.parts and one.item.kind == kind)
        self.rows.move_to(next(sums, 0))

    def action_filter(self) -> None:
        if not self._shows_request:
            self.filtering = True
            self.filter_field.focus()

    @on(Input.Changed, "#filter")
    def _filter_changed(self) -> None:
        self._draw()

    @on(Input.Submitted, "#filter")
    def _filter_set(self) -> None:
        self.rows.focus()

    async def action_close(self) -> None:
        """Esc: close the filter, then the request, then the screen."""
        if self.filter_field.value or self.filter_field.has_focus:
            self.filter_field.value = ""
            self.filtering = False
            self.rows.focus()
        elif self._shows_request:
            await self.action_other_tab()
        else:
            self.dismiss(None)

    def row_moved(self, index: int) -> None:  # noqa: ARG002 - the cursor is there
        self._explain()

    def _explain(self) -> None:
        """Show what m would save for the row under the cursor. In a long session that takes a
        while, so it is worked out once the cursor rests."""
        row = self.chosen
        known = self._prices.get(row.item.id) if row and row.age is not None else ""
        self.put("price", Content(self._price_line(known or "")))
        width = self.size.width
        self.query_one("#price").styles.height = 1 if width >= WIDE else 2 if width >= SMALL else 3
        if self._resting is not None:
            self._resting.stop()
        if known is None and self._records_seen > LONG:
            self._resting = self.set_timer(REST_S, self._work_out)
        elif known is None:
            self.call_after_refresh(self._work_out)

    def _work_out(self) -> None:
        row = self.chosen
        if row is not None and row.age is not None and row.item.id not in self._prices:
            self.run_worker(partial(self._show_price_of, row.item), group="price", exclusive=True)

    async def _show_price_of(self, item: Item) -> None:
        await self._price_of(item)
        self._explain()

    async def _price_of(self, item: Item) -> str:
        """Work out the price of m for an item once, until something changes."""
        prices = self._prices
        if item.id not in prices:
            prices[item.id] = await context_changes.mask_price(self._agent, item)
        return prices[item.id]

    def _price_line(self, price: str) -> str:
        if (row := self.chosen) is None or not price or self.size.width < SMALL:
            return price
        if row.item.state == "masked" or record_of(row.item.id)[0] in self._agent.context.pending:
            return price
        return f"{price} · w waits for a cache restart"

    # Looking closer

    async def action_other_tab(self) -> None:
        """Switch between the items and the request."""
        self.toggle_class("-request")
        self.notice.clear()
        self._draw()
        if not self._shows_request:
            self.rows.focus()
            return
        pane = self.query_one("#request", FilePane)
        sent = self._agent.context.next_request(prompt_follows=True)
        records = tuple(self._agent.session.records)
        text = await asyncio.to_thread(_printed, sent, records)
        pane.show(LineFile(text))
        pane.view.focus()

    def action_past(self) -> None:
        """Go back to what the model saw at earlier requests."""
        if self._opener is not None:
            self._opener.past(self._agent)

    def row_chosen(self, index: int) -> None:
        item = self.shown[index].item
        if self.shown[index].parts:
            self.action_fold(self.shown[index].unfolded)
            return
        fixed = self.shown[index].age is None
        self.run_worker(partial(self._open_item, item, fixed=fixed), group="item", exclusive=True)

    async def _open_item(self, item: Item, *, fixed: bool) -> None:
        agent, price = self._agent, "" if fixed else await self._price_of(item)
        texts, file = texts_in(agent, item), file_of(agent.session.records, item)
        results, window = agent.full_outputs, agent.models.window
        screen = ContextItemScreen(item, texts, results, window, price=price, file=file)
        self.app.push_screen(screen, self._after_item)  # pyright: ignore[reportUnknownMemberType]

    async def _after_item(self, action: str | None) -> None:
        if action == "mask":
            await self.action_mask()
        elif action == "pin":
            await self.action_pin()

    def action_copy(self) -> None:
        """Copy the item as the model sees it, or the exact request."""
        if self._shows_request:
            sent = request_assembly.to_json(self._agent.context.next_request(prompt_follows=True))
            text = json.dumps(sent, ensure_ascii=True, indent=2)
        elif row := self.chosen:
            items = [part.item for part in row.parts] or [row.item]
            text = "\n\n".join(texts_in(self._agent, item).sent for item in items)
        else:
            return
        self.app.copy_to_clipboard(text)  # pyright: ignore[reportUnknownMemberType]
        self.notice.say(f"Copied {plural(len(text), 'character')}.", "success")

    # Changing: a key waits for the previous one's effect, so that it finds the current rows

    async def action_mask(self) -> None:
        """Mask the item under the cursor, or unmask it."""
        if item := self._changeable():
            await self.change(context_changes.masking(item, self._agent.session.records))

    async def action_mask_later(self) -> None:
        """Mask the item under the cursor with the next break."""
        if (item := self._changeable()) and item.state != "masked":
            change = context_changes.masking(item, self._agent.session.records)
            later = [structs.replace(overlay, wait=True) for overlay in change.overlays]
            await self.change(ContextChange(later))

    async def action_pin(self) -> None:
        """Pin or unpin the item under the cursor."""
        if item := self._changeable():
            await self.change(context_changes.pinning(item))

    async def action_difference(self) -> None:
        """Show the model with the next request how the item's file has changed."""
        if not (item := self._changeable()):
            return
        try:
            shown = await self._agent.context.show_difference(record_of(item.id)[0])
        except HoldfastError as error:
            self.refuse(error)
        else:
            self.notice.say(f"The next request shows what changed in {shown}.", "success")

    def _changeable(self) -> Item | None:
        """Return the item under the cursor if it can be changed; otherwise say why not."""
        row = None if self._shows_request else self.chosen
        if row is not None and row.age is None:
            self.notice.say(context_rows.FIXED)
            return None
        return row.item if row else None

    async def action_undo(self) -> None:
        """Undo the last change made on this screen."""
        if self._undo:
            await self.change(self._undo.pop(), undo=True)
        else:
            self.notice.say("Nothing to undo here.")

    @work(exclusive=True, group="bulk")
    async def action_many(self) -> None:
        """Mask many results at once, after showing the effect."""
        records = list(self._agent.session.records)
        stands, weigh = self._agent.context.view().stands, self._agent.context.ledger.would
        results = masks.results(records, stands=stands, weigh=weigh)
        stale = asyncio.to_thread(masks.outdated, results, change_checker(self._root))
        menu = BulkMenu(
            results, stale, self._agent.models.window, self._agent.context.price_of_changes
        )
        plan = await self.app.push_screen_wait(menu)  # pyright: ignore[reportUnknownMemberType]
        if plan is not None and plan.targets:
            await self.change(ContextChange(plan.overlays()))

    async def change(self, change: ContextChange, *, undo: bool = False) -> None:
        """Apply a change to records, and say what it saves or costs.

        If an item moves because of it, the cursor keeps its row: the next one comes under it.
        """
        async with self._changing:
            await self._change(change, undo=undo)

    async def _change(self, change: ContextChange, *, undo: bool) -> None:
        before = self._agent.context.ledger.tokens
        back = context_changes.undoing(change, self._agent.session.records)
        try:
            for event in (
                await self._agent.context.overlay(change.overlays) if change.overlays else ()
            ):
                self._tell(event)
            for event in await self._agent.context.pin(change.pins) if change.pins else ():
                self._tell(event)
        except HoldfastError as error:
            self.refuse(error)
            return
        if not undo:
            self._undo.append(back)
        self._load(same_row=self._order in context_rows.BY_SIZE)
        saved = before - self._agent.context.ledger.tokens
        text = context_changes.change_text(change, saved, self._agent.models.window)
        if undo:
            self.notice.say(f"Undone: {text}", "success")
            return
        now = {overlay.target for overlay in change.overlays if not overlay.wait}
        cost = await self._agent.context.next_break() if now else None
        words = break_price(cost) if cost else ""
        price = f" Costs {words}." if words else ""
        hint = "u undoes it before it is sent." if cost else "u undoes it."
        self.notice.say(text + price, "success", hint=hint)


def _printed(sent: Request, records: Sequence[Record]) -> str:
    """Return a request as text, after what became of those before it."""
    past = "".join(f"// {line}\n" for line in answer_reports.past(records))
    return past + request_assembly.printed(sent)
