"""Which model answers from the next request on: what is known of each, and whether it fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from tui.app.dialog_data import ModelRow
from tui.core.formatting import tokens
from tui.core.text_cleaning import one_line
from tui.ui.widgets.dialog import Dialog

_NAME, _WINDOW, _PRICE = 30, 16, 21


def model_line(row: ModelRow, width: int) -> Content:
    """One model in `width` cells: name, window, price, whether the session fits, its part."""
    share = row.needs / row.window if row.window else 1.0
    if row.fits:
        fit, style = f"fits, {share:.0%}", "$text-success"
    else:
        fit, style = f"too small: {tokens(row.needs)} needed", "$text-error"
    part = "now" if row.now else f"fallback {row.fallback}" if row.fallback else ""
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


class ModelsScreen(Dialog[str | None]):
    """Dismissed with the name of a model, or None. A name that is not listed may be typed."""

    CSS_PATH = "models.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "close", "back", show=False),
        Binding("down", "move(1)", show=False),
        Binding("up", "move(-1)", show=False),
        Binding("pagedown", "move(10)", show=False),
        Binding("pageup", "move(-10)", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#name"

    def __init__(self, rows: Sequence[ModelRow]) -> None:
        super().__init__(classes="-table")
        self.rows = rows
        self._shown: list[ModelRow] = []

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), "model", ("enter", "switch"), ("esc", "back")):
            with Horizontal(id="name-row"):
                yield Static("❯", id="caret", markup=False)
                name = Input(placeholder="Type to filter, or another name", id="name")
                name.cursor_blink = False
                yield name
            listing = OptionList(id="list", compact=True)
            listing.can_focus = False
            yield listing
            yield Static(id="about", markup=False)

    def on_mount(self) -> None:
        self.call_after_refresh(self._draw)

    def on_resize(self) -> None:
        self._draw()

    def action_close(self) -> None:
        self.dismiss(None)

    def action_move(self, rows: int) -> None:
        listing = self.query_one("#list", OptionList)
        if self._shown:
            at = (listing.highlighted or 0) + rows
            listing.highlighted = max(0, min(len(self._shown) - 1, at))

    @on(Input.Changed, "#name")
    def _filter(self) -> None:
        self._draw()

    @on(Input.Submitted, "#name")
    def _enter(self, event: Input.Submitted) -> None:
        at = self.query_one("#list", OptionList).highlighted
        if at is not None and at < len(self._shown):
            self.dismiss(self._shown[at].name)
        elif name := event.value.strip():
            self.dismiss(name)

    @on(OptionList.OptionSelected, "#list")
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._shown[event.option_index].name)

    def _draw(self) -> None:
        wanted = self.query_one("#name", Input).value.strip()
        self._shown = [row for row in self.rows if wanted.casefold() in row.name.casefold()]
        listing = self.query_one("#list", OptionList)
        width = listing.size.width - 2
        listing.clear_options()
        listing.display = bool(self._shown)
        listing.add_options(Option(model_line(row, width)) for row in self._shown)
        listing.styles.height = min(len(self._shown), self.rows_left(5))
        if self._shown:
            now = (n for n, row in enumerate(self._shown) if row.now)
            listing.highlighted = next(now, 0)
        about = "Prices are in USD per million tokens, as configured; — is not known."
        if not self._shown and wanted:
            about = f"Enter asks for {wanted}: the server decides whether it has it."
        elif not self._shown:
            about = "None is known here: type the name of one."
        self.query_one("#about", Static).update(Content.styled(about, "$text-muted"))
