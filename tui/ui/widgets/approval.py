"""The question before a write or a command: what would happen, why it is asked, five answers.

A key that was meant for the prompt must never approve. Keys and clicks count only after half a
second without a key; what is typed until then goes to the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from tui.core.clock import Clock
from tui.core.formatting import plural
from tui.core.text_cleaning import visible
from tui.permissions.types import REACHES, Answer, Call, Decision, written_rules
from tui.ui.widgets.dialog import SCROLL, Dialog, Grace, TextField
from tui.ui.widgets.diff import DiffView, counts
from tui.ui.widgets.keys import APPROVAL_KEYS, bindings, code_styled
from tui.ui.widgets.questions import Choice

_VERBS = {"command": "Run this command?", "diff": "Make this change?", "text": "Allow this?"}
_RISKS = {"safe": "$text-success", "standard": "$text-muted", "high-risk": "$text-error"}
_CHOICES = (
    ("1", "once", "once"),
    ("2", "this session", "session"),
    ("3", "always", "always"),
    ("4", "no, because …", "no"),
    ("esc", "no", "refuse"),
)
_LASTING = {"session", "always"}
_KEYS = (SCROLL, ("tab", "answers"))
_MARKS_MAX = 100
_MARK_CHARS = 2_000


class ApprovalModal(Dialog[Answer]):
    """Asks about one call. `stray` takes characters that were typed for the prompt."""

    BINDINGS = bindings(APPROVAL_KEYS)  # pyright: ignore[reportAssignmentType]
    AUTO_FOCUS: ClassVar[str | None] = "#preview"

    DEFAULT_CSS = """
    ApprovalModal { align: center bottom; }
    ApprovalModal #box { width: 100%; max-width: 120; max-height: 100%; padding: 0 2; }
    ApprovalModal #preview {
        height: auto; max-height: 40vh; margin: 1 0; background: $background; padding: 0 1;
        scrollbar-size-vertical: 1;
    }
    ApprovalModal.-whole #box { height: 100%; }
    ApprovalModal.-whole #preview { height: 1fr; max-height: 100%; }
    ApprovalModal #more { color: $text-warning; height: 1; margin: 0 0 1 0; display: none; }
    ApprovalModal.-more #preview { margin: 1 0 0 0; }
    ApprovalModal.-more #more { display: block; }
    ApprovalModal #why, ApprovalModal #covers { color: $text-muted; height: auto; }
    ApprovalModal #answers Choice { width: auto; margin: 0 1 0 0; background: $panel; }
    ApprovalModal #answers Choice:focus { background: $primary; }
    ApprovalModal.-narrow Choice { padding: 0; }
    ApprovalModal Input { display: none; margin: 1 0 0 0; padding: 0 1; background: $background; }
    ApprovalModal.-explaining Input { display: block; }
    ApprovalModal.-explaining #answers { display: none; }
    """

    def __init__(
        self,
        call: Call,
        decision: Decision,
        clock: Clock,
        stray: Callable[[str], object] | None = None,
    ) -> None:
        super().__init__(classes="-danger" if decision.risk == "high-risk" else "-warning")
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (72, "-wide")]
        self.call, self.decision = call, decision
        self._grace = Grace(clock, stray)

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), visible(self.call.tool), *_KEYS) as box:
            if risk := self.decision.risk:
                named = (f" · {risk}", _RISKS.get(risk, ""))
                wall = f" · ⛨ {self.decision.level}" if self.decision.walls else ""
                walled = (wall, "$text-muted")
                box.border_title = Content.assemble(visible(self.call.tool), named, walled)
            yield Static(self._question(), markup=False)
            with VerticalScroll(id="preview", can_focus=True):
                yield self._preview()
            yield Static(id="more", markup=False)
            why = code_styled(visible(self.decision.reason), "$text-secondary")
            yield Static(why, id="why", markup=False)
            yield Static(self._covers(), id="covers", markup=False)
            with Horizontal(id="answers"):
                for key, label, name in _CHOICES:
                    if self.decision.once and name in _LASTING:
                        continue
                    yield Choice(key, label, name)
            yield TextField(placeholder="Tell the model why (optional)")

    @property
    def armed(self) -> bool:
        """Whether keys and clicks count by now."""
        return self._grace.over

    def on_mount(self) -> None:
        preview = self.query_one("#preview", VerticalScroll)
        for seen in ("scroll_y", "virtual_size", "size"):
            self.watch(preview, seen, self._count_hidden, init=False)

    def _count_hidden(self) -> None:
        """Say how many lines do not fit, so that nobody answers to a part without knowing it."""
        preview = self.query_one("#preview", VerticalScroll)
        fits = preview.virtual_size.height <= preview.size.height
        above = round(preview.scroll_y)
        below = max(0, preview.virtual_size.height - preview.size.height - above)
        said = [f"{above:,} more above"] if above else []
        said += [f"{plural(below, 'more line')} below"] if below else []
        self.set_class(not fits, "-more")
        self.query_one("#more", Static).update(
            f"… {', '.join(said)} · v {'smaller' if self.has_class('-whole') else 'shows more'}"
        )

    def on_key(self, event: events.Key) -> None:
        self._grace.takes(event)

    def action_whole(self) -> None:
        if self.armed:
            self.toggle_class("-whole")
            self.call_after_refresh(self._count_hidden)

    def action_answer(self, answer: Literal["once", "session", "always"]) -> None:
        if self.armed and not (self.decision.once and answer in _LASTING):
            self.dismiss(Answer(answer))

    def action_explain(self) -> None:
        if self.armed:
            self.add_class("-explaining")
            self.show_keys(("enter", "decline"), ("esc", "back"))
            self.query_one(Input).focus()

    def action_refuse(self) -> None:
        if self.has_class("-explaining"):
            self.remove_class("-explaining")
            self.show_keys(*_KEYS)
            self.query_one("#preview").focus()
        elif self.armed:
            self.dismiss(Answer("no"))

    @on(Input.Submitted)
    def _answer_no(self, event: Input.Submitted) -> None:
        self.dismiss(Answer("no", event.value.strip()))

    @on(Choice.Answered)
    def _chosen(self, event: Choice.Answered) -> None:
        match event.name:
            case "once" | "session" | "always" as answer:
                self.action_answer(answer)
            case "no":
                self.action_explain()
            case _:
                self.action_refuse()

    def _question(self) -> Content:
        question = Content.styled(_VERBS[self.call.preview_kind], "bold $foreground")
        if self.call.preview_kind == "diff":
            changes = f"  {visible(self.call.subject)}  {counts(self.call.preview)}"
            return Content.assemble(question, (changes, "$text-muted"))
        return question

    def _preview(self) -> Widget:
        text = self.call.preview or self.call.subject or "(nothing to show)"
        if self.call.preview_kind == "diff":
            return DiffView(text)
        if self.call.preview_kind == "command":
            return Static(_marked(text, self.decision.marks), markup=False)
        return Static(visible(text), markup=False)

    def _covers(self) -> str:
        if self.decision.once:
            return f"You're asked each time. {REACHES[self.decision.level]}."
        what = self.call.scope or f"later calls to {self.call.tool} just like this one"
        covers = f"2/3 allow {visible(what)}."
        if rules := written_rules(self.call):
            covers += f" {rules}"
        if self.call.command is not None:
            covers += f" {REACHES[self.decision.level]}."
        elif self.call.effect == "run":
            covers += " Its server can reach beyond this folder."
        return covers


def _marked(command: str, marks: Sequence[str]) -> Content:
    """A command, with the parts of it that are risky in the colour of danger."""
    pieces: list[tuple[str, str]] = [("$ ", "$text-primary")]
    at = 0
    for start, end in _spans(command, marks):
        pieces.append((visible(command[at:start]), "bold $foreground"))
        pieces.append((visible(command[start:end]), "bold underline $text-error"))
        at = end
    return Content.assemble(*pieces, (visible(command[at:]), "bold $foreground"))


def _spans(command: str, marks: Sequence[str]) -> list[tuple[int, int]]:
    """Where the parts stand, in their order: a part has lost its redirections and its spaces."""
    found: list[tuple[int, int]] = []
    end = 0
    for mark in marks[:_MARKS_MAX]:
        words = mark.split()
        if len(mark) > _MARK_CHARS or not words:
            continue
        pattern = re.compile(r"(?:\s|\\\n)+".join(map(re.escape, words)))
        one = pattern.search(command, end) or pattern.search(command)
        if one and all(one.end() <= start or stop <= one.start() for start, stop in found):
            found.append(one.span())
            end = one.end()
    return sorted(found)
