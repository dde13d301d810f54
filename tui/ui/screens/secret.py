"""A secret that a program in a terminal reads, such as a password: the dialog that asks for it.

What is typed here is in the field and in the answer, and nowhere else: it can't be copied or cut,
no draft or history gets it, and it is never drawn. Therefore the field has the keyboard at once.
Only someone who was typing a prompt when it opened continues there until they pause.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal, TypeAlias, cast

from textual import events, on
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Input, Static

from tui.core.questions import SecretAnswer, SecretQuestion
from tui.core.text_cleaning import one_line, visible
from tui.ui.toolkit.answer_guard import QUIET_S, AnswerPlace, Noting
from tui.ui.toolkit.base_app import ThemedApp
from tui.ui.widgets.dialog import PAGES, AskedAbout, Dialog, TextField
from tui.ui.widgets.questions import Choice

SecretOutcome: TypeAlias = SecretAnswer | Literal["stop"]

ONE_LINE: Final = "A secret is one line: this has more."
ABOUT: Final = (
    "Only this program gets it; Holdfast saves it nowhere. A program that prints it shows it to the"
    " model, so check what asks: the model may have written it."
)


class SecretField(TextField):
    """A field whose text is never shown, copied or cut."""

    cursor_blink = reactive(False, init=False)

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        # Focus selects nothing: the next key would replace the text, and dots don't show that.
        super().__init__(password=True, id=id, select_on_focus=False)

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        text = event.text.strip("\n")
        if "\n" in text:
            cast("Noting", self.screen).note(ONE_LINE)
        else:
            self.replace(text, *self.selection)

    def action_copy(self) -> None:
        raise SkipAction

    def action_cut(self) -> None:
        raise SkipAction


class SecretModal(Dialog[SecretOutcome], AnswerPlace):
    """Dismissed with the answer, "stop" to stop the program, or None."""

    awaited = True
    unasked = True
    takes_text = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "don't answer", show=False),
        Binding("ctrl+c", "app.interrupt", "stop the agent", show=False),
        Binding("tab,down", "app.focus_next", show=False),
        Binding("shift+tab,up", "app.focus_previous", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#secret"

    DEFAULT_CSS = """
    SecretModal #asked { height: auto; }
    SecretModal #prompt { margin: 1 0 0 0; padding: 0 1; background: $background; height: auto; }
    SecretModal #row { height: 1; margin: 1 0 0 0; padding: 0 1; background: $background; }
    SecretModal #about { height: auto; margin: 1 0 0 0; color: $text-muted; }
    SecretModal.-short #prompt, SecretModal.-short #row, SecretModal.-short #about { margin: 0; }
    SecretModal.-tiny #about { display: none; }
    """

    def __init__(self, question: SecretQuestion) -> None:
        super().__init__(classes="-question -warning")
        self.question = question
        self._prompt_from = float("-inf")
        """The time of the last key that was still meant for the prompt."""

    def compose(self) -> ComposeResult:
        asks = self.question
        title = f"A program asks for a secret · {one_line(visible(asks.terminal))}"
        keys = (PAGES, ("enter", "send"), ("tab", "other answers"), ("esc", "don't answer"))
        with self.framed(Vertical(), title, *keys):
            with AskedAbout(id="asked"):
                yield Static(Content(one_line(visible(asks.command))), classes="text", markup=False)
                if asker := one_line(visible(asks.asker)):
                    yield Static(Content(asker), classes="text", markup=False)
                prompt = one_line(visible(asks.prompt)).strip()
                yield Static(prompt or "(it shows no question)", id="prompt", markup=False)
            with Vertical(id="row"):
                yield SecretField(id="secret")
            yield Static(ABOUT, id="about", markup=False)
            with Vertical(id="answers"):
                yield Choice("enter", "Send", "send")
                yield Choice("↓", "Stop the program", "stop")
                yield Choice("esc", "Don't answer", "none")

    @property
    def waits_as(self) -> str:
        return f"{self.question.terminal} waits for a secret."

    @property
    def _app(self) -> ThemedApp:
        return cast("ThemedApp", self.app)  # pyright: ignore[reportUnknownMemberType] - Textual's

    @property
    def unseen(self) -> bool:
        return False

    def on_mount(self) -> None:
        app = self._app
        self.await_quiet()
        self.field_from = app.clock.monotonic()
        if app.guard.drafts(self.field_from):
            self._prompt_from = app.arrived_at
            self.note("Typing goes into your draft; pause to answer.")

    def on_resize(self) -> None:
        super().on_resize()
        self.call_after_refresh(self._make_room)

    def _make_room(self) -> None:
        if self.is_attached:
            others = ("#row", "#about", "#answers")
            parts = [part for name in others for part in self.query(name) if part.display]
            taken = sum(part.outer_size.height + part.styles.margin.top for part in parts)
            self.query_one("#asked").styles.max_height = self.free_rows(taken)

    def takes(self, event: events.Key | events.Paste) -> bool:
        """Pass on to the prompt what belongs to what was being typed there."""
        app, now = self._app, self._app.arrived_at
        draft = app.guard.draft
        if draft is None or now - self._prompt_from >= QUIET_S:
            if self._prompt_from > float("-inf"):
                self._prompt_from = float("-inf")
                self.field_from = now
                self.note("")
            return super().takes(event)
        if isinstance(event, events.Key) and event.is_printable and event.character:
            draft.insert(event.character)
        elif not isinstance(event, events.Key) or event.key not in {"enter", "backspace"}:
            return super().takes(event)
        self._prompt_from = now
        return True

    def on_key(self, event: events.Key) -> None:
        """Type into the field from everywhere."""
        field = self.query_one(SecretField)
        if event.is_printable and event.character and not field.has_focus:
            event.stop()
            field.focus()
            field.insert_text_at_cursor(event.character)

    def on_paste(self, event: events.Paste) -> None:
        field = self.query_one(SecretField)
        field.focus()
        field.on_paste(event)

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        self._send()

    @on(Choice.Answered)
    def _chosen(self, event: Choice.Answered) -> None:
        match event.name:
            case "send":
                self._send()
            case "stop":
                self.dismiss("stop")
            case _:
                self.dismiss(None)

    def _send(self) -> None:
        field = self.query_one(SecretField)
        answer = SecretAnswer(bytearray(field.value, "utf-8", "replace"))
        field.value = ""
        self.dismiss(answer)

    def action_leave(self) -> None:
        self.dismiss(None)
