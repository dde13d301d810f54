"""A yes-or-no question with its reasons, such as whether a folder's own files are trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Static

from tui.widgets.choice import Choice
from tui.widgets.dialog import PAGES, Dialog
from tui.widgets.plain import visible


@dataclass(frozen=True, slots=True)
class Question:
    """`details` are shown one a line; `yes` and `no` say what each answer does."""

    title: str
    text: str
    yes: str
    no: str
    details: Sequence[str] = ()


class Confirmation(Dialog[bool]):
    """Dismissed with True for yes. Esc is no, and no is what Enter does at first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes", show=False),
        Binding("n,escape,ctrl+c", "answer(False)", "no", show=False),
        Binding("left", "app.focus_previous", show=False),
        Binding("right", "app.focus_next", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#no"

    DEFAULT_CSS = """
    Confirmation #answers { height: auto; margin: 1 0 0 0; }
    Confirmation.-narrow #answers { layout: vertical; }
    """

    def __init__(self, question: Question) -> None:
        super().__init__(classes="-question -warning")
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (64, "-wide")]
        self.question = question

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), self.question.title, PAGES):
            yield Static(self.question.text, classes="text", markup=False)
            if self.question.details:
                with VerticalScroll(id="details", can_focus=False):
                    yield Static("\n".join(map(visible, self.question.details)), markup=False)
            with Horizontal(id="answers"):
                yield Choice("y", self.question.yes, "yes")
                yield Choice("n", self.question.no, "no")

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)

    @on(Choice.Chosen)
    def _chosen(self, event: Choice.Chosen) -> None:
        self.dismiss(event.name == "yes")
