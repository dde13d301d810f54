"""n on the desk: a new session, in a folder of one of its machines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from tui.core.dataclass import dataclass
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line
from tui.ui.toolkit.answer_guard import AnswerPlace
from tui.ui.widgets.answer_field import NEW_LINE, AnswerField
from tui.ui.widgets.dialog import Dialog, TextField

_KEYS: Final = (("enter", "start"), ("tab", "next field"), NEW_LINE, ("esc", "cancel"))


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session to be started: the name of its machine, its folder there, and its prompt."""

    host: str
    cwd: str
    prompt: str


class HostChoice(Widget, can_focus=True):
    """One of several machines, "" for this one; the arrow keys and a click go on to the next."""

    DEFAULT_CSS = """
    HostChoice { height: 1; padding: 0 1; background: $background; color: $foreground; }
    HostChoice:focus { background: $primary; color: $background; text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,space", "turn(1)", show=False),
        Binding("left", "turn(-1)", show=False),
        Binding("enter", "done", show=False),
    ]

    class Done(Message):
        """Enter was pressed."""

    def __init__(self, names: Sequence[str], chosen: str) -> None:
        super().__init__(id="host")
        self._names = names
        self._at = names.index(chosen) if chosen in names else 0

    @property
    def chosen(self) -> str:
        return self._names[self._at]

    def render(self) -> Content:
        return Content(f"‹ {one_line(self.chosen) or 'this machine'} ›")

    def action_turn(self, step: int) -> None:
        self._at = (self._at + step) % len(self._names)
        self.refresh()

    def action_done(self) -> None:
        self.post_message(self.Done())

    def on_click(self) -> None:
        self.action_turn(1)


class NewSessionDialog(Dialog[NewSession | None], AnswerPlace):
    """Dismissed with the session to start; None for Esc, which a second press confirms once
    something was written. It begins with `draft`, which was refused for the reason `problem`."""

    awaited = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "leave", "cancel", show=False),
        Binding("up", "app.focus_previous", show=False),
        Binding("down", "app.focus_next", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#prompt"
    DEFAULT_CSS = """
    NewSessionDialog .label { height: 1; color: $text-muted; }
    NewSessionDialog #folder, NewSessionDialog HostChoice { margin: 0 0 1 0; }
    NewSessionDialog #folder { padding: 0 1; background: $background; }
    NewSessionDialog AnswerField { min-height: 4; }
    NewSessionDialog #problem { height: auto; color: $text-error; margin: 1 0 0 0; display: none; }
    NewSessionDialog.-short #folder, NewSessionDialog.-short HostChoice { margin: 0; }
    NewSessionDialog.-short #problem { margin: 0; }
    NewSessionDialog.-tiny AnswerField { min-height: 1; max-height: 3; }
    """

    def __init__(self, hosts: Sequence[str], draft: NewSession, problem: str = "") -> None:
        super().__init__()
        self._hosts, self._draft, self._problem = hosts, draft, problem
        self._cwd = one_line(draft.cwd if draft.host else shorten(Path(draft.cwd)))
        self._warned = False

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), "new session", *_KEYS):
            if len(self._hosts) > 1:
                yield Static("Machine", classes="label", markup=False)
                yield HostChoice(self._hosts, self._draft.host)
            yield Static("Folder", classes="label", markup=False)
            yield TextField(self._cwd, id="folder")
            yield Static("Prompt", classes="label", markup=False)
            yield AnswerField("What should it do?", id="prompt")
            yield Static("", id="problem", markup=False)

    def on_mount(self) -> None:
        super().on_mount()
        if self._draft.prompt:
            self.query_one("#prompt", AnswerField).insert(self._draft.prompt)
        self._say(self._problem)

    @on(HostChoice.Done)
    @on(Input.Submitted, "#folder")
    def _next_field(self) -> None:
        self.focus_next()

    @on(AnswerField.Entered)
    def _entered(self, event: AnswerField.Entered) -> None:
        host = next((one.chosen for one in self.query(HostChoice)), self._hosts[0])
        cwd = self.query_one("#folder", TextField).value.strip()
        if not host:
            cwd = str(Path(cwd or ".").expanduser().absolute())
        problem = ""
        if not event.text:
            problem = "Write what the session should do."
        elif not host and not Path(cwd).is_dir():
            problem = f"There's no folder {shorten(Path(cwd))}."
        if problem:
            self._say(problem)
        else:
            self.dismiss(NewSession(host, cwd, event.text))

    def action_leave(self) -> None:
        if self._warned or not self.query_one("#prompt", AnswerField).value.strip():
            self.dismiss(None)
            return
        self._warned = True
        self._say("Esc again discards the prompt.")

    @on(AnswerField.Changed)
    @on(Input.Changed)
    def _edited(self) -> None:
        prompt = self.query_one("#prompt", AnswerField).value
        if (self.query_one("#folder", TextField).value, prompt) == (self._cwd, self._draft.prompt):
            return  # it only shows what it began with
        self._warned = False
        self._say("")

    def _say(self, problem: str) -> None:
        line = self.query_one("#problem", Static)
        line.update(Content(one_line(problem)))
        line.display = bool(problem)
