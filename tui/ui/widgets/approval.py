"""The question before a write or a command: its effect, the reason for asking, and the answers.

The title names the call, the answers say what they cover; the rest of the room is for what is asked
about. `Enter` gives the marked answer: yes, once; for a high-risk call it is no.

A key that was meant for the prompt must never approve: see `tui.ui.toolkit.answer_guard`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Literal

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from tui.core.formatting import plural
from tui.core.text_cleaning import one_line, visible
from tui.permissions.types import REACHES, Answer, Call, Decision, always_in_words, written_rules
from tui.tools.registry import title, verb
from tui.ui.widgets.answer_field import NEW_LINE, AnswerField
from tui.ui.widgets.dialog import SCROLL, Beneath, Dialog
from tui.ui.widgets.diff import DiffView, counts
from tui.ui.widgets.keys import APPROVAL_KEYS, bindings, code_styled
from tui.ui.widgets.questions import Choice, ChoicePlace

_LASTING = {"session", "always"}
_LOW, _TALL = 24, 30
"""With fewer rows than the first, a long question takes all of them; from the second on there is
room for empty rows and for what "always" writes down."""
_EDGES = 2
_KEYS = (SCROLL, ("← →", "choose"), ("enter", "answer"))
_MARKS_MAX = 100
_MARK_CHARS = 2_000


class ApprovalModal(Dialog[Answer], ChoicePlace):
    """Asks about one call. `begins` gets the row of the terminal in which the question begins."""

    awaited = True
    unasked = True
    BINDINGS = bindings(APPROVAL_KEYS)  # pyright: ignore[reportAssignmentType]
    AUTO_FOCUS: ClassVar[str | None] = ""

    DEFAULT_CSS = """
    ApprovalModal { align: center bottom; background: $background 20%; }
    ApprovalModal #box { width: 100%; max-width: 120; max-height: 100%; padding: 0 2; }
    ApprovalModal #preview {
        height: auto; background: $background; padding: 0 1;
        scrollbar-size-vertical: 1;
    }
    ApprovalModal.-long #box { height: 75%; }
    ApprovalModal.-long.-low #box, ApprovalModal.-long.-whole #box { height: 100%; }
    ApprovalModal.-long #preview { height: 1fr; }
    ApprovalModal #more { color: $text-warning; height: 1; display: none; }
    ApprovalModal.-more #more { display: block; }
    ApprovalModal #why, ApprovalModal #written { color: $text-muted; height: auto; }
    ApprovalModal #written { display: none; }
    ApprovalModal.-whole #written { display: block; }
    ApprovalModal #answers { margin: 0; }
    ApprovalModal #answers Horizontal { height: 1; }
    ApprovalModal #answers Choice {
        width: auto; margin: 0 1 0 0; background: $panel;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    ApprovalModal.-tall #box { padding: 1 2; }
    ApprovalModal.-tall #written { display: block; }
    ApprovalModal.-tall #preview { margin: 0 0 1 0; }
    ApprovalModal.-tall.-more #preview { margin: 0; }
    ApprovalModal.-tall #more { margin: 0 0 1 0; }
    ApprovalModal.-tall #answers { margin: 1 0 0 0; }
    ApprovalModal #answers Choice:focus { background: $primary; }
    ApprovalModal.-narrow Choice { padding: 0; }
    ApprovalModal AnswerField { display: none; }
    ApprovalModal.-explaining AnswerField { display: block; }
    ApprovalModal.-explaining #answers { display: none; }
    """

    def __init__(
        self,
        call: Call,
        decision: Decision,
        beneath: Beneath | None = None,
    ) -> None:
        super().__init__(classes="-danger" if decision.risk == "high-risk" else "-warning")
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (72, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-short"), (_TALL, "-tall")]
        self.call, self.decision = call, decision
        self._beneath = beneath

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), "", *_KEYS) as box:
            box.border_title = self._title()
            with VerticalScroll(id="preview", can_focus=False):
                yield self._preview()
            yield Static(id="more", markup=False)
            if why := self._why():
                yield Static(why, id="why", markup=False)
            if not self.decision.once and (rules := written_rules(self.call)):
                yield Static(rules, id="written", markup=False)
            with Vertical(id="answers"):
                with Horizontal(id="yes"):
                    yield Choice("1", "yes", "once")
                    if not self.decision.once:
                        yield Choice("2", f"{self._scope()}, this session", "session")
                        yield Choice("3", always_in_words(self.decision), "always")
                with Horizontal():
                    yield Choice("4", "no, because …", "no")
                    yield Choice("esc", "no", "refuse")
            yield AnswerField("Tell the model why (optional)")

    def on_mount(self) -> None:
        self.await_quiet()
        preview = self.query_one("#preview", VerticalScroll)
        for seen in ("scroll_y", "virtual_size", "size"):
            self.watch(preview, seen, self._count_hidden, init=False)
        self._mark_usual()

    def on_resize(self) -> None:
        super().on_resize()
        self._make_room()
        self.call_after_refresh(self._fit_scope)
        self.call_after_refresh(self._tell_row)

    def _tell_row(self) -> None:
        if self.is_attached and self._beneath is not None:
            self._beneath.leave_room(self.query_one("#box").region.y)

    def _make_room(self) -> None:
        """Give a text longer than half the screen what the answers leave of three quarters; on a
        low screen, all that they leave."""
        height = self.size.height
        self.set_class(height < _LOW, "-low")
        before = self.has_class("-long")
        others = self.query("#why, #written, #answers").results(Widget)
        taken = _EDGES + sum(part.outer_size.height for part in others if part.display)
        for part in self.query("#preview > *"):
            long = part.virtual_size.height
            self.set_class(2 * long > height or long + taken > height, "-long")
        if self.has_class("-long") is not before:
            self.call_after_refresh(self._count_hidden)

    def _mark_usual(self) -> None:
        self.query_one("#refuse" if self._risky else "#once").focus()

    def _fit_scope(self) -> None:
        """Shorten what "this session" covers if the row is too narrow for it."""
        for row in self.query("#yes"):
            others = sum(child.outer_size.width + 1 for child in row.children[::2])
            for choice in self.query("#session"):
                choice.styles.max_width = max(8, row.size.width - others - 1)

    def action_scroll_preview(self, step: int) -> None:
        self.query_one("#preview", VerticalScroll).scroll_relative(y=step, animate=False)

    def action_scroll_edge(self, step: int) -> None:
        preview = self.query_one("#preview", VerticalScroll)
        preview.scroll_to(y=preview.max_scroll_y if step > 0 else 0, animate=False)

    def _count_hidden(self) -> None:
        """Show how many lines do not fit, so that nobody unknowingly answers a part."""
        preview = self.query_one("#preview", VerticalScroll)
        fits = preview.virtual_size.height <= preview.size.height
        above = round(preview.scroll_y)
        below = max(0, preview.virtual_size.height - preview.size.height - above)
        hidden = [f"{above:,} more above"] if above else []
        hidden += [f"{plural(below, 'more line')} below"] if below else []
        self.set_class(not fits, "-more")
        self._make_room()
        key = f"v {'smaller' if self.has_class('-whole') else 'opens all'}"
        long = f"… {', '.join(hidden)} · {key}"
        more = self.query_one("#more", Static)
        more.update(long if len(long) <= more.size.width else f"… {above + below:,} more · {key}")

    def choice_key(self, event: events.Key) -> str | None:
        key = super().choice_key(event)
        return {"y": "1", "n": "esc"}.get(key or "", key)

    def action_whole(self) -> None:
        self.toggle_class("-whole")
        self.call_after_refresh(self._count_hidden)

    def action_answer(self, answer: Literal["once", "session", "always"]) -> None:
        if not (self.decision.once and answer in _LASTING):
            self.dismiss(Answer(answer))

    def action_explain(self) -> None:
        self.add_class("-explaining")
        self.show_keys(("enter", "decline"), NEW_LINE, ("esc", "back"))
        self.query_one(AnswerField).focus()

    def action_refuse(self) -> None:
        if self.has_class("-explaining"):
            self.remove_class("-explaining")
            self.show_keys(*_KEYS)
            self._mark_usual()
        else:
            self.dismiss(Answer("no"))

    @on(AnswerField.Entered)
    def _answer_no(self, event: AnswerField.Entered) -> None:
        self.dismiss(Answer("no", event.text))

    @on(AnswerField.Changed)
    def _grown(self) -> None:
        self.call_after_refresh(self._tell_row)

    @on(Choice.Answered)
    def _chosen(self, event: Choice.Answered) -> None:
        match event.name:
            case "once" | "session" | "always" as answer:
                self.action_answer(answer)
            case "no":
                self.action_explain()
            case _:
                self.action_refuse()

    def _title(self) -> Content:
        call, level = self.call, self.decision.level
        wall = (f" · ⛨ {level}" if self.decision.walls else "", "$text-muted")
        risk = (" · high-risk" if self._risky else "", "$text-error")
        agent = (f" · {one_line(visible(call.agent))}" if call.agent else "", "$text-secondary")
        match call.preview_kind:
            case "command":
                named = "Run in the background?" if call.background else "Run this command?"
                return Content.assemble(named, risk, agent, wall)
            case "diff":
                changed = (f" {counts(call.preview)}", "$text-muted")
                named = one_line(title(call.tool, visible(call.subject)))
                return Content.assemble(named, changed, risk, agent, wall)
            case _ if call.effect == "fetch":
                return Content.assemble("Fetch this page?", risk, agent, wall)
            case _:
                return Content.assemble(
                    f"Allow {one_line(verb(visible(call.tool)))}?", risk, agent, wall
                )

    def _why(self) -> Content:
        """Return why it is asked, and what a command can reach; for a file the diff says that."""
        call, said = self.call, [visible(self.decision.reason)]
        if self.decision.once:
            said.append("You're asked each time.")
        if call.command is not None:
            said.append(f"{REACHES[self.decision.level]}.")
        elif call.effect == "run":
            said.append("Its server can reach beyond this folder.")
        return code_styled(" ".join(filter(None, said)), "$text-secondary")

    def _scope(self) -> str:
        return one_line(visible(self.call.scope)) or "calls just like this one"

    @property
    def _risky(self) -> bool:
        return self.decision.risk == "high-risk"

    def _preview(self) -> Widget:
        text = self.call.preview or self.call.subject or "(nothing to show)"
        if self.call.preview_kind == "diff":
            return DiffView(text)
        if self.call.preview_kind == "command":
            return Static(_marked(text, self.decision.marks), markup=False)
        return Static(visible(text), markup=False)


def _marked(command: str, marks: Sequence[str]) -> Content:
    """Return a command with its risky parts in the color of danger."""
    pieces: list[tuple[str, str]] = [("$ ", "$text-primary")]
    at = 0
    for start, end in _spans(command, marks):
        pieces.append((visible(command[at:start]), "bold $foreground"))
        pieces.append((visible(command[start:end]), "bold underline $text-error"))
        at = end
    return Content.assemble(*pieces, (visible(command[at:]), "bold $foreground"))


def _spans(command: str, marks: Sequence[str]) -> list[tuple[int, int]]:
    """Return the places of the parts in order; a part has lost its redirections and its spaces."""
    spans: list[tuple[int, int]] = []
    end = 0
    for mark in marks[:_MARKS_MAX]:
        words = mark.split()
        if len(mark) > _MARK_CHARS or not words:
            continue
        pattern = re.compile(r"(?:\s|\\\n)+".join(map(re.escape, words)))
        one = pattern.search(command, end) or pattern.search(command)
        if one and all(one.end() <= start or stop <= one.start() for start, stop in spans):
            spans.append(one.span())
            end = one.end()
    return sorted(spans)
