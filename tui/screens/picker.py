"""Choose one of some rows; what a row means can be shown while the cursor stands on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen

from tui.widgets.rows import Part, Rows


class PickScreen(ModalScreen[int | None]):
    """Dismissed with the number of a row; None for Esc. The parts must be clean already."""

    DEFAULT_CSS = """
    PickScreen { align: center middle; background: $background 40%; }
    PickScreen #box {
        width: 92; max-width: 96%; height: auto; max-height: 80%;
        background: $surface; border: round $primary; padding: 1 2;
        border-title-color: $text-primary; border-title-style: bold;
        border-subtitle-color: $text-muted;
    }
    PickScreen Rows { background: $surface; }
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
        subtitle: str = "enter chooses · esc goes back",
        on_move: Callable[[int], object] | None = None,
    ) -> None:
        super().__init__()
        self._title, self._subtitle = title, subtitle
        self._rows = rows
        self._first = cursor
        self._on_move = on_move

    def compose(self) -> ComposeResult:
        with Vertical(id="box") as box:
            box.border_title = Content(self._title)
            box.border_subtitle = Content(self._subtitle)
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
        self.rows.styles.height = max(1, min(len(self._rows), self.size.height * 8 // 10 - 4))

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
