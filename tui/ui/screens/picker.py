"""Choose one of some rows, a task file to run, or the model that answers from now on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from tui.app.dialog_data import ModelRow
from tui.core.errors import HoldfastError
from tui.core.formatting import plural, tokens
from tui.core.text_cleaning import one_line
from tui.ui.screens.table_screen import TableDialog
from tui.ui.widgets.dialog import Dialog, TextField
from tui.ui.widgets.row_list import Part, RowList

if TYPE_CHECKING:
    from tui.ui.toolkit.base_app import ThemedApp


PickRow: TypeAlias = Sequence[Part] | Callable[[int], Sequence[Part]]
"""The parts of a row, or what makes them for a width in cells. They must be clean already."""


class PickScreen(TableDialog[int | None]):
    """Dismissed with the number of a row; None for Esc. `enter` says what Enter does, in a word or
    two."""

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
    ) -> None:
        super().__init__()
        self._title, self._enter = title, enter
        self._rows = rows
        self._first = cursor
        self._on_move = on_move

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), self._title, ("enter", self._enter), ("esc", "back")):
            yield RowList(id="rows")

    def on_mount(self) -> None:
        self._fit()
        self.rows.show(len(self._rows), self._parts, cursor=self._first)

    def _parts(self, index: int, width: int) -> Sequence[Part]:
        row = self._rows[index]
        return row(width) if callable(row) else row

    def on_resize(self) -> None:
        self._fit()

    def _fit(self) -> None:
        """As high as there are rows, as far as there is room."""
        self.rows.styles.height = max(1, min(len(self._rows), self.free_rows(0)))

    def row_moved(self, index: int) -> None:
        if self._on_move is not None:
            self._on_move(index)

    def row_chosen(self, index: int) -> None:
        self.dismiss(index)


async def pick_theme(
    app: ThemedApp,
    title: str,
    names: Sequence[str],
    rows: Sequence[Sequence[Part]],
    *,
    cursor: int,
    enter: str,
) -> int | None:
    """As by `PickScreen`; each theme is shown as the cursor comes to it, afterwards the one of
    before. Raises HoldfastError where one that cannot be shown was chosen."""
    before = app.theme
    problems: dict[int, HoldfastError] = {}

    def show(index: int) -> None:
        try:
            app.use_theme(names[index])
        except HoldfastError as error:
            problems[index] = error

    screen = PickScreen(title, rows, cursor=cursor, on_move=show, enter=enter)
    chosen = await app.push_screen_wait(screen)
    app.use_theme(before)
    if chosen in problems:
        raise problems[chosen]
    return chosen


ResultT = TypeVar("ResultT")


class FilterDialog(Dialog[ResultT | None]):
    """A field over a list that it filters; what is typed may also be an answer of its own.

    A subclass says what is listed and explained. Dismissed with what was chosen, or None.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "dismiss(None)", "back", show=False),
        Binding("down", "move(1)", show=False),
        Binding("up", "move(-1)", show=False),
        Binding("pagedown", "move(10)", show=False),
        Binding("pageup", "move(-10)", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#words"
    DEFAULT_CSS = """
    FilterDialog #words-row { height: 1; margin: 0 0 1 0; }
    FilterDialog #caret { width: 2; color: $text-primary; text-style: bold; }
    FilterDialog #list {
        border: none; padding: 0; background: $surface; scrollbar-size-vertical: 1;
    }
    FilterDialog #list > .option-list--option { padding: 0 1; }
    FilterDialog #about { height: auto; color: $text-muted; }
    """

    def __init__(self, title: str, placeholder: str, enter: str, *, classes: str = "") -> None:
        super().__init__(classes=classes)
        self._title, self._placeholder, self._enter = title, placeholder, enter
        self._values: list[ResultT] = []

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), self._title, ("enter", self._enter), ("esc", "back")):
            with Horizontal(id="words-row"):
                yield Static("❯", id="caret", markup=False)
                yield TextField(placeholder=self._placeholder, id="words")
            listing = OptionList(id="list", compact=True)
            listing.can_focus = False
            yield listing
            yield Static(id="about", markup=False)

    def on_mount(self) -> None:
        self.call_after_refresh(self._draw)

    def on_resize(self) -> None:
        self._draw()

    # What a subclass says

    def choices(self, words: str, width: int) -> Iterable[tuple[ResultT, Content]]:
        """What is listed for some words, and its row in `width` cells."""
        raise NotImplementedError

    def first(self) -> int:
        """The row under the cursor at first."""
        return 0

    def typed(self, words: str) -> ResultT:
        """The answer that some words are, where nothing is listed for them."""
        raise NotImplementedError

    def explain(self, words: str, *, listed: bool) -> str:
        """What stands under the list; "" for nothing."""
        raise NotImplementedError

    # Keys

    @property
    def listing(self) -> OptionList:
        return self.query_one("#list", OptionList)

    def action_move(self, rows: int) -> None:
        if self._values:
            at = (self.listing.highlighted or 0) + rows
            self.listing.highlighted = max(0, min(len(self._values) - 1, at))

    @on(Input.Changed, "#words")
    def _filter(self) -> None:
        self._draw()

    @on(Input.Submitted, "#words")
    def _enter_pressed(self, event: Input.Submitted) -> None:
        event.stop()
        at = self.listing.highlighted
        if at is not None and at < len(self._values):
            self.dismiss(self._values[at])
        elif words := event.value.strip():
            self.dismiss(self.typed(words))

    @on(OptionList.OptionSelected, "#list")
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self._values[event.option_index])

    def _draw(self) -> None:
        words = self.query_one("#words", Input).value.strip()
        rows = list(self.choices(words, self.listing.size.width - 2))
        self._values = [value for value, _ in rows]
        self.listing.clear_options()
        self.listing.display = bool(rows)
        self.listing.add_options(Option(row) for _, row in rows)
        self.listing.highlighted = self.first() if rows else None
        about, text = self.query_one("#about", Static), self.explain(words, listed=bool(rows))
        about.update(Content(text))
        about.display = bool(text)
        self.listing.styles.height = min(len(rows), self.free_rows(5 if text and rows else 2))


@dataclass(frozen=True, slots=True)
class TaskFileRow:
    """A file with `tasks` checkboxes, of which `done` are set."""

    path: Path
    tasks: int
    done: int


class TaskPicker(FilterDialog[Path]):
    """Dismissed with the path of a task file, or None. A path may be typed."""

    def __init__(self, root: Path, rows: Sequence[TaskFileRow]) -> None:
        super().__init__("Run a task file", "Filter, or type a path", "choose")
        self._root, self._rows = root, rows

    def choices(self, words: str, width: int) -> Iterable[tuple[Path, Content]]:  # noqa: ARG002
        column = max(12, min(60, self.size.width - 36))
        for row in self._rows:
            name = str(row.path.relative_to(self._root))
            if words.lower() in name.lower():
                yield (
                    row.path,
                    Content.assemble(
                        Content(one_line(name)).truncate(column, ellipsis=True, pad=True),
                        (f"  {plural(row.tasks, 'task')}, {row.done} done", "$text-muted"),
                    ),
                )

    def typed(self, words: str) -> Path:
        return self._root / Path(words).expanduser()

    def explain(self, words: str, *, listed: bool) -> str:
        if listed:
            return ""
        if words:
            return f"No file by that name. Enter opens {one_line(words)} as a path."
        return "No Markdown file with checkboxes nearby. Type the path of one."


_NAME, _WINDOW, _PRICE = 30, 16, 21


def model_line(row: ModelRow, width: int) -> Content:
    """One model in `width` cells: name, window, price, whether the session fits, its part."""
    share = row.needs / row.window if row.window else 1.0
    if row.fits:
        fit, style = f"fits, {share:.0%}", "$text-success"
    else:
        fit, style = f"too small: {tokens(row.needs)} needed", "$text-error"
    part = "now" if row.now else f"fallback {row.fallback}" if row.fallback else ""
    part = " · ".join(filter(None, (part, row.retires)))
    if width < _NAME + 36:
        fit = fit.removesuffix(" needed")
    column = 26 if width >= _NAME + 36 else 18
    parts: list[tuple[str, str]] = [(f"{fit:<{column}}", style), (part, "$text-accent")]
    name = Content.styled(one_line(row.name), "bold $foreground" if row.now else "$foreground")
    assumed = " assumed" if row.source == "assumed" else ""
    if width >= _NAME + _WINDOW + _PRICE + 36:
        price = Content(row.price).truncate(_PRICE - 1, ellipsis=True, pad=True)
        window = f"{tokens(row.window) + assumed:<{_WINDOW}}"
        parts = [(window, "$text-muted"), (f"{price} ", "$text-muted"), *parts]
    room = _NAME if width >= _NAME + 36 else max(12, width - 18 - 11)
    line = Content.assemble(name.truncate(room - 1, ellipsis=True, pad=True), " ", *parts)
    return line.truncate(width, ellipsis=True)


class ModelsScreen(FilterDialog[str]):
    """Dismissed with the name of a model, or None. A name that is not listed may be typed."""

    DEFAULT_CSS = "ModelsScreen #list { margin: 0 0 1 0; }"

    def __init__(self, rows: Sequence[ModelRow]) -> None:
        super().__init__("model", "Filter, or type a model name", "switch", classes="-table")
        self.rows = rows
        self._shown: list[ModelRow] = []

    def choices(self, words: str, width: int) -> Iterable[tuple[str, Content]]:
        self._shown = [row for row in self.rows if words.casefold() in row.name.casefold()]
        return [(row.name, model_line(row, width)) for row in self._shown]

    def first(self) -> int:
        return next((at for at, row in enumerate(self._shown) if row.now), 0)

    def typed(self, words: str) -> str:
        return words

    def explain(self, words: str, *, listed: bool) -> str:
        if listed:
            return "USD per million tokens · — = no price set"
        if words:
            return f"Enter tries {words}: the server decides whether it has that model."
        return "No models known here. Type a model name."
