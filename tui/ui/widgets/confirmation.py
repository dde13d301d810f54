"""A yes-or-no question with its reasons, such as whether a folder's own files are trusted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Static

from tui.core.clock import Clock
from tui.core.text_cleaning import visible
from tui.ui.widgets.choice import Choice
from tui.ui.widgets.dialog import PAGES, Dialog

GRACE_S: Final = 0.5
"""How long nothing must be typed before a question that came by itself can be answered."""


@dataclass(frozen=True, slots=True)
class Question:
    """`details` are shown one a line; `yes` and `no` say what each answer does."""

    title: str
    text: str
    yes: str
    no: str
    details: Sequence[str] = ()


class Confirmation(Dialog[bool]):
    """Dismissed with True for yes. Esc is no, and no is what Enter does at first.

    One that comes by itself has a `clock`: it takes no key before half a second of silence, and
    what is typed until then goes to `stray`.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes", show=False),
        Binding("n,escape,ctrl+c", "answer(False)", "no", show=False),
        Binding("left,up", "app.focus_previous", show=False),
        Binding("right,down", "app.focus_next", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#no"

    def __init__(
        self,
        question: Question,
        clock: Clock | None = None,
        stray: Callable[[str], object] | None = None,
    ) -> None:
        super().__init__(classes="-question -warning")
        self.question = question
        self._clock = clock
        self._stray = stray
        self._armed_at = clock.monotonic() + GRACE_S if clock else 0.0

    def on_key(self, event: events.Key) -> None:
        if self._clock is None or not (event.is_printable or event.key in {"escape", "enter"}):
            return
        now = self._clock.monotonic()
        if now < self._armed_at:
            self._armed_at = now + GRACE_S
            event.stop()
            event.prevent_default()
            if self._stray and event.is_printable and event.character:
                self._stray(event.character)

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), self.question.title, PAGES):
            yield Static(self.question.text, classes="text", markup=False)
            if self.question.details:
                with VerticalScroll(id="details", can_focus=False):
                    yield Static("\n".join(map(visible, self.question.details)), markup=False)
            with Vertical(id="answers"):
                yield Choice("y", self.question.yes, "yes")
                yield Choice("n", self.question.no, "no")

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)

    @on(Choice.Chosen)
    def _chosen(self, event: Choice.Chosen) -> None:
        self.dismiss(event.name == "yes")
