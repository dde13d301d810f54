"""The dialog for side questions (/btw): a box over the lower part of the conversation.

The agent keeps working behind it; its own questions open above it, with their own keys. Each
answer is also in the transcript, folded.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from tui.agent.side_questions import SidePrice, SideText
from tui.app.commands import split
from tui.core.errors import HoldfastError
from tui.core.fact_words import side_figures, side_note, words
from tui.core.facts import RetryScheduled, SideQuestion
from tui.core.formatting import duration
from tui.ui.toolkit.base_screen import copy
from tui.ui.widgets.answer_field import NEW_LINE, AnswerField
from tui.ui.widgets.conversation.items import AssistantItem, NoticeItem, UserItem
from tui.ui.widgets.conversation.view import ConversationView
from tui.ui.widgets.dialog import Dialog, Key
from tui.ui.widgets.keys import SIDE_KEYS, bindings

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.ui.frontend import ScreenFrontend

_ITSELF: Final = {"btw", "side"}
"""Its own commands, which may be typed here out of habit."""
_ASK: Final = "Ask on the side"
_AGAIN: Final = "Ask something else"
_LEAST_ROWS: Final = 3
_EDGES: Final = 2
"""Rows of the border."""
_SHARE: Final = 70
_SHARE_SHORT: Final = 90
"""The most of the screen's rows that the box takes, in percent; the second, where there are few."""
_ASK_KEYS: Final[tuple[Key, ...]] = (("enter", "ask"), NEW_LINE)
_BACK: Final[Key] = ("pgup", "scroll back")
_TO_ANSWERS: Final[Key] = ("tab", "answers")
_ANSWER_KEYS: Final[tuple[Key, ...]] = (("y", "copy"), ("tab", "question"))
_END: Final[Key] = ("esc", "close")
_STOP: Final[Key] = ("esc", "stop")


class SideQuestionScreen(Dialog[None]):
    """Asks the agent on the side; `question` at once, where that is cheap. A later question knows
    the earlier ones of this dialog."""

    awaited = True  # a key that opens another screen leaves it open
    DEFAULT_CSS = """
    SideQuestionScreen {
        align: center bottom;
        #box { width: 100%; max-width: 120; height: auto; max-height: 100%; padding: 0 2; }
        #answers-view { height: 3; background: $surface; }
        AnswerField { margin: 1 0 0 0; }
        &.-tiny AnswerField { margin: 0; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(SIDE_KEYS),
        Binding("ctrl+c", "leave", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "AnswerField"

    def __init__(self, frontend: ScreenFrontend, agent: Agent, question: str) -> None:
        super().__init__()
        self._frontend, self._agent, self._first = frontend, agent, question
        self._said: list[SideQuestion] = []
        self._streaming: AssistantItem | None = None
        self._text = ""
        """What is drawn of the answer that comes."""
        self._asking = ""
        """The question that is being answered."""

    def compose(self) -> ComposeResult:
        with self.framed(Vertical(), "side question", *_ASK_KEYS, _END):
            yield ConversationView(id="answers-view")
            yield AnswerField(_ASK)

    @property
    def view(self) -> ConversationView:
        return self.query_one(ConversationView)

    @property
    def field(self) -> AnswerField:
        return self.query_one(AnswerField)

    def on_mount(self) -> None:
        super().on_mount()
        self.watch(self.view, "virtual_size", self._follow, init=False)  # drawn later than it comes
        price = self._price(self._first)
        if self._first and price is not None and price.cheap:
            self.ask(self._first, price)
            return
        self._put(self._first)
        if price is None:
            return
        if self._first:
            self._say(f"Mostly not cached: {price.sentence}.", "warning", "Press Enter to ask.")
        else:
            self._say(f"The agent keeps working and never sees this. {price.sentence}")

    def on_resize(self) -> None:
        super().on_resize()
        self.call_after_refresh(self._fit)

    # Asking

    def _price(self, question: str) -> SidePrice | None:
        """The price of a question; None where it can't be asked, which is said."""
        try:
            return self._agent.side_questions.price(self._said, question)
        except HoldfastError as error:
            self._say(error.message, "warning", error.hint)
            return None

    @on(AnswerField.Changed)
    def _edited(self) -> None:
        self.call_after_refresh(self._fit)
        self._keep()

    @on(AnswerField.Entered)
    def _entered(self, event: AnswerField.Entered) -> None:
        named = split(event.text)
        question = named[1] if named and named[0] in _ITSELF else event.text
        if not question or self._asking:
            return
        if (price := self._price(question)) is not None:
            self._put("")
            self.ask(question, price)

    def ask(self, question: str, price: SidePrice) -> None:
        """Ask, and show the answer as it comes."""
        self._asking = question
        self._keep()
        self.view.append(UserItem(question))
        self._show_keys()
        self.note(f"Waiting: {price.sentence}")
        self._answer(question)
        self._follow()

    @work(group="ask")
    async def _answer(self, question: str) -> None:
        try:
            fact = await self._agent.side_questions.ask(question, self._said, self._show)
        except HoldfastError as error:
            self._put(self.field.value or question)
            self._over()
            self._say(error.message, "warning", error.hint)
            return
        self._over()
        if self._streaming is None and fact.answer:  # its end came with nothing before it
            self.view.append(AssistantItem(fact.answer))
        self._streaming, self._text = None, ""
        self._said.append(fact)
        level = "info" if fact.outcome == "answered" else "warning"
        took = duration(fact.seconds) if fact.seconds >= 1 else ""
        figures = " · ".join(filter(None, (took, side_figures(fact))))
        self._say(" ".join(filter(None, (side_note(fact), figures))), level)
        self.field.placeholder = _AGAIN

    def _put(self, text: str) -> None:
        self.field.text = text
        self.field.move_cursor(self.field.document.end)

    def _keep(self) -> None:
        """Let no crash take what is typed, nor a question that has no answer yet."""
        texts = filter(None, (self._asking, self.field.value.strip()))
        self._frontend.conversation.drafts.type_in_dialog(*(f"/btw {text}" for text in texts))

    def _over(self) -> None:
        self._asking = ""
        self._keep()
        self.note("")
        self._show_keys()
        if self._streaming is not None:
            self.view.finish(self._streaming)

    def _show(self, part: SideText | RetryScheduled) -> None:
        """Draw what has come."""
        if not self.is_mounted:
            return
        if isinstance(part, RetryScheduled):
            sentence = words(part, self._frontend.services.clock.now())
            self.note(sentence.text if sentence else "")
            return
        if not part.text.startswith(self._text) and self._streaming is not None:
            self.view.take_out(self._streaming)  # another attempt
            self._streaming, self._text = None, ""
        if fresh := part.text[len(self._text) :]:
            if self._streaming is None:
                self._streaming = AssistantItem(streaming=True)
                self.view.append(self._streaming)
            self.view.stream(self._streaming, fresh)
            self._text = part.text
            self.note("")
        elif part.thinks and not self._text:
            self.note("Thinking")

    # What is seen

    def _say(self, text: str, level: Any = "info", hint: str = "") -> None:
        if text:
            self.view.append(NoticeItem(text, level, hint=hint))
            self._follow()

    def _follow(self) -> None:
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        """Give the answers the rows that they need, as far as there are any."""
        if not self.is_attached:
            return
        view, field = self.view, self.field
        others = _EDGES + field.size.height + field.styles.margin.height
        share = _SHARE_SHORT if self.is_short else _SHARE
        most = self.size.height * share // 100 - others
        rows = max(1, min(max(_LEAST_ROWS, view.virtual_size.height), most))
        if view.styles.height is None or view.styles.height.value != rows:
            view.styles.height = rows
            self.call_after_refresh(view.scroll_end, animate=False)
        self.call_after_refresh(self._show_keys)

    @on(events.DescendantFocus)
    def _show_keys(self) -> None:
        """Show the keys that do something now."""
        if not self.is_attached:
            return
        scroll = (_BACK,) if self.view.max_scroll_y > 0 else ()
        if self._asking:
            keys: tuple[Key, ...] = (*scroll, _STOP)
        elif self.view.has_focus:
            keys = (*_ANSWER_KEYS, *scroll, _END)
        else:
            keys = (*_ASK_KEYS, *((_TO_ANSWERS,) if self._said else ()), *scroll, _END)
        self.show_keys(*keys)

    # What the keys do

    def action_scroll_text(self, pages: int) -> None:
        self.view.scroll_relative(y=pages * max(1, self.view.size.height - 1), animate=False)

    def action_copy_answer(self) -> None:
        """Copy the last answer."""
        if self._said and self._said[-1].answer:
            copy(self, self._said[-1].answer)
            self.note("Copied.")

    def action_leave(self) -> None:
        """Stop the answer that comes; else close. What was typed and not asked goes to the
        prompt."""
        if self._asking:
            self._agent.side_questions.stop()
            return
        self._frontend.conversation.drafts.type_in_dialog()
        if typed := self.field.value.strip():
            self._frontend.put_prompt(f"/btw {typed}")
        self.dismiss(None)


async def show(frontend: ScreenFrontend, question: str) -> None:
    """Open the dialog, where the session takes a question."""
    agent = frontend.conversation.open_agent(to_write=True)
    if agent is None:
        return
    await asyncio.sleep(0)  # lets a waiting key through
    agent.side_questions.price(question=question)  # says why none can be asked
    frontend.app.push_screen(SideQuestionScreen(frontend, agent, question.strip()))
