"""The items of the next request as rows, sorted and filtered."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from tui.ui.screens.context.labels import NOTHING_SAID, nothing
from tui.ui.screens.context.rows import ORDERS, Order, Row, filtered, heading, ordered, row_parts
from tui.ui.widgets.row_list import Rows


class Listing(Vertical):
    """Shows `items` as they are asked for; what will stand here, while nothing has been said.

    `shown` are the rows as they stand now.
    """

    def __init__(self) -> None:
        super().__init__(id="items")
        self.items: Sequence[Row] = ()
        self.shown: Sequence[Row] = ()
        self.words = ""
        self._order: Order = "request"

    def compose(self) -> ComposeResult:
        yield Static(id="columns", markup=False)
        yield Rows(id="rows")
        yield Static(NOTHING_SAID, id="empty", markup=False)

    @property
    def rows(self) -> Rows:
        return self.query_one("#rows", Rows)

    @property
    def order(self) -> str:
        """In which order they stand, in words."""
        return ORDERS[self._order]

    @property
    def chosen(self) -> Row | None:
        """The row under the cursor."""
        return self.shown[self.rows.cursor] if self.shown else None

    def sort(self, order: Order) -> None:
        """In an order; the same again gives the order of the request."""
        self._order = "request" if self._order == order else order

    def show(self, window: int) -> None:
        """Show what there is now, the cursor on the item that it was on."""
        kept = self.chosen
        shown = self.shown = ordered(filtered(self.items, self.words), self._order)
        same = (at for at, row in enumerate(shown) if kept and row.item.id == kept.item.id)
        self.rows.show(
            len(shown),
            lambda at, width: row_parts(shown[at], width, window),
            cursor=next(same, self.rows.cursor),
        )
        said = any(row.age is not None for row in self.items)
        self.set_class(not shown or (not said and not self.words), "-empty")
        self.query_one("#empty", Static).update(nothing("" if shown else self.words))
        width = max(20, self.screen.size.width - 3)
        self.query_one("#columns", Static).update(Content(heading(width)))
