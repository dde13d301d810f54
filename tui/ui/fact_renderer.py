"""Turns facts into widgets: one `match`, no decisions. A session has one renderer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tui.core import facts
from tui.core.fact_words import goal_brief
from tui.core.facts import Fact
from tui.core.formatting import moment_of, plural, tokens
from tui.tools.registry import verb
from tui.ui.screens.chat import ChatScreen
from tui.ui.tool_calls import ToolCalls
from tui.ui.widgets import record_items
from tui.ui.widgets.conversation.items import (
    AssistantItem,
    AttemptItem,
    Item,
    NoticeItem,
    ThinkingItem,
    ToolItem,
    UserItem,
)
from tui.ui.widgets.conversation.items_view import PreparedItems
from tui.ui.widgets.fact_log import FactLog
from tui.ui.widgets.notices import NoticeText
from tui.ui.widgets.record_items import RestoredItems

_FULL = "context full"
_IN_A_WAIT = (
    *(facts.Alive, facts.ContextMeasured, facts.QueueChanged, facts.StorageChanged),
    *(facts.TitleChanged, facts.ToolOutputChunk),
)
"""Facts that come while a retry waits."""
_STEPS = {
    "output": "a shorter answer",
    "images": "dropping older images",
    "compaction": "compacted",
    "results": "cutting large results",
    "digest": "sending a summary",
}


class FactRenderer:
    """Draws one session's events on a chat screen.

    `last_answer` is the newest answer, complete or stopped; `log` holds all events for the debug
    view.
    """

    def __init__(
        self,
        chat: ChatScreen,
        log: FactLog | None = None,
        result: Callable[[str], str] = lambda _: "",
    ) -> None:
        """`result` returns the whole result of a call, by its id."""
        self._chat = chat
        self.log = log or FactLog(chat.clock)
        self.last_answer = ""
        self.opens = False
        """True while what is shown belongs to the opening of a session."""
        self._answer = StreamingAnswer(chat)
        self._calls = ToolCalls(chat, result)
        self._prompted = False
        self._measured: facts.ContextMeasured | None = None
        self._warmed: NoticeItem | None = None
        self._attempt: Item | None = None  # failed; added once the banner no longer shows it

    @property
    def shown(self) -> ToolItem | None:
        """The call whose output is in the pane."""
        return self._calls.shown

    def open_output(self, item: Item) -> None:
        """Show the output of a tool call in the output pane; other items have none."""
        self._calls.open(item)

    def resume(
        self, past: RestoredItems, prepared: PreparedItems | None = None, *, again: bool = False
    ) -> None:
        """Start from what a session already holds, its items `prepared` or not; `again` where the
        screen already shows that session. Called once, before the first event."""
        self._chat.fill(prepared or past.items, again=again)
        self._calls.resume(past)
        self.last_answer = past.last_answer
        self._status(turns=past.turns, trouble="")

    def extend(
        self, came: Sequence[Item], changed: Sequence[Item], outputs: Mapping[str, str]
    ) -> None:
        """Add what another process has written to the session since `resume`: items that came or
        changed, and results of calls by their ids."""
        self._chat.conversation.extend(came)
        for item in changed:
            self._chat.conversation.changed(item)
        self._calls.extend(outputs)

    def show(self, event: Fact) -> None:  # noqa: C901, PLR0912, PLR0915 - one case per event
        """Draw one event."""
        chat = self._chat
        self.log.add(event)
        if self._attempt and not isinstance(event, _IN_A_WAIT):
            chat.add(self._attempt)
            self._attempt = None
        match event:
            case facts.SessionStarted(path=path, model=model, profile=profile):
                self.head(model=model, think=False, verbose=False, elevated=False, effort="")
                self.head(profile=profile or "")
                chat.show_mode()
                self._status(keeping=path is not None)
            case facts.UserMessage(text, attached):
                self._answer.pause()
                self._prompted = True
                chat.add(UserItem(text.removesuffix(attached).rstrip() if attached else text))
                if attached:
                    chat.add(record_items.sent_along_item(event))
            case facts.DirectivesChanged(think, verbose, elevated, effort):
                self.head(think=think, verbose=verbose, elevated=elevated, effort=effort)
                chat.show_mode()
            case facts.RequestSent(model=model):  # voids what an earlier attempt streamed
                self._take_back()
                chat.activity.settle()
                chat.retry.done()
                chat.work(f"waiting for {model}", listening=True)
            case facts.ThinkingDelta(text):
                chat.work("thinking", listening=True, streamed=text)
                self._answer.stream(ThinkingItem, text)
            case facts.TextDelta(text):
                chat.work("answering", listening=True, streamed=text)
                self._answer.stream(AssistantItem, text)
            case facts.ToolInputDelta(id_, name, text):
                chat.work(f"writing: {verb(name)}", listening=True, streamed=text)
                if item := self._calls.write(id_, name, text):
                    self._answer.pause()
                    self._answer.add(item)
            case facts.AssistantMessage(text=text, usage=usage):
                self._answer.keep()
                chat.activity.settle(usage.output_tokens)
                self._calls.written()
                self.last_answer = text or self.last_answer
            case facts.ToolStarted(id_, name, input_, label, seconds):
                self._calls.begin(id_, name, input_, label, seconds)
                self._show_calls()
            case facts.PermissionAsked(id_) | facts.QuestionAsked(id_):
                self._calls.change(id_, state="waiting")
                self._show_calls()
            case facts.PermissionAnswered():
                self._calls.decide(event)
                self._show_calls()
            case facts.QuestionAnswered(id_):
                self._calls.change(id_, state="running", started=chat.clock.monotonic())
                self._show_calls()
            case facts.SubAgentEvent(id_) if (waits := facts.awaits_person(event)) is not None:
                self._calls.change(id_, state="waiting" if waits else "running")
                self._show_calls()
            case facts.ToolOutputChunk(id_, text, picture):
                self._calls.hear(id_, text, picture)
            case facts.ToolFinished():
                self._calls.finish(event)
                self._show_calls()
            case facts.RetryScheduled():
                voided = self._take_back()
                chat.work("waiting to retry", counts=False)
                chat.retry.wait(event)
                self._attempt = record_items.fact_item(event, chat.clock.now(), voided)
                if _same_attempt(self._attempt, chat.conversation.newest):  # already drawn
                    self._attempt = None
                if voided.strip() and self._attempt:  # it may be read meanwhile
                    chat.add(self._attempt)
                    self._attempt = None
            case facts.Parked():
                self._park(event)
            case facts.ModelSwitched():
                self._tell(event, self._take_back())
                self.head(model=event.new)
            case facts.RecoveryStep(step):
                voided = self._take_back()
                chat.retry.recover(_FULL, f"{_STEPS[step]}, retrying …")
                self._tell(event, voided)
            case facts.GoalChanged():
                chat.measure(self._measured, goal_brief(event))
                self._tell(event)
            case facts.HandOff() | facts.ErrorRaised():
                self._tell(event, self._take_back())
            case facts.LoopStopped():
                self._take_back()
                self._tell(event)
            case facts.OverflowCompactionStarted(number, of, size):
                chat.work("compacting")
                chat.retry.recover(_FULL, f"compacting {number} of {of}, {tokens(size)} tokens …")
            case facts.CompactionStarted(reason, size, messages):
                chat.work("compacting")
                if reason != "overflow":  # an overflow was announced by its own event
                    what = f"{plural(messages, 'message')}, {tokens(size)} tokens"
                    chat.retry.recover("context", f"compacting {what} …")
            case facts.CompactionFinished():
                chat.retry.done()
                self._tell(event)
            case facts.ExamStarted():
                chat.retry.recover("context", "checking the summary …")
            case facts.Alive():
                chat.activity.hear()
            case facts.ContextMeasured():
                self._measured = event
                chat.measure(event)
            case facts.ContextChanged(changes):
                for change in changes:
                    self._calls.mark(change)
            case facts.TodosChanged(todos):
                chat.todos.todos = todos
            case facts.StorageChanged(saved, detail):
                trouble = "" if saved else detail or "the disk refused"
                self._status(trouble=trouble)
                chat.show_saving(trouble)
            case facts.ToolsAwaited(servers):
                chat.work(f"waiting for MCP servers: {', '.join(servers)}")
            case facts.FilesChanged(files):
                self._calls.outdate(files)
                self._tell(event)
            case facts.CacheWarmed():
                self._warm(event)
            case facts.TurnFinished(outcome):
                self._end(outcome)
            case facts.QueueChanged() | facts.TitleChanged():
                pass
            case _:
                self._tell(event)

    def _tell(self, event: Fact, void: str = "") -> None:
        item = record_items.fact_item(event, self._chat.clock.now(), void)
        if isinstance(item, NoticeItem) and self.opens:
            self._chat.add(item, at_start=NoticeText(item.text, item.kind, item.hint))
        elif item:
            self._chat.add(item)

    def _warm(self, event: facts.CacheWarmed) -> None:
        """Say how often the cache was read again: one line for a pause."""
        item, last = record_items.fact_item(event, self._chat.clock.now()), self._warmed
        if not isinstance(item, NoticeItem):
            return
        if event.times > 1 and last is not None and self._chat.conversation.newest is last:
            last.text = item.text
            self._chat.conversation.changed(last)
        else:
            self._chat.add(item)
            self._warmed = item

    def _park(self, event: facts.Parked) -> None:
        """Show that every model is limited; the turn continues by itself."""
        chat, voided = self._chat, self._take_back()
        until, kind = moment_of(event.until) or chat.clock.now(), event.error_class
        chat.work("parked", counts=False)
        chat.retry.park(until, kind)
        notice = record_items.fact_item(event, chat.clock.now(), voided)
        last = chat.conversation.newest
        if isinstance(notice, NoticeItem) and not (
            isinstance(last, NoticeItem) and last.text == notice.text  # already drawn
        ):
            chat.add(notice)

    def _show_calls(self) -> None:
        """Show which call runs, and since when."""
        calls = self._calls
        self._chat.work(calls.phase, since=calls.since, movable=calls.movable)

    def head(self, **changes: Any) -> None:
        """Change parts of the header."""
        self._chat.header.state = replace(self._chat.header.state, **changes)

    def _status(self, **changes: Any) -> None:
        self._chat.status.state = replace(self._chat.status.state, **changes)

    def _take_back(self) -> str:
        """Remove what the last attempt streamed, since another begins, and return its text."""
        text, gone = self._answer.take_back()
        for item in gone:
            if isinstance(item, ToolItem):
                self._calls.forget(item)
        return text

    def _end(self, outcome: str) -> None:
        chat = self._chat
        self._answer.pause()
        self.last_answer = self._answer.text.strip() or self.last_answer  # even if stopped
        self._answer.keep()
        self._calls.end()
        if outcome == "interrupted":
            self._tell(facts.TurnFinished(outcome))
        chat.retry.done()
        chat.queued.texts = ()
        if all(todo.get("status") == "completed" for todo in chat.todos.todos):
            chat.todos.todos = ()
        self._status(turns=chat.status.state.turns + self._prompted)
        self._prompted = False
        chat.idle()


def _same_attempt(item: Item | None, last: Item | None) -> bool:
    """True if both are the same failed attempt: once from its record, once told again."""
    return (
        isinstance(item, AttemptItem)
        and isinstance(last, AttemptItem)
        and (item.attempt, item.delay_s, item.message, item.request_id, item.text)
        == (last.attempt, last.delay_s, last.message, last.request_id, last.text)
    )


class StreamingAnswer:
    """The items of an answer that is not recorded yet: thinking, texts, and calls being written."""

    def __init__(self, chat: ChatScreen) -> None:
        self._chat = chat
        self._items: list[Item] = []
        self._streaming: AssistantItem | ThinkingItem | None = None

    @property
    def text(self) -> str:
        """All text of the answer so far."""
        texts = (item.text for item in self._items if isinstance(item, AssistantItem))
        return "\n\n".join(filter(None, texts))

    def stream(self, kind: type[AssistantItem] | type[ThinkingItem], text: str) -> None:
        """Append streamed text of one kind."""
        if not isinstance(self._streaming, kind):
            if not text.strip():
                return  # blank lines between calls are not an answer
            self.pause()
            item = kind(streaming=True)
            if isinstance(item, ThinkingItem):
                item.folded = False
            self._streaming = item
            self.add(item)
        assert self._streaming
        self._chat.conversation.stream(self._streaming, text)

    def add(self, item: Item) -> None:
        """Add another item after what was streamed."""
        self._items.append(item)
        self._chat.add(item)

    def pause(self) -> None:
        """End the streamed item and draw it completely: no more of its text comes."""
        if self._streaming:
            if isinstance(self._streaming, ThinkingItem):
                self._streaming.folded = True
            self._chat.conversation.finish(self._streaming)
            self._streaming = None

    def keep(self) -> None:
        """Keep the items as they are: the answer is recorded, or nothing more will come."""
        self.pause()
        self._items.clear()

    def take_back(self) -> tuple[str, list[Item]]:
        """Remove the items, since the request is made again, and return their text and the
        items."""
        self.pause()  # draws the rest, so that the text below is complete
        text, items = self.text, self._items
        self._items = []
        for item in items:
            self._chat.conversation.take_out(item)
        return text, items
