"""Questions to the person: yes or no, one of several answers, one or more lines to edit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar, Final, TypeVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static, TextArea

from tui.app.dialog_data import AnswerOption, ChoiceQuestion, YesNoQuestion
from tui.core.dataclass import dataclass
from tui.core.errors import HoldfastError
from tui.core.text_cleaning import one_line, visible
from tui.ui.toolkit.answer_guard import AnswerPlace, place_of
from tui.ui.widgets.character_area import CharacterArea
from tui.ui.widgets.dialog import PAGES, AskedAbout, Dialog, TextField

ResultT = TypeVar("ResultT")

WIDE: Final = 72
"""Columns from which the answers in a row are whole sentences."""


class Choice(Widget, can_focus=True):
    """One row high. Posts `Answered` when it is clicked, or entered while it has the focus."""

    DEFAULT_CSS = """
    Choice {
        width: auto; height: 1; padding: 0 1; margin: 0 1 0 0;
        background: $panel; color: $foreground; pointer: pointer;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    Choice:hover { background: $primary-muted; }
    Choice:focus { background: $primary; color: $background; text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,space", "choose", show=False),
        Binding("left", "app.focus_previous", show=False),
        Binding("right", "app.focus_next", show=False),
    ]

    @dataclass
    class Answered(Message):
        """`name` is the choice's."""

        name: str

    def __init__(self, key: str, label: str, name: str) -> None:
        super().__init__(name=name, id=name)
        self.key, self._label = key, one_line(visible(label))

    def render(self) -> Content:
        style = "" if self.has_focus else "$text-accent"
        return Content.assemble((self.key, style), f" {self._label}")

    def action_choose(self) -> None:
        self.post_message(self.Answered(self.name or ""))

    def on_click(self) -> None:
        place = place_of(self)
        if place is None or place.counts_clicks:
            self.action_choose()

    @property
    def label(self) -> str:
        return self._label

    def relabel(self, label: str) -> None:
        """Say the same in other words."""
        label = one_line(visible(label))
        if label != self._label:
            self._label = label
            self.refresh(layout=True)


class ChoicePlace(AnswerPlace):
    """A place whose answers are `Choice`s: the one that a key means gets the focus."""

    def mark_answer(self, event: events.Key) -> str:
        screen = self.widget.screen
        if event.key == "enter":
            return screen.focused.label if isinstance(screen.focused, Choice) else ""
        key = self.choice_key(event)
        for choice in self.widget.query(Choice):
            if choice.key == key and choice.display:
                screen.set_focus(choice)
                return choice.label
        return ""

    def choice_key(self, event: events.Key) -> str | None:
        """Return the key of the choice that a key press means."""
        return "esc" if event.key == "escape" else event.key


class QuestionDialog(Dialog[ResultT], ChoicePlace):
    """A text, and a `Choice` for each answer; Esc is no answer.

    At first the focus is on what the person asked for, the first; if a wrong answer costs
    something, or the question opens by itself, on the cautious one, the last. What is being typed
    when one opens by itself answers nothing.
    """

    awaited = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "leave", "back", show=False),
        Binding("left,up", "app.focus_previous", show=False),
        Binding("right,down", "app.focus_next", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = ""
    DEFAULT_CSS = """
    QuestionDialog #asked { height: auto; }
    QuestionDialog #later { min-height: 2; }
    QuestionDialog.-tiny #later { min-height: 1; }
    QuestionDialog #answers Choice { height: auto; text-wrap: wrap; text-overflow: fold; }
    QuestionDialog.-tiny #details { margin: 0; }
    """

    def __init__(self, question: ChoiceQuestion) -> None:
        super().__init__(classes="-question -warning" if question.warning else "-question")
        self.title_text, self.text = one_line(visible(question.title)), visible(question.text)
        self.details, self.later = question.details, question.later
        self.answers = [Choice(each.key, each.label, each.name) for each in question.options]
        self.unasked = question.unasked
        self._usual = self.answers[-1 if question.warning or question.unasked else 0]

    def compose(self) -> ComposeResult:
        keys = (PAGES, ("enter", "choose"), ("esc", "cancel"))
        with self.framed(Vertical(), self.title_text, *keys):
            with AskedAbout(id="asked"):
                yield Static(self.text, classes="text", markup=False)
                if self.later is not None:
                    yield Static("…", id="later", classes="text", markup=False)
                if self.details:
                    with AskedAbout(id="details"):
                        yield Static("\n".join(map(visible, self.details)), markup=False)
            with Vertical(id="answers"):
                yield from self.answers

    def answer(self, name: str | None) -> None:
        """Handle a chosen answer; None for Esc."""
        raise NotImplementedError

    def on_mount(self) -> None:
        if self.unasked:
            self.await_quiet()
        self._usual.focus()
        if self.later is not None:
            self._show_later(self.later)

    @work(group="later")
    async def _show_later(self, later: Awaitable[str]) -> None:
        text = await later
        self.query_one("#later", Static).update(Content(visible(text)))

    def on_resize(self) -> None:
        self.call_after_refresh(self._make_room)

    def _make_room(self) -> None:
        """Give the question the rows that the answers leave; if these are few, its details come
        first."""
        if not self.is_attached:
            return
        asked, answers = self.query_one("#asked"), self.query_one("#answers")
        taken = answers.outer_size.height + answers.styles.margin.top
        asked.styles.max_height = self.free_rows(taken)
        for details in self.query("#details"):
            text = asked.query_children(".text").first()
            first = (details, text) if self.has_class("-tiny") else (text, details)
            asked.move_child(first[0], before=first[1])

    def answers_key(self, event: events.Key) -> bool:
        return self._answer_of(event) is not None or super().answers_key(event)

    def on_key(self, event: events.Key) -> None:
        answer = self._answer_of(event)
        if answer is not None:
            event.stop()
            self.answer(answer.name)

    def _answer_of(self, event: events.Key) -> Choice | None:
        return next((answer for answer in self.answers if event.key == answer.key), None)

    @on(Choice.Answered)
    def _chosen(self, event: Choice.Answered) -> None:
        self.answer(event.name)

    def action_leave(self) -> None:
        self.answer(None)


class ChoiceDialog(QuestionDialog[str | None]):
    """Dismissed with the name of an answer; None for Esc."""

    def answer(self, name: str | None) -> None:
        self.dismiss(name)


class Confirmation(QuestionDialog[bool]):
    """Dismissed with True for yes. Esc is no, and at first Enter is no too."""

    def __init__(self, question: YesNoQuestion) -> None:
        answers = AnswerOption("y", question.yes, "yes"), AnswerOption("n", question.no, "no")
        title, text, details = question.title, question.text, question.details
        super().__init__(
            ChoiceQuestion(title, text, answers, details, warning=True, unasked=question.unasked)
        )

    def answer(self, name: str | None) -> None:
        self.dismiss(name == "yes")


class AskText(Dialog[str | None], AnswerPlace):
    """Dismissed with the typed text, in one line; None for Esc or for an empty text."""

    awaited = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "dismiss(None)", "back", show=False)
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#text"

    DEFAULT_CSS = "AskText #text { padding: 0 1; background: $background; }"

    def __init__(self, title: str, value: str = "") -> None:
        super().__init__(classes="-question")
        self._title, self._value = title, value

    def compose(self) -> ComposeResult:
        keys = (("enter", "save"), ("esc", "cancel"))
        with self.framed(Vertical(), self._title, *keys):
            yield TextField(self._value, id="text")

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        self.dismiss(" ".join(event.value.split()) or None)


_EDIT_KEYS = (("ctrl+s", "save"), ("enter", "new line"), ("esc", "back"))


class EditText(Dialog[bool], AnswerPlace):
    """Dismissed with True once `save` has taken the text; its errors are shown.

    `what` explains the text. Changes are discarded only by a second Esc.
    """

    awaited = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save", "save", show=False, priority=True),
        Binding("escape", "leave", "back", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#text"

    DEFAULT_CSS = """
    EditText #what { height: auto; color: $text-muted; margin: 0 0 1 0; }
    EditText #text, EditText #text:focus {
        height: auto; min-height: 6; max-height: 50vh; border: none; padding: 0 1;
        background: $background; background-tint: $background 0%; scrollbar-size-vertical: 1;
    }
    EditText #problem { height: auto; color: $text-error; margin: 1 0 0 0; display: none; }
    EditText.-short #problem { margin: 0; }
    EditText.-tiny #what { max-height: 2; margin: 0; }
    EditText.-tiny #text { min-height: 3; }
    """

    def __init__(
        self, title: str, what: str, text: str, save: Callable[[str], Awaitable[object]]
    ) -> None:
        super().__init__(classes="-table")
        self._title, self._what, self._text = title, what, text
        self._save = save
        self._warned = False

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), visible(self._title), *_EDIT_KEYS):
            yield Static(self._what, id="what", markup=False)
            area = CharacterArea(self._text, id="text", soft_wrap=True)
            area.cursor_blink = False
            yield area
            yield Static("", id="problem", markup=False)

    def on_mount(self) -> None:
        area = self.query_one("#text", TextArea)
        area.move_cursor(area.document.end)
        self.call_after_refresh(area.scroll_cursor_visible)  # once it has its height

    def action_leave(self) -> None:
        if self._warned or self.query_one("#text", TextArea).text == self._text:
            self.dismiss(False)
            return
        self._warned = True
        self._say("Unsaved changes: Ctrl+S to save, Esc again to discard.")

    @on(TextArea.Changed)
    def _typed(self) -> None:
        if self._warned:
            self._warned = False
            self._say("")

    @work(exclusive=True)
    async def action_save(self) -> None:
        try:
            await self._save(self.query_one("#text", TextArea).text)
        except HoldfastError as error:
            self._say(str(error))
        else:
            self.dismiss(True)

    def _say(self, problem: str) -> None:
        line = self.query_one("#problem", Static)
        line.update(Content(visible(problem)))
        line.display = bool(problem)
