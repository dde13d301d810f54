"""From events to widgets: one `match`, no decisions. A session has one presenter."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

from tui.agent import events
from tui.agent.events import Event
from tui.live import request_view
from tui.live.past import Past
from tui.messages import Usage
from tui.screens.chat import ChatScreen
from tui.widgets.context_meter import MeterState
from tui.widgets.conversation.items import (
    AssistantItem,
    Item,
    NoticeItem,
    ThinkingItem,
    ToolItem,
    UserItem,
)
from tui.widgets.event_log import EventLog
from tui.widgets.transcript import (
    attached_item,
    close,
    debug_item,
    files_item,
    fill,
    repair_items,
    title_of,
)

KEPT_CHARS = 1_000_000
"""Of what a running tool prints, the last characters that are kept to be shown again."""


class Presenter:
    """Draws one session's events on a chat screen. `last_answer` is the newest whole answer,
    `shown` the call whose output stands in the pane, `log` all events for the debug view."""

    def __init__(self, chat: ChatScreen, log: EventLog | None = None) -> None:
        self._chat = chat
        self.log = log or EventLog(chat.clock)
        self.usage = Usage()
        self.last_answer = ""
        self._provisional: list[Item] = []
        self._streaming: AssistantItem | ThinkingItem | None = None
        self._tools: dict[str, ToolItem] = {}
        self._outputs: dict[str, deque[str]] = {}
        self._heard = 0
        self._spent: float | None = 0.0
        self._prompted = False
        self._live: str | None = None
        self.shown: ToolItem | None = None

    def resume(self, past: Past) -> None:
        """Begin with what a session already holds. Called once, before the first event."""
        self._chat.fill(past.items)
        self._tools = past.tools
        self._outputs = {id_: deque([text]) for id_, text in past.outputs.items()}
        self.last_answer = past.last_answer
        self._status(turns=past.turns, cost_usd=None, trouble="")

    @property
    def answer(self) -> str:
        """What has been streamed of an answer that is not recorded yet."""
        texts = (item.text for item in self._provisional if isinstance(item, AssistantItem))
        return "\n\n".join(filter(None, texts))

    def show_unfinished(self, answer: str) -> None:
        """An answer that the last run could not take to its end, and what that means."""
        self._chat.add(AssistantItem(answer))
        said = "The program ended here, before the answer did. The model does not know this part."
        self._chat.add(NoticeItem(said, "warning"))

    def show(self, event: Event) -> None:  # noqa: C901, PLR0912, PLR0915 - one case per event
        """Draw one event."""
        chat = self._chat
        self.log.add(event)
        match event:
            case events.SessionStarted(path=path, model=model):
                self._header(model=model, think=False, verbose=False, elevated=False)
                self._status(keeping=path is not None)
            case events.UserMessage(text, attached):
                self._end_stream()
                self._prompted = True
                chat.add(UserItem(text.removesuffix(attached).rstrip() if attached else text))
                if attached:
                    chat.add(attached_item(attached))
            case events.DirectivesChanged(think, verbose, elevated):
                self._header(think=think, verbose=verbose, elevated=elevated)
            case events.RequestSent(model=model):
                self._void()
                chat.retry.done()
                chat.work(f"waiting for {model}", listening=True)
            case events.ThinkingDelta(text):
                chat.work("thinking", listening=True)
                self._stream(ThinkingItem, text)
            case events.TextDelta(text):
                chat.work("answering", listening=True)
                self._stream(AssistantItem, text)
            case events.ToolInputDelta(id_, name, _):
                chat.work(f"writing {name}", listening=True)
                self._writing(id_, name)
            case events.AssistantMessage(text=text, usage=usage):
                self._end_stream()
                self._provisional.clear()
                self.last_answer = text or self.last_answer
                self.usage += usage
            case events.ToolStarted(id_, name, input_, label):
                chat.work(f"running {name}")
                self._begin(id_, name, input_, label)
            case events.PermissionAsked(id_):
                chat.work("waiting for your answer")
                self._set_tool(id_, state="waiting")
            case events.PermissionAnswered(id_, name, answer, by):
                chat.work(f"running {name}")
                refused = answer in {"no", "deny"}
                state, now = "denied" if refused else "running", chat.clock.monotonic()
                self._set_tool(id_, state=state, elevated=by == "elevated", started=now)
            case events.ToolOutputChunk(id_, text):
                self._hear(id_, text)
            case events.ToolFinished():
                self._finish(event)
            case (
                events.RetryScheduled()
                | events.Parked()
                | events.ModelSwitched()
                | events.RecoveryStep()
                | events.LoopStopped()
            ):
                voided = self._void()
                request_view.show(chat, event, voided)
                if isinstance(event, events.ModelSwitched):
                    self.name_model(event.new)
            case events.Compacting() | events.CompactionStarted() | events.CompactionFinished():
                request_view.compact(chat, event)
            case events.Alive():
                chat.hear()
            case events.ContextMeasured():
                chat.measure(meter_state(event))
            case events.ContextChanged(changes):
                for change in changes:
                    self._mark(change)
            case events.TodosChanged(todos):
                chat.todos.todos = todos
            case events.QueueChanged(texts):
                chat.queued.texts = texts
            case events.StorageChanged(saved, detail):
                self._status(trouble="" if saved else detail or "the disk refuses")
            case events.RepairApplied(findings):
                for item in repair_items(findings):
                    chat.add(item)
            case events.ToolsAwaited(servers):
                chat.work(f"waiting for the MCP servers: {', '.join(servers)}")
            case events.Notice(text) | events.ToolsChanged(text=text):
                chat.add(NoticeItem(text))
            case events.ContextFiles(files):
                chat.add(files_item(files))
            case events.Debug(text):
                chat.add(debug_item(text))
            case events.ErrorRaised(message=message, hint=hint):
                voided = self._void()
                stop = "." if hint and message[-1:] not in ".!?:…" else ""  # a server's own words
                chat.add(NoticeItem(f"{message}{stop} {hint}".strip(), "error", voided))
            case events.TurnFinished(outcome, _, cost_usd):
                self._end(outcome, cost_usd)
            case _:
                pass

    def _mark(self, change: dict[str, Any]) -> None:
        """Show on its card how a result stands in the context."""
        id_ = str(change.get("call_id", ""))
        if "pinned" in change:
            self._set_tool(id_, pinned=change["pinned"])
        else:
            self._set_tool(id_, masked=change["view"] == "masked")
        if self.shown is not None and self.shown.id == id_:
            self._chat.side.stands(masked=self.shown.masked, pinned=self.shown.pinned)

    def open_output(self, item: Item) -> None:
        """Show the output of a tool call in the output pane; other items have none."""
        if not isinstance(item, ToolItem):
            return
        text = "".join(self._outputs.get(item.id, ())) or item.preview
        self._live = item.id if item.state in {"running", "waiting"} else None
        self._show_output(item, text, whole=True)

    def _show_output(self, item: ToolItem, text: str, *, whole: bool = False) -> None:
        self.shown = item
        diff = bool(item.diff) and item.state == "ok"
        text, receipt = item.diff if diff else text, item.receipt
        self._chat.show_output(title_of(item), text, diff=diff, receipt=receipt, whole=whole)
        self._chat.side.stands(masked=item.masked, pinned=item.pinned)

    def retitle(self, title: str, branch: str) -> None:
        self._header(title=title, branch=branch)

    def name_model(self, model: str) -> None:
        self._header(model=model)

    def _header(self, **changes: Any) -> None:
        self._chat.header.state = replace(self._chat.header.state, **changes)

    def _status(self, **changes: Any) -> None:
        self._chat.status.state = replace(self._chat.status.state, **changes)

    def _stream(self, kind: type[AssistantItem] | type[ThinkingItem], text: str) -> None:
        if not isinstance(self._streaming, kind):
            self._end_stream()
            item = kind(streaming=True)
            if isinstance(item, ThinkingItem):
                item.folded = False
            self._streaming = item
            self._provisional.append(item)
            self._chat.add(item)
        assert self._streaming
        self._chat.conversation.stream(self._streaming, text)

    def _end_stream(self) -> None:
        if self._streaming:
            if isinstance(self._streaming, ThinkingItem):
                self._streaming.folded = True
            self._chat.conversation.finish(self._streaming)
            self._streaming = None

    def _void(self) -> str:
        """Another attempt begins: what the last one streamed never was. Returns its text."""
        self._end_stream()  # what was not drawn yet stands in the text then
        voided = self.answer
        for item in self._provisional:
            self._chat.conversation.remove(item)
            if isinstance(item, ToolItem):
                self._tools.pop(item.id, None)
        self._provisional.clear()
        return voided

    def _writing(self, id_: str, name: str) -> None:
        if id_ not in self._tools:
            self._end_stream()
            item = self._tools[id_] = ToolItem(id_, name, state="writing")
            self._provisional.append(item)
            self._chat.add(item)

    def _begin(self, id_: str, name: str, input_: dict[str, Any], label: str) -> None:
        if item := self._tools.get(id_):
            item.label, item.input, item.state = label, input_, "running"
            self._chat.conversation.changed(item)
        else:
            item = self._tools[id_] = ToolItem(id_, name, label, input=input_)
            self._chat.add(item)
        item.started = self._chat.clock.monotonic()
        if self._live is None:
            self._live, self.shown = id_, item
            self._chat.show_output(title_of(item), "")
            self._chat.side.stands(masked=False, pinned=False)

    def _set_tool(self, id_: str, **changes: Any) -> None:
        if item := self._tools.get(id_):
            for name, value in changes.items():
                setattr(item, name, value)
            self._chat.conversation.changed(item)

    def _hear(self, id_: str, text: str) -> None:
        heard = self._outputs.setdefault(id_, deque())
        heard.append(text)
        self._heard += len(text)
        while self._heard > KEPT_CHARS and len(heard) > 1:
            self._heard -= len(heard.popleft())
        if id_ == self._live:
            self._chat.output.write(text)

    def _finish(self, event: events.ToolFinished) -> None:
        item = self._tools.get(event.id)
        if item is None:
            return
        fill(
            item,
            is_error=event.is_error,
            seconds=event.seconds,
            receipt=event.receipt,
            text=event.text,
            diff=event.display,
            summary=event.summary,
        )
        streamed = event.id in self._outputs
        self._heard -= sum(map(len, self._outputs.get(event.id, ())))
        self._outputs[event.id] = deque([event.text])
        self._chat.conversation.changed(item)
        if self._live == event.id:
            self._live = None
            if streamed:
                self._chat.badge_output(event.receipt)
            else:
                self._show_output(item, event.text)

    def _end(self, outcome: str, cost_usd: float | None) -> None:
        chat = self._chat
        self._end_stream()
        self._provisional.clear()
        for item in self._tools.values():
            if item.state in {"writing", "waiting", "running"}:
                close(item, "".join(self._outputs.get(item.id, ())))
                chat.conversation.changed(item)
        if outcome == "interrupted":
            chat.add(NoticeItem("Stopped. Say how to go on.", "warning"))
        chat.retry.done()
        chat.queued.texts = ()
        if all(todo.get("status") == "completed" for todo in chat.todos.todos):
            chat.todos.todos = ()
        if cost_usd is None or self._spent is None:
            self._spent = None
        else:
            self._spent += cost_usd
        self._status(turns=chat.status.state.turns + self._prompted, cost_usd=self._spent)
        self._prompted = False
        self._live = None
        chat.idle()


def meter_state(event: events.ContextMeasured) -> MeterState:
    """What the meter shows of a measurement."""
    return MeterState(**{name: getattr(event, name) for name in MeterState.__slots__})
