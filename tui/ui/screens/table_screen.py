"""Screens that list rows: a head, a filter, the rows or why there are none, the keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

from rich.cells import cell_len, set_cell_size
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.screen import Screen
from textual.visual import VisualType
from textual.widget import Widget
from textual.widgets import Static

from tui.core.errors import HoldfastError
from tui.ui.toolkit.base_screen import BaseScreen
from tui.ui.widgets.dialog import Dialog, TextField
from tui.ui.widgets.keys import Keys, in_rows
from tui.ui.widgets.notices import NoticeLine
from tui.ui.widgets.panes import PaneRule
from tui.ui.widgets.row_list import RowList

ResultT = TypeVar("ResultT")

WIDE: Final = 100
SHORT: Final = 16
"""With fewer rows, a screen shows one row of keys and leaves out what it can."""


def cell(text: str, width: int, *, keep_end: bool = False) -> str:
    """Return `text` in exactly `width` cells; if too long, it loses its end or its beginning."""
    text = text.replace("\n", " ")
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    if keep_end:
        while cell_len(text) > width - 1:
            text = text[1:]
        return set_cell_size("…" + text, width)
    return set_cell_size(set_cell_size(text, width - 1).rstrip() + "…", width)


def whole_words(text: str, width: int) -> str:
    """Return `text` in at most `width` cells, cut after a word unless that would remove more than
    half of it."""
    if cell_len(text) <= width:
        return text
    cut = set_cell_size(text, width - 1).rstrip()
    short = cut if text[len(cut) :].startswith(" ") else cut.rpartition(" ")[0]
    short = short.rstrip(" ,;:.·–—-")
    return f"{short if cell_len(short) * 2 >= width else cut}…"


def whole_facts(text: str, width: int) -> str:
    """Return `text` in at most `width` cells, cut after one of its facts unless that would remove
    more than half of it: then after a word."""
    if cell_len(text) <= width:
        return text
    cut = set_cell_size(text, width)
    end = max(cut.rfind(" · "), cut.rfind(", "))
    return f"{text[:end]}…" if end * 2 >= width else whole_words(text, width)


def cut_rows(text: Content, width: int, rows: int) -> Content:
    """Return `text` in at most so many rows, cut after a word."""
    lines = text.wrap(width)
    if len(lines) <= rows:
        return text
    last = Content(whole_words(f"{lines[rows - 1].plain.rstrip()} {lines[rows].plain}", width))
    return Content("\n").join([*lines[: rows - 1], last])


def tab_names(names: Iterable[str], chosen: str) -> Content:
    """Return the names of the tabs, the open one in color."""
    styled = ((name, "bold $text-primary" if name == chosen else "$text-muted") for name in names)
    return Content("   ").join([Content.styled(*name) for name in styled])


class RowsOwner(Widget):
    """A screen with one list of rows, to which it passes on the keys that it gets itself."""

    @property
    def rows(self) -> RowList:
        return self.query_one(RowList)

    def row_moved(self, index: int) -> None:
        """Handle a cursor that moved to another row."""

    def row_chosen(self, index: int) -> None:
        """Handle Enter, or a click on the row under the cursor."""

    @on(RowList.Moved)
    def _row_moved(self, event: RowList.Moved) -> None:
        event.stop()
        self.row_moved(event.index)

    @on(RowList.Chosen)
    def _row_chosen(self, event: RowList.Chosen) -> None:
        event.stop()
        self.row_chosen(event.index)

    def action_move(self, step: int) -> None:
        self.rows.action_move(step)

    def action_page(self, step: int) -> None:
        self.rows.action_page(step)

    def put(self, name: str, content: VisualType) -> None:
        """Show content in the text with this id."""
        self.query_one(f"#{name}", Static).update(content)


SWAPPED: Final = "#empty, #rows, #columns, #price, #preview-side, #list, #details"
"""What the class "-empty" shows or hides, by the rules below and those of the screens."""


class TableDialog(Dialog[ResultT], RowsOwner):  # pyright: ignore[reportIncompatibleMethodOverride] - as below
    """A dialog that lists rows."""


class TableScreen(BaseScreen, Screen[ResultT], RowsOwner):  # pyright: ignore[reportIncompatibleMethodOverride] - Textual's own arrange
    """A whole screen that lists rows. `compose` yields `head`, `filter_row`, its content, `foot`.

    With the class "-empty" it shows `#empty` in place of the rows and their columns; with "-short"
    it has no column headings and no line over the keys.
    """

    DEFAULT_CSS = """
    TableScreen { background: $background; color: $foreground; }
    TableScreen #title {
        height: 1; padding: 0 1; background: $panel; text-wrap: nowrap; text-overflow: ellipsis;
    }
    TableScreen #filter-row { height: 1; padding: 0 1; }
    TableScreen #caret { width: 2; color: $text-primary; text-style: bold; }
    TableScreen #columns { height: 1; padding: 0 1; color: $text-muted; }
    TableScreen #rows { padding: 0 1; }
    TableScreen #empty { height: 1fr; padding: 1 3; color: $text-muted; display: none; }
    TableScreen.-empty #empty { display: block; }
    TableScreen.-empty #rows, TableScreen.-empty #columns { display: none; }
    TableScreen #keys { height: auto; max-height: 2; padding: 0 1; }
    TableScreen.-short #empty { padding: 0 2; }
    TableScreen.-short #columns, TableScreen.-short #keys-rule { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-short"), (SHORT, "-high")]
        self.notice = NoticeLine(id="notice")

    def filter_row(
        self, caret: str, placeholder: str, value: str = "", *, select_on_focus: bool = True
    ) -> Horizontal:
        """Return the row with the filter's field."""
        field = TextField(
            value, placeholder=placeholder, id="filter", select_on_focus=select_on_focus
        )
        return Horizontal(Static(caret, id="caret", markup=False), field, id="filter-row")

    def foot(self) -> ComposeResult:
        """Yield the notice line and the keys."""
        yield self.notice
        yield PaneRule(id="keys-rule")
        yield Static(id="keys", markup=False)

    @property
    def filter_field(self) -> TextField:
        return self.query_one("#filter", TextField)

    @property
    def filtering(self) -> bool:
        """True while the row of the filter is shown. Set by itself: a class of the screen would
        give styles to every widget, 9 ms for a key."""
        return self.query_one("#filter-row").display

    @filtering.setter
    def filtering(self, shown: bool) -> None:
        self.query_one("#filter-row").display = shown

    def show_keys(self, keys: Keys) -> None:
        """Show these keys at the foot."""
        rows = 1 if self.size.height < SHORT else 2
        self.put("keys", in_rows(keys, self.size.width - 2, rows=rows))

    def refuse(self, error: HoldfastError) -> None:
        """Say why something could not be done."""
        self.notice.say(error.message, "error", hint=error.hint)

    def show_empty(self, text: str) -> None:
        """Show a text in place of the rows; "" shows the rows."""
        if self.has_class("-empty") != bool(text):
            # All widgets below get styles otherwise, of which most take longest: 9 ms in all.
            self.set_class(bool(text), "-empty", update=False)
            self.app.stylesheet.update_nodes(self.query(SWAPPED))  # pyright: ignore[reportUnknownMemberType] - Textual's App
        self.put("empty", Content(text))
