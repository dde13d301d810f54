"""The tool calls of a conversation: their cards, their output, and the one in the output pane."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from tui.core.facts import PermissionAnswered, ToolFinished
from tui.core.text_cleaning import one_line
from tui.ui.screens.chat import ChatScreen
from tui.ui.widgets.conversation.items import Item, ToolItem
from tui.ui.widgets.markdown.text import clip
from tui.ui.widgets.record_items import (
    INTERRUPTED,
    SHOWN_CHARS,
    RestoredItems,
    close,
    fill,
    label_of_written,
    show_decision,
    title_of,
)

KEPT_CHARS = 1_000_000
"""Characters kept of what running tools print, counted from the end."""

_TAIL_CHARS = 2_000
"""Characters kept on the card of what a running tool prints."""
_PHASE = 40
"""Cells for a call's title where the screen says what is happening."""
_RUNNING = frozenset({"running", "waiting"})
_COMMANDS = frozenset({"run_command", "shell"})
_BEFORE = frozenset({"writing", "written"})


class ToolCalls:
    """Keeps one session's calls by their id. `shown` is the one whose output is in the pane.

    The pane follows the first running call until it finishes or another is opened there. A call
    that failed stays in it until the turn is over.
    """

    def __init__(self, chat: ChatScreen, result: Callable[[str], str] = lambda _: "") -> None:
        """`result` returns the whole result of a call, of which events carry the beginning."""
        self.shown: ToolItem | None = None
        self._chat, self._result = chat, result
        self._items: dict[str, ToolItem] = {}
        self._open: dict[str, ToolItem] = {}  # without an end yet
        self._outputs: dict[str, deque[str]] = {}
        self._pieces: dict[str, list[str]] = {}  # the JSON of the calls that are being written
        self._printed = 0  # characters, by calls that have not finished
        self._live: str | None = None
        self._kept = False  # a failed call stays in the pane until the turn is over

    @property
    def phase(self) -> str:
        """The current activity: a question before all else, then the call that has run longest."""
        if self._asks:
            return "waiting for your answer"
        running = self._running
        if not running:
            return "working"
        more = f" and {len(running) - 1} more" if running[1:] else ""
        return f"{clip(one_line(title_of(running[0])), _PHASE)}{more}"

    @property
    def since(self) -> float | None:
        """Start time of the call that `phase` names, as on its card; None if it names none."""
        return None if self._asks or not self._running else self._running[0].started

    @property
    def movable(self) -> bool:
        """True if `phase` names a command, which can go to the background."""
        running = [] if self._asks else self._running
        return bool(running) and running[0].name in _COMMANDS

    @property
    def _asks(self) -> bool:
        return any(item.state == "waiting" for item in self._open.values())

    @property
    def _running(self) -> list[ToolItem]:
        return [item for item in self._open.values() if item.state == "running"]

    def resume(self, past: RestoredItems) -> None:
        """Start from the calls that a session already holds; their cards are drawn."""
        self._items = past.tools
        self._outputs = {id_: deque([text]) for id_, text in past.outputs.items()}

    def extend(self, outputs: Mapping[str, str]) -> None:
        """Take over results of calls whose cards are drawn, and show one in the pane if it is
        that call's."""
        self._outputs |= {id_: deque([text]) for id_, text in outputs.items()}
        if self.shown is not None and self.shown.id in outputs:
            self._show(self.shown, outputs[self.shown.id], whole=True)

    def write(self, id_: str, name: str, piece: str) -> ToolItem | None:
        """Return a new item for a call that the model begins to write, so that a failed answer can
        take it back; None if the call is known."""
        known = self._items.get(id_)
        if known is not None and not piece and known.state == "interrupted":
            # of a recorded answer that another process has at work: it waits for its turn
            self._open[id_] = known
            self.change(id_, state="written", summary="")
            return None
        self._pieces.setdefault(id_, []).append(piece)
        if known is not None:
            return None
        item = self._items[id_] = self._open[id_] = ToolItem(id_, name, state="writing")
        return item

    def written(self) -> None:
        """Mark the calls of a complete answer as waiting for their turn."""
        for item in self._open.values():
            if item.state == "writing":
                item.state = "written"
                item.label = label_of_written(item.name, "".join(self._pieces.get(item.id, ())))
                self._chat.conversation.changed(item)
        self._pieces.clear()

    def forget(self, item: ToolItem) -> None:
        """Drop a call that was taken back before it was complete."""
        self._items.pop(item.id, None)
        self._open.pop(item.id, None)
        self._pieces.pop(item.id, None)

    def begin(
        self, id_: str, name: str, input_: dict[str, Any], label: str, seconds: float = 0.0
    ) -> None:
        """Show that a call runs, already for so many seconds. Its output goes to the pane unless
        another call's is arriving there."""
        if item := self._items.get(id_):
            item.name, item.label = name, label  # a tool found by search is called through another
            item.input, item.state, item.summary = input_, "running", ""
            self._chat.conversation.changed(item)
        else:
            item = self._items[id_] = ToolItem(id_, name, label, input=input_)
            self._chat.add(item)
        self._open[id_] = item
        item.started = self._chat.clock.monotonic() - seconds
        if self._live is None and not self._kept:
            self._live, self.shown = id_, item
            self._chat.side.show(title_of(item), "")
            self._chat.side.show_marks(masked=False, pinned=False)

    def change(self, id_: str, **changes: Any) -> None:
        """Set fields of a call's item, if there is one."""
        if item := self._items.get(id_):
            for name, value in changes.items():
                setattr(item, name, value)
            self._chat.conversation.changed(item)

    def decide(self, event: PermissionAnswered) -> None:
        """Show that a call may run, from now on, or may not."""
        if item := self._items.get(event.id):
            item.state, item.started = "running", self._chat.clock.monotonic()
            show_decision(item, event)
            self._chat.conversation.changed(item)

    def hear(self, id_: str, text: str, picture: str = "") -> None:
        """Keep and show what a call has printed, and what it draws over several lines now."""
        chunks = self._outputs.setdefault(id_, deque())
        chunks.append(text)
        self._printed += len(text)
        while self._printed > KEPT_CHARS and len(chunks) > 1:
            self._printed -= len(chunks.popleft())
        if item := self._open.get(id_):
            item.tail, item.picture = (item.tail + text)[-_TAIL_CHARS:], picture
            if (item.seconds or 0) >= 1:
                self._chat.conversation.changed(item)
        if id_ == self._live:
            self._chat.output.write(text)

    def finish(self, event: ToolFinished) -> None:
        """Show the result of a call."""
        self._open.pop(event.id, None)
        item = self._items.get(event.id)
        if item is None:
            return
        printed = "".join(self._outputs.get(event.id, ()))
        short = not event.receipt and len(printed) <= SHOWN_CHARS
        if "\x1b" in printed and short and event.summary != INTERRUPTED:
            event = replace(event, text=printed)  # what the model gets has no colours
        whole = self._whole(event.id, event.text)
        fill(item, replace(event, text=whole))
        if event.name == "shell" and not self._chat.side.in_sight:  # the person wants to see it
            item.folded = False
        streamed = event.id in self._outputs
        self._printed -= sum(map(len, self._outputs.get(event.id, ())))
        self._outputs[event.id] = deque([event.text])
        self._chat.conversation.changed(item)
        if self._live == event.id:
            self._live = None
            self._kept = item.state == "error"
            if streamed:
                self._chat.side.badge(event.receipt)
            else:
                self._show(item, whole)

    def end(self) -> None:
        """End the turn: calls without a reported end were interrupted."""
        for item in self._open.values():
            if item.state in _BEFORE | _RUNNING:
                close(item, "".join(self._outputs.get(item.id, ())))
                self._chat.conversation.changed(item)
        self._open.clear()
        self._live = None
        self._kept = False

    def open(self, item: Item) -> None:
        """Show the output of a tool call in the pane; other items have none."""
        if isinstance(item, ToolItem):
            text = "".join(self._outputs.get(item.id, ())) or item.preview
            self._live = item.id if item.state in _RUNNING else None
            text = text if self._live else self._whole(item.id, text)
            self._kept = False
            self._show(item, text, whole=True)

    def mark(self, change: dict[str, Any]) -> None:
        """Show on its card how a result is used in the context (`ContextChanged`)."""
        id_ = str(change.get("call_id", ""))
        if "pinned" in change:
            self.change(id_, pinned=change["pinned"])
        else:
            self.change(id_, masked=change["view"] == "masked")
        if self.shown is not None and self.shown.id == id_:
            self._chat.side.show_marks(masked=self.shown.masked, pinned=self.shown.pinned)

    def outdate(self, files: Iterable[Mapping[str, Any]]) -> None:
        """Mark the cards of calls that showed these files as outdated (`FilesChanged`), or as
        current again."""
        for file in files:
            for id_ in file["calls"]:
                self.change(id_, outdated=file["state"] != "back")

    def _whole(self, id_: str, text: str) -> str:
        """Return the whole result if a text may be only its beginning."""
        return self._result(id_) or text if len(text) >= SHOWN_CHARS else text

    def _show(self, item: ToolItem, text: str, *, whole: bool = False) -> None:
        self.shown = item
        diff = bool(item.diff) and item.state == "ok"
        text, receipt = item.diff if diff else text, item.receipt
        reason = bool(item.summary) and text.startswith(item.summary)
        prose = item.state == "denied" or (item.state == "error" and reason)
        self._chat.side.show(
            title_of(item), text, diff=diff, receipt=receipt, whole=whole, prose=prose
        )
        self._chat.side.show_marks(masked=item.masked, pinned=item.pinned)
