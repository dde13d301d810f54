"""/usage: where the tokens and the money of a session went, in bars, one grouping at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import ClassVar, Final, Protocol

from rich.cells import cell_len
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from tui.app.reports.usage import GROUPED
from tui.app.reports.usage_table import (
    IN_ORDER,
    NAMES,
    Columns,
    Look,
    Piece,
    UsageTable,
    by_cost,
    dearest_words,
    legend,
    longest,
    row_line,
    row_words,
    table_head,
    total_line,
)
from tui.ui.screens.table_screen import TableDialog, cut_rows, tab_names
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
_AROUND: Final = 11
_AROUND_TINY: Final = 2
"""Rows of the box besides the list, and those on the smallest screens."""
_SAID: Final = 6
_SAID_SHORT: Final = 2
"""Rows of what is said of a row and of the session, and those on short screens."""
_BUSY: Final = "Adding up what each request was made of…"
_FOLLOW_S: Final = 1.0
"""Seconds between looks at what is new."""
_REST: Final = 10
"""Looks that are left out for each second that the last one took."""


class UsageSource(Protocol):
    """The cost of a session, kept up to date."""

    @property
    def version(self) -> object:
        """Another value as soon as there is something new to tell."""
        ...

    def read(self) -> Iterator[tuple[dict[str, UsageTable], Sequence[str]]]:
        """Yield the rows of each grouping, and what else there is to say: what is known meanwhile,
        and in the end all. Each step blocks."""
        ...

    def summary(self) -> Sequence[str]:
        """The session's cost in words."""
        ...


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
        height: auto; max-height: 7; padding: 0 1; color: $text-muted; border-top: solid $rule;
    }
    UsageScreen.-short #about { max-height: 3; }
    UsageScreen.-tiny #about, UsageScreen.-tiny #head { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(USAGE_KEYS),
        Binding("escape,q,ctrl+c", "dismiss(None)", "back", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#rows"

    def __init__(self, usage: UsageSource, by: str = "prompt") -> None:
        """`by` is the grouping to begin with."""
        super().__init__(classes="-table")
        self._usage, self._by = usage, by
        self._tables: dict[str, UsageTable] = {}
        self._notes: Sequence[str] = ()
        self._shown = UsageTable(by, ())
        self._total = self._shown.total
        self._columns_of: dict[int, Columns] = {}
        self._most = 0.0
        self._dearest_first = self._reading = False
        self._version: object = None
        self._rest = 0

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), "usage", ("← →", "grouping"), ("s", "sort"), ("esc", "close")):
            yield Static(id="tabs")
            yield Static(id="head", markup=False)
            yield RowList(id="rows")
            yield Static(id="total", markup=False)
            yield Static(_BUSY, id="about", markup=False)

    def on_mount(self) -> None:
        self._show()
        self._fill()
        self.set_interval(_FOLLOW_S, self.follow)

    def on_resize(self) -> None:
        self._show()

    def follow(self) -> None:
        """Show what was spent since."""
        self._rest -= 1
        if not self._reading and self._rest < 0 and self._usage.version != self._version:
            self._fill()

    @work(exclusive=True)
    async def _fill(self) -> None:
        """Show the rows as soon as they are there. The cursor stays on its row, or at the end."""
        self._reading, self._version = True, self._usage.version
        begun, known = perf_counter(), self._usage.read()
        try:
            while (found := await asyncio.to_thread(next, known, None)) is not None:
                self._tables, self._notes = found
                self._show_new()
        finally:
            self._reading = False
        self._rest = int((perf_counter() - begun) * _REST)

    def _show_new(self) -> None:
        shown, cursor = self._shown.rows, self.rows.cursor
        at_end = self._by_time and cursor >= len(shown) - 1
        self._show(cursor=None if not shown or at_end else self._place_of(shown[cursor].key))

    def _place_of(self, key: str) -> int:
        keys = [row.key for row in self.table.rows]
        return keys.index(key) if key in keys else 0

    @property
    def table(self) -> UsageTable:
        table = self._tables.get(self._by) or UsageTable(self._by, ())
        return by_cost(table) if self._dearest_first else table

    @property
    def _by_time(self) -> bool:
        return self._by in IN_ORDER and not self._dearest_first

    def action_group(self, step: int) -> None:
        """Group by the next thing, or by the one before."""
        at = GROUPED.index(self._by) + step
        self._by = GROUPED[at % len(GROUPED)]
        self._show(cursor=None)

    def action_sort(self) -> None:
        """Show the dearest prompts first, or all in their order."""
        self._dearest_first = not self._dearest_first
        self._show(cursor=None)

    def _show(self, cursor: int | None = 0) -> None:
        table = self._shown = self.table
        self._total, self._columns_of = table.total, {}
        if cursor is None:  # of what comes in time the last one, else the dearest
            cursor = len(table.rows) - 1 if self._by_time else 0
        elif not cursor:
            cursor = self.rows.cursor
        self._most = longest(table)
        around = _AROUND_TINY if self.has_class("-tiny") else _AROUND
        self.rows.styles.height = max(1, min(len(table.rows), self.free_rows(around)))
        self.put("tabs", self._tabs())
        columns = self._columns(self.rows.row_width)
        self.put("head", Content(table_head(table, columns, cell_len)))
        self.put(
            "total", Content("".join(text for _, text in total_line(table, columns, cell_len)))
        )
        self.rows.show(len(table.rows), self._parts, cursor=cursor)
        if table.rows:
            self.row_moved(self.rows.cursor)
        elif self._tables:
            self.put("about", "\n".join(self._usage.summary()))

    def _tabs(self) -> Content:
        """The groupings; where there is no room for all, the one that is shown."""
        names = [NAMES[by] for by in GROUPED]
        whole = tab_names(names, NAMES[self._by])
        if whole.cell_length <= self.rows.row_width:
            return whole
        place = f"  {GROUPED.index(self._by) + 1} of {len(GROUPED)}"
        return Content.assemble(
            ("‹ ", "$text-muted"),
            (NAMES[self._by], "bold $text-primary"),
            (" ›", "$text-muted"),
            (place, "$text-muted"),
        )

    def _columns(self, width: int) -> Columns:
        found = self._columns_of.get(width)
        if found is None:
            found = self._columns_of[width] = Columns.of(self._shown, max(20, width), cell_len)
        return found

    def _parts(self, index: int, width: int) -> Sequence[Part]:
        table = self._shown
        pieces = row_line(
            table.rows[index], self._total, self._most, self._columns(width), cell_len
        )
        return [_part(piece) for piece in pieces]

    def row_moved(self, index: int) -> None:
        table = self._shown
        if index >= len(table.rows):
            return
        said = [row_words(table.rows[index], self._total)]
        width = self.rows.row_width
        if self._by_time and (dearest := dearest_words(table, width, cell_len)):
            said.append(dearest)
        said += [*self._notes, *self._usage.summary()]
        colours = [(text, f"${_VARIABLES[look]}") for look, text in legend()]
        lines, free = [Content.assemble(*colours)], (_SAID_SHORT if self.is_short else _SAID) - 1
        for text in said:
            if free > 0:
                lines.append(line := cut_rows(Content(text), max(20, width), free))
                free -= len(line.wrap(max(20, width)))
        self.put("about", Content("\n").join(lines))


_VARIABLES: Final[dict[Look, str]] = {
    look: "foreground" if name == "text" else f"text-{name}" for look, name in _LOOKS.items()
}


def _part(piece: Piece) -> Part:
    look, text = piece
    return text, _LOOKS[look]
