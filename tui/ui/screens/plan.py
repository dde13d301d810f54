"""A plan to read, edit and approve; and an approved one, to read again."""

from __future__ import annotations

from typing import ClassVar, Final, TypeVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from tui.core.questions import PLAN_CHOICES, PlanReview, Verdict
from tui.core.text_cleaning import one_line, visible
from tui.ui.screens.external_programs import edited
from tui.ui.widgets.answer_field import NEW_LINE, AnswerField
from tui.ui.widgets.conversation.items import AssistantItem
from tui.ui.widgets.conversation.view import ConversationView
from tui.ui.widgets.dialog import SCROLL, Dialog, Key
from tui.ui.widgets.keys import PLAN_KEYS, bindings
from tui.ui.widgets.questions import WIDE, Choice, ChoicePlace

T = TypeVar("T")

_EDIT: Final = "edit"
_KEYS: Final[tuple[Key, ...]] = (
    SCROLL,
    ("← →", "choose"),
    ("enter", "answer"),
    ("esc", "not now"),
)
_SHORT: Final = {"ask": "Ask", "accept_edits": "Accept", "change": "No…", _EDIT: "Edit"}
_LONG: Final = _SHORT | {
    "ask": "Yes, ask before edits",
    "accept_edits": "Yes, accept edits",
    "change": "No, change…",
}
"""The answers in short and as sentences."""
_PLAN_CSS: Final = """
    #box { width: 100%; max-width: 120; height: 96%; max-height: 100%; padding: 0 2; }
    #plan { height: 1fr; background: $surface; }
"""


class _PlanDialog(Dialog[T]):
    """A plan that scrolls; it starts at its top, whatever size the screen becomes."""

    _scrolled = False

    def on_resize(self) -> None:
        super().on_resize()
        self.call_after_refresh(self._fit)

    def show(self, plan: str) -> None:
        """Show a plan from its top."""
        view = self.query_one(ConversationView)
        view.clear()
        view.append(AssistantItem(visible(plan)))
        self._scrolled = False
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        """Make the box as high as its content."""
        if not self.is_attached:
            return
        box, view = self.query_one("#box"), self.query_one(ConversationView)
        others = box.outer_size.height - view.size.height
        box.styles.height = min(self.size.height, view.virtual_size.height + others)
        if not self._scrolled:
            self.call_after_refresh(view.scroll_home, animate=False)

    def action_scroll_plan(self, rows: int) -> None:
        self._scrolled = True
        self.query_one(ConversationView).scroll_relative(y=rows, animate=False)

    def action_scroll_text(self, pages: int) -> None:
        self._scrolled = True
        view = self.query_one(ConversationView)
        view.scroll_relative(y=pages * (view.size.height - 1), animate=False)


class PlanScreen(_PlanDialog[None]):
    """An approved plan; `where` is its file, "" if none is kept."""

    DEFAULT_CSS = f"""
    PlanScreen {{
        {_PLAN_CSS}
        #where {{ color: $text-muted; height: auto; margin: 1 0 0 0; }}
    }}
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,ctrl+c", "dismiss", "close", show=False),
        Binding("up", "scroll_plan(-1)", show=False),
        Binding("down", "scroll_plan(1)", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = ""

    def __init__(self, title: str, plan: str, where: str) -> None:
        super().__init__()
        self._title, self._plan, self._where = title, plan, where

    def compose(self) -> ComposeResult:
        title = f"Plan: {one_line(visible(self._title))}"
        with self.framed(Vertical(), title, SCROLL, ("esc", "close")):
            yield _view()
            if self._where:
                yield Static(visible(self._where), id="where", markup=False)

    def on_mount(self) -> None:
        super().on_mount()
        self.show(self._plan)


class PlanModal(_PlanDialog[PlanReview], ChoicePlace):
    """Asks about a plan."""

    awaited = True
    unasked = True
    BINDINGS = bindings(PLAN_KEYS)  # pyright: ignore[reportAssignmentType]
    AUTO_FOCUS: ClassVar[str | None] = ""
    DEFAULT_CSS = f"""
    PlanModal {{
        {_PLAN_CSS}
        #answers {{ height: 1; }}
        #answers Choice {{ width: auto; background: $surface; }}
        #answers Choice:focus {{ background: $primary; }}
        .between {{ width: 1; color: $text-muted; }}
        &.-narrow .between {{ color: $surface; }}
        &.-narrow Choice {{ padding: 0; }}
        AnswerField {{ display: none; margin: 1 0 0 0; }}
        &.-writing AnswerField {{ display: block; }}
        &.-writing #answers {{ display: none; }}
    }}
    """

    def __init__(self, title: str, plan: str) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]
        self.plan_title, self.plan = title, plan
        self._first = plan
        self._refused = ""
        """The text that an editor saved which then failed."""

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), "", *_KEYS) as box:
            box.border_title = self._title()
            yield _view()
            with Horizontal(id="answers"):
                for number, (verdict, _) in enumerate(PLAN_CHOICES, 1):
                    yield Choice(str(number), _SHORT[verdict], verdict)
                    yield Static("·", classes="between")
                yield Choice("e", _SHORT[_EDIT], _EDIT)
            yield AnswerField("What to change")

    def on_mount(self) -> None:
        super().on_mount()
        self.await_quiet()
        self.show(self.plan)
        self.query_one("#ask").focus()

    def on_resize(self) -> None:
        super().on_resize()
        words = _SHORT if self.size.width < WIDE else _LONG
        for choice in self.query(Choice):
            choice.relabel(words[choice.name or ""])
        # Laid out again once it has the edges of its width.
        self.call_after_refresh(self.query_one("#answers").refresh, layout=True)

    def action_answer(self, verdict: Verdict) -> None:
        if verdict == "change":
            self.add_class("-writing")
            self.show_keys(("enter", "send"), NEW_LINE, ("esc", "back"))
            self.query_one(AnswerField).focus()
        else:
            self.dismiss(PlanReview(verdict, self.plan))

    def action_leave(self) -> None:
        if self.has_class("-writing"):
            self.remove_class("-writing")
            self.show_keys(*_KEYS)
            self.query_one("#change").focus()
        else:
            self.dismiss(PlanReview("none", self.plan))

    @work(exclusive=True)
    async def action_edit(self) -> None:
        """Let the person edit the plan in their editor."""
        app = self.app  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - Textual's App
        result = await edited(app, self._refused or self.plan)  # pyright: ignore[reportUnknownArgumentType]
        self._refused = result.refused or self._refused
        text = result.text
        if result.problem:
            again = " e opens its text." if self._refused else ""
            self.notify(f"{result.problem}{again}", severity="error", markup=False)
        elif text is not None and text.strip():
            self._refused = ""
            self.plan = text
            self.query_one("#box").border_title = self._title()
            self.show(text)

    @on(Choice.Answered)
    def _chosen(self, event: Choice.Answered) -> None:
        match event.name:
            case "ask" | "accept_edits" | "change" as verdict:
                self.action_answer(verdict)
            case _:
                self.action_edit()

    @on(AnswerField.Entered)
    def _commented(self, event: AnswerField.Entered) -> None:
        if event.text:
            self.dismiss(PlanReview("change", self.plan, event.text))

    @on(AnswerField.Changed)
    def _grown(self) -> None:
        self.call_after_refresh(self._fit)

    def _title(self) -> Content:
        changed = self.plan.strip() != self._first.strip()
        return Content.assemble(
            f"Plan: {one_line(visible(self.plan_title))}",
            (" · edited" if changed else "", "$text-muted"),
        )


def _view() -> ConversationView:
    view = ConversationView(id="plan")
    view.can_focus = False
    return view
