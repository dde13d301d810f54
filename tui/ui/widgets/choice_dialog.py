"""A question with several ways on: what happened, and a key for each thing that can be done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Static

from tui.core.text_cleaning import visible
from tui.ui.widgets.choice import Choice
from tui.ui.widgets.dialog import PAGES, Dialog


@dataclass(frozen=True, slots=True)
class Way:
    """One way on: its key, what it does, and its name."""

    key: str
    label: str
    name: str


class WaysModal(Dialog[str | None]):
    """Dismissed with the name of a way; None for Esc. The last way has the focus at first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "leave", "back", show=False),
        Binding("left,up", "app.focus_previous", show=False),
        Binding("right,down", "app.focus_next", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = ""

    def __init__(
        self,
        title: str,
        text: str,
        ways: Sequence[Way],
        *,
        details: Sequence[str] = (),
        warning: bool = False,
    ) -> None:
        super().__init__(classes="-question -warning" if warning else "-question")
        self.title_text = title
        self.text = text
        self.ways = ways
        self.details = details

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), self.title_text, PAGES):
            yield Static(self.text, classes="text", markup=False)
            if self.details:
                with VerticalScroll(id="details", can_focus=False):
                    yield Static("\n".join(map(visible, self.details)), markup=False)
            with Vertical(id="answers"):
                for way in self.ways:
                    yield Choice(way.key, way.label, way.name)

    def on_mount(self) -> None:
        self.query(Choice).last().focus()

    def on_key(self, event: events.Key) -> None:
        way = next((way for way in self.ways if event.character == way.key), None)
        if way is not None:
            event.stop()
            self.dismiss(way.name)

    @on(Choice.Chosen)
    def _chosen(self, event: Choice.Chosen) -> None:
        self.dismiss(event.name)

    def action_leave(self) -> None:
        self.dismiss(None)
