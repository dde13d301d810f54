"""Pickers: a row from a list, a theme, a task file to run, or the model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeVar, cast

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Static

from tui.app.dialog_data import ModelRow
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
    ThemePicker #box { width: 64; padding: 0 1; }
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
    FilterDialog #about { height: auto; color: $text-muted; }
    """
    ROWS_MAX: ClassVar[int] = 30

    def __init__(self, title: str, placeholder: str, *keys: Key, classes: str = "") -> None:
        super().__init__(classes=classes)
        self._title, self._placeholder, self._offered = title, placeholder, keys
        self._values: list[ResultT] = []
        self._most = 0

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), self._title, *self._offered):
            with Horizontal(id="words-row"):
                yield Static("❯", id="caret", markup=False)
                yield TextField(placeholder=self._placeholder, id="words")
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
        free = self.free_rows(5 if text and listed else 2)
        height = max(1, min(self._most, self.ROWS_MAX, free))
        self.rows.display = listed
        self.rows.styles.height = height
        about.styles.min_height = 1 if listed else height


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


_NAME, _WINDOW, _PRICE = 30, 16, 21
_BESIDE = 46
"""Cells from which there is room for a model's role beside it."""


def shows_prices(width: int) -> bool:
    """True if rows of that many cells have room for windows and prices."""
    return width >= _NAME + _WINDOW + _PRICE + 36


def model_row(row: ModelRow, width: int) -> Sequence[Part]:
    """Return one model in `width` cells: name, window, price, whether the session fits, its
    role."""
    share = row.needs / row.window if row.window else 1.0
    if row.fits:
        fit, style = f"fits, {share:.0%}", "success"
    else:
        fit, style = f"too small: {tokens(row.needs)} needed", "error"
    part = "now" if row.now else f"fallback {row.fallback}" if row.fallback else ""
    part = " · ".join(filter(None, (part, row.retires)))
    if width < _NAME + 36:
        fit = fit.removesuffix(" needed") if width >= _BESIDE else fit.partition(":")[0]
    column = 26 if width >= _NAME + 36 else 18 if width >= _BESIDE else 10
    parts: list[Part] = [(f"{fit:<{column}}", style), (part, "accent")]
    if width < _BESIDE:
        parts[1:] = [(" *" if row.now else "  ", "accent")]
    assumed = " assumed" if row.source == "assumed" else ""
    if shows_prices(width):
        window = f"{tokens(row.window) + assumed:<{_WINDOW}}"
        parts = [(window, "muted"), (cell(row.price, _PRICE - 1) + " ", "muted"), *parts]
    room = (
        _NAME if width >= _NAME + 36 else max(12, width - column - (11 if width >= _BESIDE else 2))
    )
    return [(cell(one_line(row.name), room - 1) + " ", "text"), *parts]


class ModelsScreen(FilterDialog[str]):
    """Dismissed with the name of a model, or None. A name that is not listed may be typed."""

    DEFAULT_CSS = "ModelsScreen.-about #list { margin: 0 0 1 0; }"

    def __init__(self, rows: Sequence[ModelRow]) -> None:
        keys = ("enter", "switch"), ("esc", "back")
        super().__init__("model", "Filter, or type a model name", *keys, classes="-table")
        self._models = rows
        self._shown: list[ModelRow] = []

    def choices(self, words: str) -> Iterable[tuple[str, RowParts]]:
        self._shown = [row for row in self._models if words.casefold() in row.name.casefold()]
        return [(row.name, partial(model_row, row)) for row in self._shown]

    def first(self) -> int:
        return next((at for at, row in enumerate(self._shown) if row.now), 0)

    def typed(self, words: str) -> str:
        return words

    def explain(self, words: str, *, listed: bool) -> str:
        if listed:
            shown = shows_prices(min(112, self.size.width * 98 // 100) - 7)
            return "USD per million tokens · — = no price set" if shown else ""
        if words:
            return f"Enter tries {words}: the server decides whether it has that model."
        return "No models known here. Type a model name."
