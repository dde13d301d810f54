"""Which model answers from the next request on: what is known of each, and whether it fits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.content import Content

from tui.app.dialog_data import ModelRow
from tui.core.formatting import tokens
from tui.core.text_cleaning import one_line
from tui.ui.screens.picker import FilterDialog

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


class ModelsScreen(FilterDialog[str]):
    """Dismissed with the name of a model, or None. A name that is not listed may be typed."""

    DEFAULT_CSS = "ModelsScreen #list { margin: 0 0 1 0; }"

    def __init__(self, rows: Sequence[ModelRow]) -> None:
        super().__init__("model", "Type to filter, or another name", "switch", classes="-table")
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
            return "Prices are in USD per million tokens, as configured; — is not known."
        if words:
            return f"Enter asks for {words}: the server decides whether it has it."
        return "None is known here: type the name of one."
