"""Panels: one list of things, and what can be done with each. /agents, /hooks, F6, /mcp and /skills
are panels, so all look and work alike.

A subclass gives rows as data (`app.reports.Row`); the panel lays them out in columns, explains the
one under the cursor, filters them, and shows the keys for what that one allows. The box is as high
as what it holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias, TypeVar, cast

from rich.cells import cell_len
from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Static

from tui.app.reports import Row
from tui.core.formatting import plural
from tui.core.text_cleaning import clean
from tui.ui.screens.external_programs import open_file
from tui.ui.screens.read_screen import show_file
from tui.ui.screens.table_screen import TableDialog, cell, cut_rows, whole_words
from tui.ui.widgets.dialog import Key, TextField
from tui.ui.widgets.row_list import Part, RowList

ResultT = TypeVar("ResultT")
Kind: TypeAlias = tuple[int, bool, bool]

FOLLOW_S: Final = 0.5
"""Seconds between looks at what changes."""
_GAP: Final = 2
_LEAST: Final = 16
"""Cells that the last column must have; else it is not shown."""
_MANY: Final = 8
"""With more rows, the foot names the filter."""
_ABOUT_MAX, _ABOUT_TINY = 8, 3
"""Most rows of the explanation, on a small screen too."""


class Panel(TableDialog[ResultT | None]):
    """A list that explains the row under the cursor.

    `NAME` is its title, `NONE` says what it is and how to get one. `KEYS` are the actions of rows,
    each with its key, in the order of the foot.
    """

    DEFAULT_CSS = """
    Panel #box, Panel.-short #box { padding: 0 1; }
    Panel #words-row { height: 1; padding: 0 1; background: $panel; display: none; }
    Panel.-filter #words-row { display: block; }
    Panel #slash { width: 2; color: $text-primary; text-style: bold; }
    Panel #none { height: auto; padding: 0 1; color: $text-muted; display: none; }
    Panel.-none #none { display: block; }
    Panel.-none #box { width: 76; }
    Panel.-none #rows, Panel.-none #about { display: none; }
    Panel #about {
        height: auto; padding: 0 1; color: $text-muted; border-top: solid $rule;
    }
    Panel.-plain #about { display: none; }
    """
    NAME: ClassVar[str] = ""
    NONE: ClassVar[str] = ""
    KEYS: ClassVar[Mapping[str, str]] = {}
    LEAVE: ClassVar[str] = "close"
    """The effect of Esc: it closes, or it goes back."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter", show=False),
        Binding("escape,q,ctrl+c", "close", "close", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#rows"

    def __init__(
        self, rows: Sequence[Row] = (), *, title: str = "", classes: str = "-table"
    ) -> None:
        super().__init__(classes=classes)
        self._title, self._given = title or self.NAME, rows
        self._all: Sequence[Row] = ()
        self._shown: Sequence[Row] = ()
        self._widths: tuple[int, Mapping[Kind, Sequence[int]]] = 0, {}
        self._most = 0
        self._tallest = 0

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), self._title):
            with Horizontal(id="words-row"):
                yield Static("/", id="slash", markup=False)
                yield TextField(placeholder="Filter", id="words")
            yield RowList(id="rows")
            yield Static(self.NONE, id="none", markup=False)
            yield Static("", id="about", markup=False)

    # What a subclass may provide

    def rows_now(self) -> Sequence[Row]:
        """Return the rows as they are now: those that it was given, if they never change."""
        return self._given

    def about(self, row: Row) -> Sequence[str]:
        """Return all there is to say about a row, a line each."""
        return row.about

    def keys(self, row: Row) -> Iterable[Key]:
        """Return the keys that work on a row, with what they do."""
        return [(key, action) for action, key in self.KEYS.items() if action in row.actions]

    # What is shown

    @property
    def row(self) -> Row | None:
        """The row under the cursor."""
        return self._shown[self.rows.cursor] if self._shown else None

    def on_mount(self) -> None:
        self.draw()
        self.set_interval(FOLLOW_S, self.follow)

    def on_resize(self) -> None:
        self._tallest = 0
        self._fit()
        self.explain()

    def follow(self) -> object:
        """Draw the rows again if anything in them has changed."""
        if (rows := self.rows_now()) != self._all:
            self.draw(rows)

    def draw(self, rows: Sequence[Row] | None = None) -> None:
        """Draw the rows, with the cursor on the one that it was on."""
        before, at = self.row, self.rows.cursor
        self._all = self.rows_now() if rows is None else rows
        words = self.query_one("#words", Input).value.casefold().split()
        self._shown = [row for row in self._all if _has(row, words)]
        places = {row.key: place for place, row in enumerate(self._shown)}
        self._widths = 0, {}
        self._most = max(self._most if words else 0, len(self._shown))
        self.set_class(not self._all, "-none")
        cursor = places.get(before.key, at) if before is not None else 0
        self.rows.show(len(self._shown), self._draw_row, cursor=cursor)
        self._fit()
        self.explain()

    def _fit(self) -> None:
        """Make the list as high as its rows, if there is room."""
        taken = (1 if self.has_class("-filter") else 0) + 1 + max(self._tallest, 1)
        self.rows.styles.height = max(1, min(self._most, self.free_rows(taken)))

    def _draw_row(self, index: int, width: int) -> Sequence[Part]:
        row = self._shown[index]
        if self._widths[0] != width:
            self._widths = width, columns_of(self._shown, width)
        columns = self._widths[1][_kind(row)]
        lead = f"{'  ' * row.depth}{row.mark or ' '} "
        name = cell(whole_words(row.name, columns[0]), columns[0])
        look = "muted" if row.dim else "text"
        parts: list[Part] = [(lead, row.look), (name, look)]
        for value, cells in zip(row.values, columns[1:], strict=False):
            parts.append((" " * _GAP + cell(whole_words(value, cells), cells), "muted"))
        return parts

    def explain(self) -> None:
        """Explain the row under the cursor, and show the keys."""
        row = self.row
        lines = [*self.about(row)] if row is not None else []
        if row is None and self._all:
            lines = ["Nothing matches."]
        self.set_class(not lines, "-plain")
        about, most = self.query_one("#about"), _ABOUT_TINY if self._low else _ABOUT_MAX
        width = max(1, (self.query_one("#box").size.width or self.size.width) - 2)
        self.put("about", cut_rows(Content(clean("\n".join(lines))), width, most))
        tall = min(most, sum(max(1, -(-cell_len(line) // width)) for line in lines))
        if tall > self._tallest:
            self._tallest = tall
            self._fit()
        about.styles.max_height = most + 1
        about.styles.min_height = self._tallest + 1
        keys = [*self.keys(row)] if row is not None else []
        many = [("/", "filter")] if len(self._all) > _MANY else []
        self.show_keys(*keys, *many, ("esc", self.LEAVE))

    @property
    def _low(self) -> bool:
        return self.has_class("-tiny") or self.size.height < 16

    def row_moved(self, index: int) -> None:  # noqa: ARG002
        self.explain()

    def copied(self, row: Row) -> str:
        """Return what copying a row copies."""
        return row.about[0]

    def action_copy(self) -> None:
        """Copy what the row under the cursor is about."""
        if (row := self.row) is not None and "copy" in row.actions:
            copy(cast("App[Any]", self.app), self.copied(row))

    def row_chosen(self, index: int) -> None:  # noqa: ARG002 - the cursor is there
        if (row := self.row) is not None and row.file is not None:
            show_file(cast("App[Any]", self.app), row.file)

    @work(group="edit", exclusive=True)
    async def action_edit(self) -> None:
        """Open the file of the row under the cursor in the person's editor."""
        if (row := self.row) is not None and row.file is not None:
            app = cast("App[Any]", self.app)
            if problem := await open_file(app, row.file, "editor"):
                app.notify(problem, severity="error", markup=False)

    # The filter

    def action_filter(self) -> None:
        """Ask for words that rows must have."""
        if self._all:
            self.add_class("-filter")
            self.query_one("#words", Input).focus()
            self._fit()

    @on(Input.Changed, "#words")
    def _filtered(self, event: Input.Changed) -> None:
        event.stop()
        self.draw(self._all)

    @on(Input.Submitted, "#words")
    def _filter_set(self, event: Input.Submitted) -> None:
        event.stop()
        self.rows.focus()

    def action_close(self) -> None:
        """Esc: take the filter away, then close."""
        words = self.query_one("#words", Input)
        if self.has_class("-filter"):
            words.value = ""
            self.remove_class("-filter")
            self.rows.focus()
            self._fit()
        else:
            self.dismiss(None)


def columns_of(rows: Sequence[Row], width: int) -> Mapping[Kind, Sequence[int]]:
    """Return the cells of the columns, for each kind of row."""
    kinds: dict[Kind, list[Row]] = {}
    for row in rows:
        kinds.setdefault(_kind(row), []).append(row)
    return {kind: _widths(some, width - 2 * kind[0] - 2) for kind, some in kinds.items()}


def _kind(row: Row) -> Kind:
    """Rows of one depth, with a mark or without, and with values or without, share columns."""
    return row.depth, bool(row.mark), bool(row.values)


def _widths(rows: Sequence[Row], width: int) -> Sequence[int]:
    """Return the cells of the columns: the name, then the values that there is room for. A long
    last column gives way first, then whole columns, then a long name."""
    count = max((len(row.values) for row in rows), default=0)
    name = max((cell_len(row.name) for row in rows), default=0)
    values = [
        max(cell_len(row.values[at]) for row in rows if at < len(row.values)) for at in range(count)
    ]
    while values:
        fixed = sum(values[:-1]) + _GAP * len(values)
        least = min(values[-1], _LEAST)
        if width - fixed - name >= least:
            return [name, *values[:-1], min(values[-1], width - fixed - name)]
        shorter = width - fixed - least
        if len(values) == 1 and shorter >= min(name, max(12, width // 3)):
            least = min(values[-1], width // 3)
            return [width - fixed - least, least]
        values.pop()
    return [max(1, min(name, width))]


def _has(row: Row, words: Sequence[str]) -> bool:
    text = "\n".join((row.name, *row.values, *row.about)).casefold() if words else ""
    return all(word in text for word in words)


def copy(app: App[Any], text: str) -> None:
    """Copy a text and say so."""
    app.copy_to_clipboard(text)
    app.notify(f"Copied {plural(len(text), 'character')}.", markup=False)
