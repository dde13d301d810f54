"""/usage: where the tokens and the money of a session went, in bars, one grouping at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import ClassVar, Final

from rich.cells import cell_len
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from tui.app.reports.usage import GROUPED, usage_tables
from tui.app.reports.usage_table import (
    NAMES,
    Columns,
    Look,
    Piece,
    UsageTable,
    legend,
    longest,
    row_line,
    row_words,
    table_head,
    total_line,
)
from tui.context.usage.attribution import Attribution
from tui.ui.screens.table_screen import TableDialog, tab_names
from tui.ui.widgets.keys import USAGE_KEYS, bindings
from tui.ui.widgets.row_list import Part, RowList

_LOOKS: Final[dict[Look, str]] = {
    "": "text",
    "head": "muted",
    "muted": "muted",
    "cached": "success",
    "new": "warning",
    "output": "primary",
    "warning": "warning",
}
_AROUND: Final = 10
"""Rows of the box besides the list."""
_BUSY: Final = "Adding up what each request was made of…"


class UsageScreen(TableDialog[None]):
    """A row for each prompt, tool, file and so on, with a bar as long as its cost."""

    DEFAULT_CSS = """
    UsageScreen #box, UsageScreen.-short #box { padding: 0 1; }
    UsageScreen #tabs, UsageScreen #head, UsageScreen #total {
        height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis;
    }
    UsageScreen #head { color: $text-muted; margin-top: 1; }
    UsageScreen #total { text-style: bold; }
    UsageScreen #rows { padding: 0 1; }
    UsageScreen #about {
        height: auto; max-height: 6; padding: 0 1; color: $text-muted; border-top: solid $rule;
    }
    UsageScreen.-short #about { max-height: 3; }
    UsageScreen.-tiny #about, UsageScreen.-tiny #head { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(USAGE_KEYS),
        Binding("escape,q,ctrl+c", "dismiss(None)", "back", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#rows"

    def __init__(self, found: Awaitable[Attribution], said: str, by: str = "prompt") -> None:
        """`found` comes when the bills are shared out, which takes a while for a long session;
        `said` is the session's cost in words."""
        super().__init__(classes="-table")
        self._found, self._said, self._by = found, said, by
        self._tables: dict[str, UsageTable] = {}
        self._notes: Sequence[str] = ()
        self._most = 0.0

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), "usage", ("← →", "grouping"), ("esc", "close")):
            yield Static(id="tabs")
            yield Static(id="head", markup=False)
            yield RowList(id="rows")
            yield Static(id="total", markup=False)
            yield Static(_BUSY, id="about", markup=False)

    def on_mount(self) -> None:
        self._show()
        self._fill()

    def on_resize(self) -> None:
        self._show()

    @work(exclusive=True)
    async def _fill(self) -> None:
        """Show the rows as soon as they are there."""
        self._tables, self._notes = usage_tables(await self._found)
        self._show(cursor=None)

    @property
    def table(self) -> UsageTable:
        return self._tables.get(self._by) or UsageTable(self._by, ())

    def action_group(self, step: int) -> None:
        """Group by the next thing, or by the one before."""
        at = GROUPED.index(self._by) + step
        self._by = GROUPED[at % len(GROUPED)]
        self._show(cursor=None)

    def _show(self, cursor: int | None = 0) -> None:
        table = self.table
        if cursor is None:  # of what comes in time the last one, else the dearest
            cursor = len(table.rows) - 1 if self._by in ("prompt", "brought") else 0
        else:
            cursor = self.rows.cursor
        self._most = longest(table)
        self.rows.styles.height = max(1, min(len(table.rows), self.free_rows(_AROUND)))
        self.put("tabs", self._tabs())
        columns = self._columns(self.rows.row_width)
        self.put("head", Content(table_head(table, columns, cell_len)))
        self.put(
            "total", Content("".join(text for _, text in total_line(table, columns, cell_len)))
        )
        self.rows.show(len(table.rows), self._parts, cursor=cursor)
        if table.rows:
            self.row_moved(self.rows.cursor)

    def _tabs(self) -> Content:
        """The groupings; where there is no room for all, the one that is shown."""
        names = [NAMES[by] for by in GROUPED]
        whole = tab_names(names, NAMES[self._by])
        if whole.cell_length <= self.size.width - 8:
            return whole
        place = f"  {GROUPED.index(self._by) + 1} of {len(GROUPED)}"
        return Content.assemble(
            ("‹ ", "$text-muted"),
            (NAMES[self._by], "bold $text-primary"),
            (" ›", "$text-muted"),
            (place, "$text-muted"),
        )

    def _columns(self, width: int) -> Columns:
        return Columns.of(self.table, max(20, width), cell_len)

    def _parts(self, index: int, width: int) -> Sequence[Part]:
        table = self.table
        pieces = row_line(
            table.rows[index], table.total, self._most, self._columns(width), cell_len
        )
        return [_part(piece) for piece in pieces]

    def row_moved(self, index: int) -> None:
        table = self.table
        if index >= len(table.rows):
            return
        said = [row_words(table.rows[index], table.total)]
        said += [*self._notes, self._said]
        colours = [(text, f"${_VARIABLES[look]}") for look, text in legend()]
        self.put("about", Content("\n").join([Content.assemble(*colours), *map(Content, said)]))


_VARIABLES: Final[dict[Look, str]] = {
    look: "foreground" if name == "text" else f"text-{name}" for look, name in _LOOKS.items()
}


def _part(piece: Piece) -> Part:
    look, text = piece
    return text, _LOOKS[look]
