"""Open work of an earlier run, above the prompt of a resumed session, and the person's options."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content

from tui.core.dataclass import dataclass
from tui.core.formatting import plural
from tui.core.text_cleaning import one_line
from tui.ui.widgets.panes import TextLines
from tui.ui.widgets.questions import Choice, ChoicePlace

_APART = "   "
_TIGHT = 50
"""With fewer cells, the answers are placed close together, so that all are visible."""


@dataclass(frozen=True, slots=True)
class OpenItem:
    """One thing that was left open: what it is, and what is known about it."""

    name: str
    label: str
    known: str
    certain: bool = True


class ResumeCard(Vertical, ChoicePlace):
    """Never takes the focus by itself. `act` gets the chosen option: tell, again, leave, or
    stop."""

    takes_text = True

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "answer('tell')", show=False),
        Binding("a", "answer('again')", show=False),
        Binding("l", "answer('leave')", show=False),
        Binding("s", "answer('stop')", show=False),
        Binding("left", "app.focus_previous", show=False),
        Binding("right", "app.focus_next", show=False),
    ]

    DEFAULT_CSS = """
    ResumeCard { height: auto; max-height: 13; width: 1fr; background: $warning-muted; }
    ResumeCard #resume-title { height: auto; padding: 0 1; }
    ResumeCard #resume-items {
        height: auto; max-height: 6; padding: 0 1 0 3; scrollbar-size-vertical: 1;
        scrollbar-background: $warning-muted; scrollbar-background-hover: $warning-muted;
        scrollbar-background-active: $warning-muted; scrollbar-color: $text-warning 50%;
    }
    ResumeCard > .ways { height: auto; padding: 0 2; }
    ResumeCard Choice { width: auto; }
    ResumeCard.-tight > .ways { padding: 0 1; }
    ResumeCard.-tight Choice { padding: 0; }
    """

    def __init__(
        self,
        calls: Sequence[OpenItem],
        commands: Sequence[OpenItem],
        act: Callable[[str], Coroutine[Any, Any, None]],
    ) -> None:
        super().__init__()
        self._act, self._calls, self._commands = act, calls, commands

    def compose(self) -> ComposeResult:
        facts = [plural(len(self._calls), "call") + " without a result"] if self._calls else []
        if self._commands:
            facts.append(plural(len(self._commands), "command") + " still running")
        title = Content.styled("■ the last run was interrupted", "bold $text-warning")
        yield _Pair(title, Content.styled(" · ".join(facts), "$text-muted"), id="resume-title")
        with VerticalScroll(id="resume-items", can_focus=False):
            for item in (*self._calls, *self._commands):
                label = f" {one_line(item.label)}" if item.label else ""
                what = Content.assemble((item.name, "bold $foreground"), (label, "$foreground"))
                look = "$text-muted" if item.certain else "$text-warning"
                yield _Pair(what, Content.styled(item.known, look))
        if self._calls:
            with Horizontal(classes="ways"):
                yield Choice("t", "Tell the model", "tell")
                yield Choice("a", "Run again", "again")
                yield Choice("l", "Skip it", "leave")
        if self._commands:
            with Horizontal(classes="ways"):
                yield Choice("s", "Stop the command" + "s" * (len(self._commands) > 1), "stop")

    def on_resize(self) -> None:
        self.set_class(self.size.width < _TIGHT, "-tight")

    @on(Choice.Answered)
    def _chosen(self, event: Choice.Answered) -> None:
        event.stop()
        work = self._act(event.name)
        self.app.run_worker(work, group="card")  # pyright: ignore[reportUnknownMemberType]

    def answers_key(self, event: events.Key) -> bool:
        keys = {choice.key for choice in self.query(Choice)}
        return event.key in keys or event.key in {"enter", "space"}

    def action_answer(self, name: str) -> None:
        if choice := next((c for c in self.query(Choice) if c.name == name), None):
            choice.action_choose()


class _Pair(TextLines):
    """A thing and a fact about it: in one row if there is room, else in rows of their own."""

    DEFAULT_CSS = "_Pair { height: auto; width: 1fr; }"

    def __init__(self, what: Content, said: Content, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._what, self._said = what, said

    def lines(self, width: int) -> list[Content]:
        if self._what.cell_length + self._said.cell_length + len(_APART) <= width:
            return [Content.assemble(self._what, _APART, self._said)]
        indent = Content("  ")
        facts = self._said.wrap(max(8, width - 2))
        return [
            self._what.truncate(width, ellipsis=True),
            *(Content.assemble(indent, row) for row in facts),
        ]
