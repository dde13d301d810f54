"""Choose one of some rows; what a row means can be shown while the cursor stands on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from tui.ui.widgets.dialog import Dialog
from tui.ui.widgets.row_list import Part, Rows


class PickScreen(Dialog[int | None]):
    """Dismissed with the number of a row; None for Esc. The parts must be clean already.

    `enter` says what Enter does, in a word or two.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c,q", "leave", "back", show=False)
    ]
    AUTO_FOCUS: ClassVar[str | None] = "Rows"

    def __init__(
        self,
        title: str,
        rows: Sequence[Sequence[Part]],
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
            yield Rows(id="rows")

    def on_mount(self) -> None:
        self._fit()
        self.rows.show(len(self._rows), lambda index, _: self._rows[index], cursor=self._first)

    def on_resize(self) -> None:
        self._fit()

    @property
    def rows(self) -> Rows:
        return self.query_one("#rows", Rows)

    def _fit(self) -> None:
        """As high as there are rows, as far as there is room."""
        self.rows.styles.height = max(1, min(len(self._rows), self.rows_left(0)))

    @on(Rows.Moved)
    def _moved(self, event: Rows.Moved) -> None:
        event.stop()
        if self._on_move is not None:
            self._on_move(event.index)

    @on(Rows.Chosen)
    def _chosen(self, event: Rows.Chosen) -> None:
        event.stop()
        self.dismiss(event.index)

    def action_leave(self) -> None:
        self.dismiss(None)
