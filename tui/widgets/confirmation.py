"""A yes-or-no question with its reasons, such as whether a folder's own files are trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from tui.widgets.choice import Choice
from tui.widgets.plain import visible


@dataclass(frozen=True, slots=True)
class Question:
    """`details` are shown one a line; `yes` and `no` say what each answer does."""

    title: str
    text: str
    yes: str
    no: str
    details: Sequence[str] = ()


class Confirmation(ModalScreen[bool]):
    """Dismissed with True for yes. Esc is no, and no is what Enter does at first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes", show=False),
        Binding("n,escape,ctrl+c", "answer(False)", "no", show=False),
        Binding("left", "app.focus_previous", show=False),
        Binding("right", "app.focus_next", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#no"

    DEFAULT_CSS = """
    Confirmation { align: center middle; background: $background 55%; }
    Confirmation #box {
        width: 76; max-width: 96%; height: auto; max-height: 90%;
        background: $surface; border: round $warning; padding: 1 2;
        border-title-color: $text-warning; border-title-style: bold;
    }
    Confirmation #details {
        height: auto; max-height: 10; margin: 1 0 0 0; padding: 0 1; background: $background;
        scrollbar-size-vertical: 1;
    }
    Confirmation .text { height: auto; color: $foreground; }
    Confirmation #answers { height: auto; margin: 1 0 0 0; }
    """

    def __init__(self, question: Question) -> None:
        super().__init__()
        self.question = question

    def compose(self) -> ComposeResult:
        with Vertical(id="box") as box:
            box.border_title = Content(self.question.title)
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
