"""Questions of the model or of an MCP server to the person, one page each, in a dialog below the
conversation.

One row of a page takes an answer in the person's own words, if that is allowed. Keys and clicks
count only after half a second without a key, on each page: a key held too long on one never answers
the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual import events, on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.widgets import Static

from tui.core.questions import UserAnswer, UserQuestion
from tui.core.text_cleaning import one_line, visible
from tui.ui.widgets.answer_field import NEW_LINE, AnswerField
from tui.ui.widgets.dialog import PAGES, AskedAbout, Beneath, Dialog, Key
from tui.ui.widgets.keys import QUESTION_KEYS, bindings
from tui.ui.widgets.markdown.text import breaks
from tui.ui.widgets.panes import hanging
from tui.ui.widgets.questions import Choice, ChoicePlace

_OWN: Final = "own"
"""The name of the row for the person's own words."""
_TINY: Final = 16
"""With fewer rows on the screen, a choice has one row."""
_GAP: Final = "  "


class AnswerRow(Choice, inherit_bindings=False):
    """A choice with its description, beside the label if there is room, else below it. Its keys are
    those of the dialog."""

    DEFAULT_CSS = "AnswerRow { height: auto; text-wrap: wrap; }"

    def __init__(self, key: str, label: str, name: str, description: str = "") -> None:
        super().__init__(key, label, name)
        self.marked: bool | None = None
        """True or False if several choices may be marked; None if only one is taken."""
        self._text, self._about = one_line(visible(label)), one_line(visible(description))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return len(self._lines(width))

    def render(self) -> Content:
        return Content("\n").join(self._lines(self.content_size.width))

    def _lines(self, width: int) -> list[Content]:
        key, muted = ("", "") if self.has_focus else ("$text-accent", "$text-muted")
        mark = "" if self.marked is None else "[x] " if self.marked else "[ ] "
        head = Content.assemble((self.key, key), f" {mark}")
        room = max(8, width - head.cell_length)
        beside = len(self._text) + len(_GAP) + len(self._about)
        if self._about and (beside <= room or self.screen.size.height < _TINY):
            line = Content.assemble((self._text, "bold"), _GAP, (self._about, muted))
            return [Content.assemble(head, line).truncate(width, ellipsis=True)]
        rows = [Content.styled(part, "bold") for part in _rows(self._text, room)]
        rows += [Content.styled(part, muted) for part in _rows(self._about, room)]
        return hanging(head, rows)


def _number(row: AnswerRow, kind: str) -> int | None:
    """Return the number of the choice or way that a row is for; None for a row of another kind."""
    name = row.name or ""
    return int(name.removeprefix(kind)) if name.startswith(kind) else None


def _rows(text: str, width: int) -> list[str]:
    return [text[piece.start : piece.end] for piece in breaks(text, width)] if text else []


class QuestionnaireModal(Dialog[tuple[UserAnswer, ...]], ChoicePlace):
    """Dismissed with the answers given before the person left by Esc, or all of them. `begins` gets
    the row of the terminal in which the dialog begins."""

    awaited = True
    unasked = True
    BINDINGS = bindings(QUESTION_KEYS)  # pyright: ignore[reportAssignmentType]
    AUTO_FOCUS: ClassVar[str | None] = ""

    DEFAULT_CSS = """
    QuestionnaireModal { align: center bottom; background: $background 20%; }
    QuestionnaireModal #box { width: 100%; max-width: 100%; max-height: 100%; padding: 0 2; }
    QuestionnaireModal #box > * { max-width: 116; }
    QuestionnaireModal.-tall #box { padding: 1 2; }
    QuestionnaireModal #asked { height: auto; scrollbar-size-vertical: 1; }
    QuestionnaireModal #text { margin: 0 0 1 0; }
    QuestionnaireModal.-tiny #text { margin: 0; }
    QuestionnaireModal #answers { height: auto; margin: 0; scrollbar-size-vertical: 1; }
    QuestionnaireModal #words { display: none; margin: 1 0 0 0; }
    QuestionnaireModal.-writing #words { display: block; }
    QuestionnaireModal.-short #words { margin: 0; }
    """

    def __init__(
        self,
        questions: Sequence[UserQuestion],
        agent: str,
        beneath: Beneath | None = None,
    ) -> None:
        super().__init__()
        self.questions, self.agent = questions, agent
        self._beneath = beneath
        self._answers: list[UserAnswer] = []
        self._rows: list[AnswerRow] = []

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), "", *self._page_keys) as box:
            box.border_title = self._title()
            with AskedAbout(id="asked"):
                text = visible(self._question.text)
                yield Static(text, id="text", classes="text", markup=False)
            with AskedAbout(id="answers"):
                yield from self._page_rows()
            yield AnswerField("Your answer", id="words")

    @property
    def _question(self) -> UserQuestion:
        return self.questions[len(self._answers)]

    @property
    def _page_keys(self) -> tuple[Key, ...]:
        if self.has_class("-writing"):
            return (("enter", "answer"), NEW_LINE, ("esc", "back"))
        mark = (("space", "mark"),) if self._question.several else ()
        back = (("←", "previous"),) if self._answers else ()
        return (PAGES, *mark, ("enter", "answer"), *back, ("esc", "don't answer"))

    def on_mount(self) -> None:
        super().on_mount()
        self.await_quiet()
        self._rows[0].focus()

    def on_resize(self) -> None:
        super().on_resize()
        self.call_after_refresh(self._fit)

    def answers_key(self, event: events.Key) -> bool:
        return self._row_of(event) is not None or super().answers_key(event)

    def on_key(self, event: events.Key) -> None:
        if row := None if self.has_class("-writing") else self._row_of(event):
            event.stop()
            self._choose(row)

    def _row_of(self, event: events.Key) -> AnswerRow | None:
        return next((row for row in self._rows if row.key == event.key), None)

    def _page_rows(self) -> Sequence[AnswerRow]:
        """Return new rows for the first question without an answer."""
        question = self._question
        self._rows = [
            AnswerRow("", choice.label, f"choice-{number}", choice.description)
            for number, choice in enumerate(question.choices, 1)
        ]
        for row in self._rows if question.several else ():
            row.marked = False
        if question.own == "first":
            self._rows.insert(0, AnswerRow("", "Write an answer…", _OWN))
        elif question.own == "last":
            self._rows.append(AnswerRow("", "In your own words…", _OWN))
        self._rows += [
            AnswerRow("", way.label, f"way-{number}", way.description)
            for number, way in enumerate(question.ways, 1)
        ]
        for number, row in enumerate(self._rows, 1):
            row.key = str(number)
        return self._rows

    def _title(self) -> Content:
        place = f" · {len(self._answers) + 1} of {len(self.questions)}"
        server = self._question.server
        return Content.assemble(
            one_line(visible(self._question.header)),
            (place if len(self.questions) > 1 else "", "$text-muted"),
            (f" · MCP server {one_line(visible(server))}" if server else "", "$text-warning"),
            (f" · {one_line(visible(self.agent))}" if self.agent else "", "$text-secondary"),
        )

    def _fit(self) -> None:
        """Give the answers the rows that they need; if that is too much, both parts scroll."""
        if not self.is_attached:
            return
        answers, asked = self.query_one("#answers"), self.query_one("#asked")
        own = self.query_one("#words")
        field_rows = own.outer_size.height + own.styles.margin.top if own.display else 0
        room = self.size.height - (4 if self.has_class("-tall") else 2) - field_rows
        answer_rows = min(answers.virtual_size.height, max(1, room - 1))
        answers.styles.max_height = answer_rows
        asked.styles.max_height = max(1, room - answer_rows)
        if self._beneath is not None:
            self._beneath.leave_room(self.query_one("#box").region.y)
        self.call_after_refresh(self._foot)

    def action_answer(self) -> None:
        """Enter: take the marked answers; without any, the focused row."""
        marked = [row for row in self._rows if row.marked]
        focused = next((row for row in self._rows if row.has_focus), None)
        if marked and focused is not None and focused.marked is not None:
            self._take(UserAnswer(self._marked_labels))
        elif focused is not None:
            self._choose(focused, mark=False)

    def action_mark(self) -> None:
        """Space: mark the focused row; if only one answer is taken, take it."""
        if row := next((row for row in self._rows if row.has_focus), None):
            self._choose(row)

    def action_back(self) -> None:
        """Return to the previous question."""
        if self._answers and not self.has_class("-writing"):
            del self._answers[-1:]
            self._turn_page()

    def action_leave(self) -> None:
        if self.has_class("-writing"):
            self.remove_class("-writing")
            self.show_keys(*self._page_keys)
            next(row for row in self._rows if row.name == _OWN).focus()
            self.call_after_refresh(self._fit)
        else:
            self.dismiss(tuple(self._answers))

    @on(Choice.Answered)
    def _clicked(self, event: Choice.Answered) -> None:
        if row := next((row for row in self._rows if row.name == event.name), None):
            self._choose(row)

    @on(AnswerField.Entered)
    def _written(self, event: AnswerField.Entered) -> None:
        if event.text:
            self._take(UserAnswer(self._marked_labels, event.text))

    @on(AnswerField.Changed)
    def _grown(self) -> None:
        self.call_after_refresh(self._fit)

    def _choose(self, row: AnswerRow, *, mark: bool = True) -> None:
        """Take a row, or mark it if several may be taken."""
        row.focus()
        if row.name == _OWN:
            self.add_class("-writing")
            self.show_keys(*self._page_keys)
            self.query_one("#words").focus()
            self.call_after_refresh(self._fit)
        elif row.marked is not None and mark:
            row.marked = not row.marked
            row.refresh(layout=True)
        elif (number := _number(row, "way-")) is not None:
            self._take(UserAnswer(way=self._question.ways[number - 1].label))
        else:
            self._take(UserAnswer((self._label_of(row),)))

    @property
    def _marked_labels(self) -> tuple[str, ...]:
        return tuple(self._label_of(row) for row in self._rows if row.marked)

    def _label_of(self, row: AnswerRow) -> str:
        return self._question.choices[(_number(row, "choice-") or 1) - 1].label

    def _take(self, answer: UserAnswer) -> None:
        ends = answer.ends(self._question)
        self._answers.append(answer)
        if ends or len(self._answers) == len(self.questions):
            self.dismiss(tuple(self._answers))
        else:
            self._turn_page()

    @work(exclusive=True)
    async def _turn_page(self) -> None:
        self.await_quiet()
        answers = self.query_one("#answers")
        with self.app.batch_update():  # pyright: ignore[reportUnknownMemberType] - Textual's App
            self.remove_class("-writing")
            self.query_one("#words", AnswerField).clear()
            self.query_one("#box").border_title = self._title()
            self.query_one("#text", Static).update(visible(self._question.text))
            self.query_one("#asked").scroll_home(animate=False)
            await answers.remove_children()
            await answers.mount(*self._page_rows())
        self._rows[0].focus()
        self.show_keys(*self._page_keys)
        self.call_after_refresh(self._fit)
