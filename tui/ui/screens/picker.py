"""Pickers: a row from a list, a theme, a task file to run, or the model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, TypeVar, cast

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Static

from tui.app.dialog_data import ModelRow, ProfileRow
from tui.core.dataclass import dataclass
from tui.core.errors import ConfigError
from tui.core.formatting import plural, tokens
from tui.core.paths import folders
from tui.core.text_cleaning import one_line
from tui.ui.screens.table_screen import TableDialog, cell
from tui.ui.toolkit import themes
from tui.ui.widgets.dialog import Key, TextField
from tui.ui.widgets.row_list import Part, RowList

if TYPE_CHECKING:
    from tui.ui.toolkit.base_app import ThemedApp

RowParts: TypeAlias = Callable[[int], Sequence[Part]]
"""Draws a row in this many cells."""


PickRow: TypeAlias = Sequence[Part] | Callable[[int], Sequence[Part]]
"""The parts of a row, or a function from a width in cells to the parts. They must be clean
already."""


class PickScreen(TableDialog[int | None]):
    """Dismissed with the index of a row; None for Esc. `enter` says what Enter does, in a word or
    two. `ways` are keys for other answers, each with what it does and the name that is in `way`
    then."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c,q", "dismiss(None)", "back", show=False)
    ]
    AUTO_FOCUS: ClassVar[str | None] = "RowList"

    def __init__(
        self,
        title: str,
        rows: Sequence[PickRow],
        *,
        cursor: int = 0,
        enter: str = "choose",
        on_move: Callable[[int], object] | None = None,
        ways: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        super().__init__()
        self.way = ""
        self._ways = ways or {}
        self._title, self._enter = title, enter
        self._rows = rows
        self._first = cursor
        self._on_move = on_move

    def compose(self) -> ComposeResult:
        ways = ((key, text) for key, (text, _) in self._ways.items())
        keys = ("enter", self._enter), *ways, ("esc", "back")
        with self.framed(Vertical(), self._title, *keys):
            yield RowList(id="rows")

    def on_mount(self) -> None:
        self._fit()
        self.rows.show(len(self._rows), self._parts, cursor=self._first)

    def on_key(self, event: events.Key) -> None:
        if event.key in self._ways:
            event.stop()
            self.way = self._ways[event.key][1]
            self.dismiss(None)

    def _parts(self, index: int, width: int) -> Sequence[Part]:
        row = self._rows[index]
        return row(width) if callable(row) else row

    def on_resize(self) -> None:
        self._fit()

    def _fit(self) -> None:
        """Make the list as high as its rows, if there is room."""
        self.rows.styles.height = max(1, min(len(self._rows), self.free_rows(0)))

    def row_moved(self, index: int) -> None:
        if self._on_move is not None:
            self._on_move(index)

    def row_chosen(self, index: int) -> None:
        self.dismiss(index)


class ThemePicker(PickScreen):
    """Puts each theme on as the cursor reaches it. It dims nothing and leaves the upper half of the
    screen free, so that the theme is seen as it is."""

    DEFAULT_CSS = """
    ThemePicker { align: center bottom; background: transparent; }
    ThemePicker #box { width: 100%; max-width: 100%; padding: 0 1; }
    ThemePicker #about { height: auto; color: $text-warning; }
    """

    def __init__(
        self, title: str, listed: Mapping[str, themes.ListedTheme], now: str, enter: str
    ) -> None:
        self._themes, self._names = listed, list(listed)
        column = min(24, max(map(len, listed))) + 2
        rows = [_theme_row(name, one, column, now=name == now) for name, one in listed.items()]
        cursor = self._names.index(now) if now in listed else 0
        super().__init__(title, rows, cursor=cursor, enter=enter, on_move=self._show)

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), self._title, ("enter", self._enter), ("esc", "back")):
            yield RowList(id="rows")
            if self.app.no_color:  # pyright: ignore[reportUnknownMemberType] - Textual's App
                yield Static("NO_COLOR is set, so no colors are shown.", id="about", markup=False)

    def free_rows(self, taken: int) -> int:
        return max(1, super().free_rows(taken) // 2)

    def _show(self, index: int) -> None:
        loaded = self._themes[self._names[index]].loaded
        if isinstance(loaded, themes.LoadedTheme):
            cast("ThemedApp", self.app).put_on(loaded.theme)  # pyright: ignore[reportUnknownMemberType]


def _theme_row(name: str, one: themes.ListedTheme, column: int, *, now: bool) -> list[Part]:
    kind = "can't be read" if isinstance(one.loaded, ConfigError) else one.loaded.kind
    marks = "".join(f"  {mark}" for mark, on in (("in use", now), ("yours", one.own)) if on)
    return [(cell(one_line(name), column), "text"), (kind, "muted"), (marks, "accent")]


async def pick_theme(app: ThemedApp, title: str, *, enter: str) -> str | None:
    """Let the person pick a theme, and return its name or None. The theme from before is on again
    afterwards.

    Raises:
        ConfigError: If the chosen theme cannot be shown.
    """
    before = app.theme
    listed = await asyncio.to_thread(themes.listed, folders().config / "themes")
    index = await app.push_screen_wait(ThemePicker(title, listed, before, enter))
    app.theme = before
    if index is None:
        return None
    name, chosen = list(listed.items())[index]
    if isinstance(chosen.loaded, ConfigError):
        raise chosen.loaded
    return name


ResultT = TypeVar("ResultT")


class FilterDialog(TableDialog[ResultT | None]):
    """A field over a list that it filters; the typed text may also be an answer of its own.

    A subclass provides the list and its explanation. Dismissed with the choice, or None. The list
    keeps its height while it is filtered, so that nothing moves.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "dismiss(None)", "back", show=False),
        Binding("down,tab", "move(1)", show=False),
        Binding("up,shift+tab", "move(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#words"
    DEFAULT_CSS = """
    FilterDialog #words-row { height: 1; margin: 0 0 1 0; }
    FilterDialog #caret { width: 2; color: $text-primary; text-style: bold; }
    FilterDialog #columns { height: 1; color: $text-muted; display: none; }
    FilterDialog #about { height: auto; color: $text-muted; }
    FilterDialog.-short #words-row { margin: 0; }
    """
    ROWS_MAX: ClassVar[int] = 30

    def __init__(self, title: str, placeholder: str, *keys: Key, classes: str = "") -> None:
        super().__init__(classes=classes)
        self._title, self._placeholder, self._offered = title, placeholder, keys
        self._values: list[ResultT] = []
        self._most = 0
        self.about_rows = 0
        """Rows that are kept for what is said about the choice under the cursor."""

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), self._title, *self._offered):
            with Horizontal(id="words-row"):
                yield Static("›", id="caret", markup=False)
                yield TextField(placeholder=self._placeholder, id="words")
            yield Static(id="columns", markup=False)
            rows = RowList(id="list", one_click=True)
            rows.can_focus = False
            yield rows
            yield Static(id="about", markup=False)

    def on_mount(self) -> None:
        self._list()

    def on_resize(self) -> None:
        self._fit()

    # Provided by a subclass

    def choices(self, words: str) -> Iterable[tuple[ResultT, RowParts]]:
        """Yield the choices for some words, and how their rows are drawn."""
        raise NotImplementedError

    def first(self) -> int:
        """Return the row that the cursor is on at first."""
        return 0

    def typed(self, words: str) -> ResultT | None:
        """Return the answer for words that nothing is listed for; None for no answer."""
        raise NotImplementedError

    def explain(self, words: str, *, listed: bool) -> str:
        """Return the text under the list; "" for none."""
        raise NotImplementedError

    # Keys

    @property
    def words(self) -> str:
        """The typed text."""
        return self.query_one("#words", Input).value.strip()

    @property
    def chosen(self) -> ResultT | None:
        """The choice under the cursor; None if nothing is listed."""
        return self._values[self.rows.cursor] if self._values else None

    @on(Input.Changed, "#words")
    def _filter(self, event: Input.Changed) -> None:
        event.stop()
        self._list()

    @on(Input.Submitted, "#words")
    def _enter_pressed(self, event: Input.Submitted) -> None:
        event.stop()
        if self._values:
            self.dismiss(self.chosen)
        elif self.words and (answer := self.typed(self.words)) is not None:
            self.dismiss(answer)

    def row_chosen(self, index: int) -> None:
        self.dismiss(self._values[index])

    def _list(self) -> None:
        listed = list(self.choices(self.words))
        self._values = [value for value, _ in listed]
        self._most = max(self._most, len(listed))
        cursor = self.first() if listed else 0
        self.rows.show(len(listed), lambda at, width: listed[at][1](width), cursor=cursor)
        self._fit()

    def _fit(self) -> None:
        listed, about = bool(self._values), self.query_one("#about", Static)
        text = self.explain(self.words, listed=listed)
        about.update(Content(text))
        about.display = bool(text)
        self.set_class(bool(text), "-about")
        short = self.is_short
        kept = min(self.about_rows, 1) if short else self.about_rows
        free = self.free_rows(kept + (1 if short else 4 if kept else 2))
        height = max(1, min(self._most, self.ROWS_MAX, free))
        self.rows.display = listed
        self.rows.styles.height = height
        about.styles.min_height = kept if listed else height
        about.styles.max_height = 1 if kept and listed and short else None


@dataclass(frozen=True, slots=True)
class TaskFileRow:
    """A file with `tasks` checkboxes, of which `done` are set."""

    path: Path
    tasks: int
    done: int


class TaskPicker(FilterDialog[Path]):
    """Dismissed with the path of a task file, or None. A path may be typed."""

    def __init__(self, root: Path, rows: Sequence[TaskFileRow]) -> None:
        keys = ("enter", "choose"), ("esc", "back")
        super().__init__("run a task file", "Filter, or type a path", *keys)
        self._root, self._rows = root, rows

    def choices(self, words: str) -> Iterable[tuple[Path, RowParts]]:
        for row in self._rows:
            name = str(row.path.relative_to(self._root))
            if words.lower() in name.lower():
                yield row.path, partial(_task_file, name, row)

    def typed(self, words: str) -> Path:
        return self._root / Path(words).expanduser()

    def explain(self, words: str, *, listed: bool) -> str:
        if listed:
            return ""
        if words:
            return f"No file by that name. Enter opens {one_line(words)} as a path."
        return "No Markdown file with checkboxes nearby. Type the path of one."


def _task_file(name: str, row: TaskFileRow, width: int) -> Sequence[Part]:
    column = max(12, min(60, width - 24))
    state = f"  {plural(row.tasks, 'task')}, {row.done} done"
    return [(cell(one_line(name), column), "text"), (state, "muted")]


_ROOMY: Final = 48
"""Cells of a row from which more than names and prices are shown."""
PROFILE_COLUMNS: Final = ("profile", "model", "next prompt")
MODEL_COLUMNS: Final = ("model", "window", "in/out", "next prompt", "")


def model_cells(row: ModelRow) -> Sequence[Part]:
    """Return what is in the columns of a model: its name, window, price, what the next prompt
    costs, and what else there is to say."""
    note: Part = ("", "muted")
    if not row.fits:
        note = ("too small", "error")
    elif row.retires:
        note = ("retires soon", "warning")
    elif row.fallback:
        note = (f"fallback {row.fallback}", "muted")
    return [
        (one_line(row.name), "text"),
        (tokens(row.window), "muted"),
        (row.price or "—", "muted"),
        (row.next, "accent" if row.now else "text"),
        note,
    ]


def model_columns(rows: Sequence[ModelRow], width: int) -> Sequence[int]:
    """Return the cells of the columns, 0 for one without room. The price goes before the cost of
    the next prompt, that before the note, and the window comes last."""
    table = [model_cells(row) for row in rows]
    most = [max((cell_len(cells[at][0]) for cells in table), default=0) for at in range(5)]
    pairs = zip(most, MODEL_COLUMNS, strict=True)
    head = [max(cells, len(name)) if cells else 0 for cells, name in pairs]
    others = head[1:] if width >= _ROOMY else head[2:3]
    name = min(head[0], max(width // 2, width - 2 - sum(2 + one for one in others if one)))
    room, shown = width - 2 - name, [name, 0, 0, 0, 0]
    for at in (2, 3, 4, 1):
        if head[at] and room >= head[at] + 2:
            room -= head[at] + 2
            shown[at] = head[at]
    return shown


def model_about(row: ModelRow, width: int) -> str:
    """Return all there is to say about a model, a line each; in few cells what is in no column."""
    if width < _ROOMY:
        need = row.retires if row.fits else f"needs {tokens(row.needs)}"
        window = f"{tokens(row.window)} window"
        prices = (f"{word} {row.next}" if row.next else "" for word in ("next prompt", "next"))
        lines = [" · ".join(filter(None, (window, need or price))) for price in prices]
        return next((line for line in lines if cell_len(line) <= width), lines[-1])
    assumed = ", assumed" if row.source == "assumed" else ""
    small = f"Too small: the session needs {tokens(row.needs)} tokens."
    window = f"Window of {tokens(row.window)} tokens{assumed} · {row.rates or 'no price known'}"
    return "\n".join(filter(None, (window, small if not row.fits else row.sends, row.retires)))


class ModelsScreen(FilterDialog[str]):
    """Dismissed with the name of a model, or None. A name that is not listed may be typed."""

    DEFAULT_CSS = """
    ModelsScreen.-tall #columns { display: block; }
    ModelsScreen.-tall #list { margin: 0 0 1 0; }
    """

    def __init__(
        self, rows: Sequence[ModelRow], *, title: str = "model", enter: str = "switch"
    ) -> None:
        keys = ("enter", enter), ("esc", "back")
        super().__init__(title, "Filter, or type a model name", *keys, classes="-table")
        self._models = rows
        self._shown: list[ModelRow] = []
        self._columns: tuple[int, Sequence[int]] = 0, ()
        self.about_rows = 3 if any(row.retires for row in rows) else 2

    def on_resize(self) -> None:
        super().on_resize()
        self.call_after_refresh(self._show_head)

    def _show_head(self) -> None:
        pairs = zip(MODEL_COLUMNS, self._cells(self.rows.row_width), strict=True)
        head = "  ".join(cell(name, cells) for name, cells in pairs if cells)
        self.put("columns", Content(f"  {head}"))

    def choices(self, words: str) -> Iterable[tuple[str, RowParts]]:
        self._shown = [row for row in self._models if words.casefold() in row.name.casefold()]
        return [(row.name, partial(self._row, row)) for row in self._shown]

    def _row(self, row: ModelRow, width: int) -> Sequence[Part]:
        mark: Part = ("● ", "primary") if row.now else ("  ", "muted")
        pairs = zip(model_cells(row), self._cells(width), strict=True)
        shown = [(cell(text, cells), look) for (text, look), cells in pairs if cells]
        return [mark, *(part for each in shown for part in (each, ("  ", "muted")))][:-1]

    def _cells(self, width: int) -> Sequence[int]:
        if self._columns[0] != width:
            self._columns = width, model_columns(self._models, width)
        return self._columns[1]

    def first(self) -> int:
        return next((at for at, row in enumerate(self._shown) if row.now), 0)

    def row_moved(self, index: int) -> None:  # noqa: ARG002 - the cursor is there
        self._fit()

    def typed(self, words: str) -> str:
        return words

    def explain(self, words: str, *, listed: bool) -> str:
        if listed:
            return model_about(self._shown[self.rows.cursor], self.rows.row_width)
        if words:
            return f"Enter tries {words}: the server decides whether it has that model."
        return "No models known here. Type a model name."


class ProfilesScreen(FilterDialog[str]):
    """Dismissed with the name of a profile, or None."""

    DEFAULT_CSS = """
    ProfilesScreen.-tall #columns { display: block; }
    ProfilesScreen.-tall #list { margin: 0 0 1 0; }
    """

    def __init__(self, rows: Sequence[ProfileRow]) -> None:
        keys = ("enter", "switch"), ("esc", "back")
        super().__init__("profile", "Filter", *keys, classes="-table")
        self._profiles = rows
        self._shown: list[ProfileRow] = []
        self.about_rows = 2

    def on_resize(self) -> None:
        super().on_resize()
        self.call_after_refresh(self._show_head)

    def _show_head(self) -> None:
        pairs = zip(PROFILE_COLUMNS, self._cells(self.rows.row_width), strict=True)
        head = "  ".join(cell(name, cells) for name, cells in pairs if cells)
        self.put("columns", Content(f"  {head}"))

    def choices(self, words: str) -> Iterable[tuple[str, RowParts]]:
        self._shown = [row for row in self._profiles if words.casefold() in row.name.casefold()]
        return [(row.name, partial(self._row, row)) for row in self._shown]

    def _row(self, row: ProfileRow, width: int) -> Sequence[Part]:
        mark: Part = ("● ", "primary") if row.now else ("  ", "muted")
        pairs = zip(_profile_cells(row), self._cells(width), strict=True)
        shown = [(cell(text, cells), look) for (text, look), cells in pairs if cells]
        return [mark, *(part for each in shown for part in (each, ("  ", "muted")))][:-1]

    def _cells(self, width: int) -> Sequence[int]:
        """Return the cells of the columns, 0 for one without room: the model goes first."""
        table = [[cell_len(text) for text, _ in _profile_cells(row)] for row in self._profiles]
        most = (max(column) for column in zip(*table, strict=True))
        pairs = zip(most, PROFILE_COLUMNS, strict=True)
        name, model, price = (max(cells, len(head)) if cells else 0 for cells, head in pairs)
        name = min(name, max(8, (width - 2) // 2))
        room = width - 2 - name - (price + 2 if price else 0)
        return name, model if room >= model + 2 else 0, price

    def first(self) -> int:
        return next((at for at, row in enumerate(self._shown) if row.now), 0)

    def row_moved(self, index: int) -> None:  # noqa: ARG002 - the cursor is there
        self._fit()

    def explain(self, words: str, *, listed: bool) -> str:
        if not listed:
            return f"No profile {words}."
        row = self._shown[self.rows.cursor]
        whose = f"{one_line(row.server)} · {one_line(row.key)}"
        return "\n".join(filter(None, (whose, "In use." if row.now else row.sends)))


def _profile_cells(row: ProfileRow) -> Sequence[Part]:
    price: Part = (row.next, "accent" if row.now else "text")
    return [(one_line(row.name), "text"), (one_line(row.model), "muted"), price]
