"""The origin of a line of a file (`B`, as /why says it), and the session that it leads to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content

from tui.app.commands.why import line_answer
from tui.app.dialog_data import ShownLine
from tui.app.reports import Row
from tui.app.reports.why import WhyAnswer, why_report
from tui.context.blame import RecordedStep, fork_command, is_call
from tui.core.dataclass import replace
from tui.core.errors import HoldfastError
from tui.core.formatting import plural
from tui.core.paths import shorten
from tui.core.redaction import mask
from tui.core.text_cleaning import clean, one_line
from tui.ui.screens.read_session import ReadSessionScreen, fork_step
from tui.ui.toolkit.base_screen import copy
from tui.ui.widgets.dialog import SCROLL, Dialog
from tui.ui.widgets.keys import WHY_KEYS, bindings
from tui.ui.widgets.markdown.text import breaks
from tui.ui.widgets.panes import TextLines, hanging
from tui.ui.widgets.record_items import entry_of

if TYPE_CHECKING:
    from tui.ui.frontend import ScreenFrontend

SIGN_S: Final = 0.2
"""Seconds after which a search shows that it goes on."""
_TEXT_MIN: Final = 16
"""With fewer cells, what is said is under its name, not beside it."""
_LOOKS: Final = {"code": "$text-accent", "prompt": "bold $foreground"}
_READING: Final = "Reading the sessions…"


class _AnswerText(TextLines):
    """The answer, at any width."""

    DEFAULT_CSS = "_AnswerText { height: auto; }"

    def __init__(self, answer: WhyScreen) -> None:
        super().__init__()
        self._answer = answer

    def lines(self, width: int) -> list[Content]:
        return self._answer.lines(width)


class WhyScreen(Dialog[None]):
    """The answer about a line that a view showed; Left and Right ask about those around it. Enter
    opens the session, `f` continues from before its prompt."""

    DEFAULT_CSS = """
    WhyScreen #box { width: 96; }
    WhyScreen.-short #box { padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(WHY_KEYS),
        Binding("escape,q,ctrl+c", "dismiss", "close", show=False),
        Binding("l", "line(1)", show=False),
        Binding("h", "line(-1)", show=False),
        Binding("j,down", "scroll(1)", show=False),
        Binding("k,up", "scroll(-1)", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#box"

    def __init__(self, frontend: ScreenFrontend, line: ShownLine) -> None:
        super().__init__()
        self._frontend, self._line = frontend, line
        self._answer: WhyAnswer | None = None
        self.problem: HoldfastError | None = None
        """The reason why there is no answer."""
        self._waits = False
        self._chosen = 0

    def compose(self) -> ComposeResult:
        title = f"Why {one_line(shorten(self._line.path))}:{self._line.number}"
        box = VerticalScroll(can_focus=True)
        with self.framed(box, title, ("esc", "close")):
            yield _AnswerText(self)

    def on_mount(self) -> None:
        self._draw()
        self.ask()
        self.sign()

    @work(group="sign")
    async def sign(self) -> None:
        """Show that the search goes on, if it takes a while."""
        await self._frontend.services.clock.sleep(SIGN_S)
        self._waits = True
        self._draw()

    @work(group="ask")
    async def ask(self) -> None:
        """Find the answer and show it."""
        try:
            self._answer = await line_answer(self._frontend.conversation, self._line)
        except HoldfastError as error:
            self.problem = error
        self._draw()

    # What is shown

    @property
    def makers(self) -> Sequence[RecordedStep]:
        """The steps that may have written the line."""
        return self._answer.found.makers(self._answer.first - 1) if self._answer else ()

    @property
    def step(self) -> RecordedStep | None:
        """The step that the keys are about: the one, or the chosen candidate."""
        return self.makers[self._chosen] if self._chosen < len(self.makers) else None

    def _draw(self) -> None:
        if not self.is_mounted:
            return
        if self._answer is not None:
            title = why_report(self._answer, ways=False).title
            self.query_one("#box").border_title = Content(one_line(title))
        self.query_one(_AnswerText).refresh(layout=True)
        self._show_what_works()

    def lines(self, width: int) -> list[Content]:
        """Return what is said in rows of `width` cells."""
        if self._answer is not None:
            report = why_report(self._answer, ways=False)
            rows = self._with_choice(report.rows)
            return [*_drawn(rows, width), *_notes(report.notes, width)]
        if self.problem is not None:
            lines = _wrapped(self.problem.message, "$text-warning", width)
            return lines + _wrapped(self.problem.hint, "$text-muted", width)
        code = (self._line.text or "").strip()
        lines = _drawn([Row("code", (code,))], width) if code else []
        return lines + (_wrapped(_READING, "$text-muted", width) if self._waits else [Content("")])

    def _with_choice(self, rows: Iterable[Row | str]) -> Iterator[Row | str]:
        """Yield the rows, with a mark before the candidate that the keys are about."""
        number = 0
        for row in rows:
            if isinstance(row, str) and row.endswith(f" of {len(self.makers)}"):
                yield f"{'▸' if number == self._chosen else '·'} {row}"
                number += 1
            else:
                yield row

    def _show_what_works(self) -> None:
        step, answer = self.step, self._answer
        leads = step is not None and bool(step.session)
        several = answer is not None and len(answer.lines) > 1
        keys = (
            *((("enter", "open"),) if leads else ()),
            *((("f", "fork"),) if step and fork_command(step) else ()),
            *((("n", "next"),) if len(self.makers) > 1 else ()),
            *((("← →", "line"),) if several else ()),
            *((("y", "copy"),) if answer else ()),
            SCROLL,
            ("esc", "close"),
        )
        self.show_keys(*keys)

    # What the keys do

    def action_scroll(self, rows: int) -> None:
        self.query_one("#box").scroll_relative(y=rows, animate=False)

    def action_line(self, step: int) -> None:
        """Ask about the line before or after."""
        if (answer := self._answer) is None:
            return
        number = max(1, min(answer.first + step, len(answer.lines)))
        self._answer = replace(answer, first=number, last=number)
        self._chosen = 0
        self.note("")
        self._draw()

    def action_candidate(self, step: int) -> None:
        """Choose another of the steps that it may be."""
        if self.makers:
            self._chosen = (self._chosen + step) % len(self.makers)
            self._draw()

    def action_copy(self) -> None:
        """Copy the answer, with the commands that lead to its session."""
        if self._answer is not None:
            report = why_report(self._answer)
            text, secrets = mask("\n".join([report.title, *report.lines]))
            copy(self, text)
            if secrets:
                self.note(f"Removed {plural(secrets, 'secret')} from the copy.")

    @work(group="open", exclusive=True)
    async def action_open(self) -> None:
        """Show the session at the prompt: in the chat, if it is the one that is open there."""
        step, frontend = self.step, self._frontend
        if step is None or not step.session:
            self._say_nothing_leads()
            return
        app, agent = cast("App[Any]", self.app), frontend.conversation.agent
        beneath = app.screen_stack[-2:-1] == [frontend.chat]
        if agent is not None and agent.session.id == step.session and beneath:
            view = frontend.chat.conversation
            find = partial(entry_of, tuple(agent.session.records), step.prompt, tuple(view.items))
            if (item := await asyncio.to_thread(find)) is not None:
                self.dismiss(None)
                view.focus()
                view.go_to(item)
                return
        try:
            screen = await ReadSessionScreen.of(frontend, step)
        except HoldfastError as error:
            self.note(f"{error.message} {error.hint}".strip())
        else:
            app.push_screen(screen)

    def _say_nothing_leads(self) -> None:
        if self._answer is not None:
            self.note("No session wrote this line.")

    def action_fork(self) -> None:
        """Continue in a copy of the session that ends before the prompt."""
        step = self.step
        if step is None or not is_call(step):
            self._say_nothing_leads()
        elif why := fork_step(self._frontend, step):
            self.note(why)


def _drawn(rows: Iterable[Row | str], width: int) -> list[Content]:
    rows = [*rows]
    name = max((len(row.name) for row in rows if isinstance(row, Row)), default=0) + 2
    beside = width - name >= _TEXT_MIN
    room = width - name if beside else width - 2
    lines: list[Content] = []
    for row in rows:
        if isinstance(row, str):
            look = "$text-warning" if row.startswith("Uncertain") else "bold $foreground"
            lines += _wrapped(row, look, width) if row else [Content("")]
            continue
        head = Content.styled(f"{row.name:<{name}}" if beside else row.name, "$text-muted")
        if not beside:
            lines.append(head)
            head = Content("  ")
        look = _LOOKS.get(row.name, "$foreground")
        lines += hanging(head, _wrapped(", ".join(row.values), look, room) or [Content("")])
    return lines


def _notes(notes: Sequence[str], width: int) -> list[Content]:
    lines = [line for note in notes for line in _wrapped(note, "$text-warning", width)]
    return [Content(""), *lines] if lines else []


def _wrapped(text: str, look: str, width: int) -> list[Content]:
    shown = clean(text).expandtabs(4)
    pieces = breaks(shown, max(1, width)) if shown else []
    return [Content.styled(shown[piece.start : piece.end], look) for piece in pieces]
