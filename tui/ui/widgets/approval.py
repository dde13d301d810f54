"""The question before a write or a command: its effect, the reason for asking, and the answers.

The title names the call, one row of answers says what they cover; the rest of the room is for what
is asked about. `?` shows the rules behind the answers in its place, and the reason if it was cut.
`Enter` gives the marked answer: yes, once; for a high-risk call it is no.

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
from tui.permissions.types import (
    REACHES,
    Answer,
    Call,
    Decision,
    always_in_words,
    offered,
    rules_in_words,
)
from tui.tools.registry import title, verb
from tui.ui.widgets.answer_field import NEW_LINE, AnswerField
from tui.ui.widgets.asked_line import LineAsked
from tui.ui.widgets.conversation.items import TERMINAL
from tui.ui.widgets.dialog import SCROLL, Beneath, Dialog, Key
from tui.ui.widgets.diff import DiffView, counts
from tui.ui.widgets.keys import APPROVAL_KEYS, bindings, code_styled
from tui.ui.widgets.markdown.text import clip
from tui.ui.widgets.questions import WIDE, Choice, ChoicePlace

_LOW, _TALL = 24, 30
"""With fewer rows than the first, a long question takes all of them; from the second on there is
room for empty rows and for the whole reason."""
_EDGES = 2
_SCOPE_MIN = 8
"""The fewest cells in which it says anything to name what a yes covers."""
_ENTER, _CHOOSE = ("enter", "answer"), ("← →", "choose")
_CUT = " … · ? all"
_MARKS_MAX = 100
_MARK_CHARS = 2_000


class ApprovalModal(Dialog[Answer], ChoicePlace):
    """Asks about one call. `begins` gets the row of the terminal in which the question begins."""

    awaited = True
    unasked = True
    BINDINGS = bindings(APPROVAL_KEYS)  # pyright: ignore[reportAssignmentType]
    AUTO_FOCUS: ClassVar[str | None] = ""

    DEFAULT_CSS = """
    ApprovalModal ToastRack { dock: top; align: right top; margin: 1 0 0 0; }
    ApprovalModal { align: center bottom; background: $background 20%; }
    ApprovalModal #box { width: 100%; max-width: 100%; max-height: 100%; padding: 0 2; }
    ApprovalModal #preview {
        height: auto; background: $background; padding: 0 0 0 1;
        scrollbar-size-vertical: 1;
    }
    ApprovalModal #preview > * { margin: 0 1 0 0; }
    ApprovalModal.-long #box { height: 75%; }
    ApprovalModal.-long.-low #box, ApprovalModal.-long.-whole #box { height: 100%; }
    ApprovalModal.-long #preview { height: 1fr; }
    ApprovalModal #more { color: $text-warning; height: 1; display: none; }
    ApprovalModal.-more #more { display: block; }
    ApprovalModal #why { color: $text-muted; height: auto; }
    ApprovalModal #rules { display: none; }
    ApprovalModal.-rules #preview > *, ApprovalModal.-rules #why { display: none; }
    ApprovalModal.-rules #rules { display: block; }
    ApprovalModal #answers { height: 1; margin: 0; }
    ApprovalModal #answers Choice { width: auto; background: $surface; }
    ApprovalModal #answers Choice:focus { background: $primary; }
    ApprovalModal .between { width: 1; color: $text-muted; }
    ApprovalModal.-narrow .between { color: $surface; }
    ApprovalModal.-tall #box { padding: 1 2; }
    ApprovalModal.-tall #preview { margin: 0 0 1 0; }
    ApprovalModal.-tall.-more #preview { margin: 0; }
    ApprovalModal.-tall #more { margin: 0 0 1 0; }
    ApprovalModal.-tall #answers, ApprovalModal.-tall AnswerField { margin: 1 0 0 0; }
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
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-short"), (_TALL, "-tall")]
        self.call, self.decision = call, decision
        self._beneath = beneath

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), "", *self._usual_keys) as box:
            box.border_title = self._title()
            with VerticalScroll(id="preview", can_focus=False):
                yield self._preview()
                yield Static(self._rules(), id="rules", markup=False)
            yield Static(id="more", markup=False)
            if why := self._why():
                yield Static(why, id="why", markup=False)
            with Horizontal(id="answers"):
                for number, (name, key) in enumerate(self._keys_of_answers()):
                    if number:
                        yield Static("·", classes="between")
                    yield Choice(key, _SHORT[name], name)
            yield AnswerField("Tell the model why (optional)")

    def on_mount(self) -> None:
        self.await_quiet()
        preview = self.query_one("#preview", VerticalScroll)
        for seen in ("scroll_y", "virtual_size"):
            self.watch(preview, seen, self._count_hidden, init=False)
        self._mark_usual()

    def on_resize(self) -> None:
        super().on_resize()
        self._make_room()
        self._fit_words()
        self.call_after_refresh(self._settle)

    def _settle(self) -> None:
        """Count again with the edges that it has by now, and tell where it begins."""
        if self.is_attached:
            self._count_hidden()
            self.call_after_refresh(self._tell_row)

    def _tell_row(self) -> None:
        if self.is_attached and self._beneath is not None:
            self._beneath.leave_room(self.query_one("#box").region.y)

    def _make_room(self) -> None:
        """Give a text what the answers leave of three quarters of the screen; on a low one, all
        that they leave."""
        height = self.size.height
        self.set_class(height < _LOW, "-low")
        before = self.has_class("-long")
        reason = 0 if self.has_class("-rules") else len(self._why().wrap(self._width))
        taken = _EDGES + 1 + (reason if self.has_class("-tall") else min(reason, 2))
        taken += 4 * self.has_class("-tall")
        long = sum(part.virtual_size.height for part in self.query("#preview > *") if part.display)
        share = height if height < _LOW else height * 3 // 4
        self.set_class(long + taken > share, "-long")
        if self.has_class("-long") is not before:
            self.call_after_refresh(self._count_hidden)

    def _mark_usual(self) -> None:
        self.query_one("#refuse" if self._risky else "#once").focus()

    def _fit_words(self) -> None:
        """Give the answers and the reason the words that they have room for."""
        narrow = self.size.width < WIDE
        words = _SHORT if narrow else self._sentences(self._width)
        for choice in self.query(Choice):
            # a style sheet would give the edges of the last size to the first frame of this one
            choice.styles.padding = (0, 0 if narrow else 1)
            choice.relabel(words[choice.name or ""])
        for why in self.query("#why").results(Static):
            why.update(_cut(self._why(), self._width, self._rows_of_reason()))

    @property
    def _width(self) -> int:
        """The cells within the edges of the box."""
        return max(1, self.size.width - 6)

    def _rows_of_reason(self) -> int:
        """Return how many rows the reason has: with everything else around a question there are
        five at most, unless there is much room."""
        if self.has_class("-tall"):
            return self.size.height
        return 1 if self.has_class("-long") else 2

    def _sentences(self, width: int) -> dict[str, str]:
        """Return the answers as whole sentences; what a yes covers is shortened last."""
        words = _LONG | {"always": always_in_words(self.call, self.decision).capitalize()}
        answers = self._keys_of_answers()
        if "session" not in dict(answers):
            return words
        taken = sum(len(f" {key} {words[name]} ·") for name, key in answers if name != "session")
        room = width - taken - len(" 2 Yes,  this session ")
        if room < len(self._scope(room)):
            words["no"] = _SHORT["no"]
            room += len(_LONG["no"]) - len(_SHORT["no"])
        if room >= _SCOPE_MIN:
            words["session"] = f"Yes, {clip(self._scope(room), room)} this session"
        return words

    def _keys_of_answers(self) -> list[tuple[str, str]]:
        """Return the names of the answers with their keys. Esc is among them where Enter is to mean
        no."""
        lasting = offered(self.call, self.decision)
        kept = {"session": "2", "always": "3"}
        others = {} if "always" in lasting else {"refuse": "esc"}
        answers = {"once": "1", **{one: kept[one] for one in lasting}, "no": "4", **others}
        return list(answers.items())

    @property
    def _usual_keys(self) -> tuple[Key, ...]:
        """The hints in the order in which the last but one gives way."""
        rules = ("?", "back" if self.has_class("-rules") else "rules")
        if "always" in offered(self.call, self.decision):
            return rules, _ENTER, _CHOOSE, SCROLL, ("esc", "no")
        return rules, _CHOOSE, SCROLL, _ENTER

    def action_scroll_preview(self, step: int) -> None:
        """Scroll what is asked about; if all of it is in sight, choose an answer."""
        preview = self.query_one("#preview", VerticalScroll)
        if preview.max_scroll_y or self.has_class("-explaining"):
            preview.scroll_relative(y=step, animate=False)
        elif step > 0:
            self.focus_next(Choice)
        else:
            self.focus_previous(Choice)

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
        if self.has_class("-low"):
            key = " ".join(SCROLL)  # it has the whole screen already
        long = f"… {', '.join(hidden)} · {key}"
        more = self.query_one("#more", Static)
        more.update(long if len(long) <= more.size.width else f"… {above + below:,} more · {key}")
        self._fit_words()

    def choice_key(self, event: events.Key) -> str | None:
        key = super().choice_key(event)
        return {"y": "1", "n": "esc"}.get(key or "", key)

    def mark_answer(self, event: events.Key) -> str:
        return super().mark_answer(event) or _LONG["refuse"] * (self.choice_key(event) == "esc")

    def action_rules(self) -> None:
        """Show the rules that the answers stand for, or what is asked about again."""
        self.toggle_class("-rules")
        self.show_keys(*self._usual_keys)
        preview = self.query_one("#preview", VerticalScroll)
        preview.scroll_to(y=0, animate=False)
        self.call_after_refresh(self._count_hidden)

    def action_whole(self) -> None:
        self.toggle_class("-whole")
        self.call_after_refresh(self._count_hidden)

    def action_answer(self, answer: Literal["once", "session", "always"]) -> None:
        if answer == "once" or answer in offered(self.call, self.decision):
            self.dismiss(Answer(answer))

    def action_explain(self) -> None:
        self.add_class("-explaining")
        self.show_keys(("enter", "decline"), NEW_LINE, ("esc", "back"))
        self.query_one(AnswerField).focus()

    def action_refuse(self) -> None:
        if self.has_class("-explaining"):
            self.remove_class("-explaining")
            self.show_keys(*self._usual_keys)
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

    @property
    def waits_as(self) -> str:
        return f"An approval waits: {one_line(visible(self.call.subject))}"

    def _title(self) -> Content:
        call = self.call
        risk = (" · high-risk" if self._risky else "", "$text-error")
        agent = (f" · {one_line(visible(call.agent))}" if call.agent else "", "$text-secondary")
        match call.preview_kind:
            case "command":
                named = "Run in the background?" if call.background else "Run this command?"
                named = "Run this in a terminal?" if call.tool == TERMINAL else named
                return Content.assemble(named, risk, agent)
            case "diff":
                new = " new" if call.preview.startswith("--- /dev/null") else ""
                changed = (f"{new} {counts(call.preview)}", "$text-muted")
                named = one_line(title(call.tool, visible(call.subject)))
                return Content.assemble(named, changed, risk, agent)
            case _ if call.effect == "fetch":
                return Content.assemble("Fetch this page?", risk, agent)
            case _:
                return Content.assemble(f"Allow {one_line(verb(visible(call.tool)))}?", risk, agent)

    def _why(self) -> Content:
        """Return why it is asked, and what a command can reach; for a file the diff says that."""
        call, said = self.call, [visible(_unprefixed(self.decision.reason))]
        if self.decision.once:
            said.append("You're asked each time.")
        if call.command is not None or call.types is not None:
            said.append(f"{REACHES[self.decision.level]}.")
        elif call.effect == "run":
            said.append("Its server can reach beyond this folder.")
        return code_styled(" ".join(filter(None, said)), "$text-secondary")

    def _scope(self, room: int) -> str:
        """Return what a lasting yes covers; of several things the first, if all are too long."""
        scope = one_line(visible(self.call.scope)) or "this call"
        first, *others = scope.split(" and ")
        return f"{first} +{len(others)}" if others and len(scope) > room else scope

    def _rules(self) -> Content:
        """Return the reason and the rules behind the answers, whole."""
        rows = [self._why(), *map(Content, rules_in_words(self.call, self.decision))]
        return Content("\n").join(row for row in rows if row.plain)

    @property
    def _risky(self) -> bool:
        return self.decision.risk == "high-risk"

    def action_ask_line(self) -> None:
        """Ask where a line comes from that the edit would take away."""
        preview = self.query_one("#preview", VerticalScroll)
        lines = [
            diff.asked_line(round(preview.scroll_y), preview.size.height, sign="-")
            for diff in self.query(DiffView)
        ]
        self.post_message(LineAsked(next(filter(None, lines), None)))

    def _preview(self) -> Widget:
        text = self.call.preview or self.call.subject or "(nothing to show)"
        if self.call.preview_kind == "diff":
            return DiffView(text, names=False)
        if self.call.preview_kind == "command":
            return Static(_marked(text, self.decision.marks), markup=False)
        return Static(visible(text), markup=False)


_SHORT = {"once": "Yes", "session": "Session", "always": "Always", "no": "No…", "refuse": "No"}
_LONG = _SHORT | {"session": "Yes, this session", "no": "No, because…"}
"""The answers by their names, in short and as sentences."""


def _unprefixed(reason: str) -> str:
    """Return a reason without the risk that the title names."""
    words = reason.removeprefix("High-risk: ")
    return f"It {words[3:]}" if words.startswith("it ") else words


def _cut(text: Content, width: int, rows: int) -> Content:
    """Return a text in so many rows; the last one says how to see all, if it is longer."""
    lines = text.wrap(width) if width > 0 else []
    if len(lines) <= rows:
        return text
    last = Content(" ").join(lines[rows - 1 :])
    fits = last.wrap(max(1, width - len(_CUT)))[0]
    return Content("\n").join([*lines[: rows - 1], Content.assemble(fits.rstrip(), _CUT)])


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
