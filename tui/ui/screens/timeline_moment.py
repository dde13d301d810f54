"""What Enter and w open in the timeline: a request as it was sent, a call, a diff, a sub-agent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from tui.app.reports.session import diff_until
from tui.context import request_assembly
from tui.context.request_replay import RequestReplay
from tui.context.timeline import SessionTimeline, TimelineStep
from tui.core.formatting import plural
from tui.core.gc_pause import gc_pause
from tui.core.messages import blocks_of, string_of, text_of
from tui.core.text_cleaning import clean, one_line
from tui.session.records import Record
from tui.ui.screens.read_screen import ReadScreen
from tui.ui.screens.reports import DiffScreen
from tui.ui.screens.sub_agents import open_sub_agent
from tui.ui.toolkit.base_app import BaseScreen
from tui.ui.widgets.file_viewer.line_file import LineFile
from tui.ui.widgets.file_viewer.pane import FilePane
from tui.ui.widgets.keys import Keys, in_rows
from tui.ui.widgets.panes import PaneRule

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.core.config import Price
    from tui.ui.frontend import ScreenFrontend

_CHARS: Final = 200_000
"""Most characters of a result that are shown."""
_KEYS: Final[Keys] = (("/", "find"), ("w", "wrap"), ("y", "copy"), ("esc", "back"))


class SentRequestScreen(BaseScreen, Screen[None]):  # pyright: ignore[reportIncompatibleMethodOverride] - Textual's own arrange
    """A request as it was sent, to read and to search."""

    DEFAULT_CSS = """
    SentRequestScreen { background: $background; color: $foreground; }
    SentRequestScreen #title {
        height: 1; padding: 0 1; background: $panel; text-wrap: nowrap; text-overflow: ellipsis;
    }
    SentRequestScreen FilePane { height: 1fr; padding: 0 1; background: $background; }
    SentRequestScreen #keys { height: 1; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss", "back", show=False)]
    AUTO_FOCUS: ClassVar[str | None] = None

    def __init__(self, title: str, text: str, *, wrap: bool = False) -> None:
        super().__init__()
        self._title, self._text, self._wrap = title, text, wrap

    def compose(self) -> ComposeResult:
        yield Static(Content.styled(self._title, "bold"), id="title")
        yield FilePane(id="sent")
        yield PaneRule(id="keys-rule")
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        pane = self.query_one(FilePane)
        pane.view.wrap = self._wrap
        pane.show(LineFile(self._text))
        pane.view.focus()

    def on_resize(self) -> None:
        self.query_one("#keys", Static).update(in_rows(_KEYS, self.size.width - 2, rows=1))


class MomentOpener:
    """Opens moments of the open session on screens above the timeline."""

    def __init__(self, frontend: ScreenFrontend) -> None:
        self._frontend = frontend
        self._app = cast("App[Any]", frontend.app)

    async def open(self, agent: Agent, step: TimelineStep) -> str:
        """Open the moment at a step. Returns why it can't be opened, "" where it was."""
        records = list(agent.session.records)
        if step.kind == "agent" and agent.sub_agents.of_call(step.call_id) is not None:
            await open_sub_agent(self._frontend, step.call_id)
            return ""
        if step.kind == "request" and step.number:
            sent = await asyncio.to_thread(sent_request, step.number, records)
            if sent is not None:
                self._app.push_screen(SentRequestScreen(*sent))
                return ""
        record = _record(records, step.record)
        diff = string_of(record.data.get("display")) if record else ""
        if diff:
            self._app.push_screen(DiffScreen(one_line(step.label), diff))
            return ""
        text = await asyncio.to_thread(_text, step, records, record)
        self._app.push_screen(ReadScreen(one_line(step.label), text))
        return ""

    def past(self, agent: Agent, record: str = "", timeline: SessionTimeline | None = None) -> None:
        """Show the context as the model saw it at a request, by the id of its record; "" is the
        last one. `timeline` is that of the session, if it is known."""
        from tui.ui.screens.context_past import ContextPastScreen  # noqa: PLC0415 - it needs this

        frontend, known = self._frontend, timeline
        prices = frontend.services.settings.now.prices
        if known is None:  # nobody else may add to it meanwhile
            known, frontend.timeline = frontend.timeline, None

        def fold(records: Sequence[Record]) -> SessionTimeline:
            if timeline is not None:
                return timeline
            frontend.timeline = made = folded(known, records, prices)
            return made

        self._app.push_screen(ContextPastScreen(agent, fold, record))

    async def workspace(self, agent: Agent, step: TimelineStep) -> str:
        """Show what the session had changed in the workspace by a step. Returns why it can't be
        shown, "" where it is."""
        root = self._frontend.services.workspace
        found = await asyncio.to_thread(diff_until, agent, step.record, root)
        if isinstance(found, str):
            return found
        count, text = found
        self._app.push_screen(DiffScreen(f"{plural(count, 'file')} changed by then", text))
        return ""


def folded(
    known: SessionTimeline | None, records: Sequence[Record], prices: Mapping[str, Price]
) -> SessionTimeline:
    """Fold records: what is new of them into what is known, or all of them. Blocks."""
    with gc_pause():
        if known is not None and known.prices == prices and known.follow(records):
            return known
        made = SessionTimeline(prices)
        made.extend(records)
        return made


def _record(records: Sequence[Record], id_: str) -> Record | None:
    return next((one for one in reversed(records) if one.id == id_), None)


def sent_request(number: int, records: Sequence[Record]) -> tuple[str, str] | None:
    """Rebuild a request: what it is, and its text; None where the record doesn't say how it was
    sent. Blocks."""
    replay = RequestReplay(records)
    if number not in replay.requests:
        return None
    replayed = replay.at(number)
    if replayed.request is None:
        return f"Request {number}", f"It can't be rebuilt: {replayed.problem}."
    how = f"not as sent: {replayed.problem}" if replayed.problem else "exactly as it was sent"
    return f"Request {number}, {how}", request_assembly.printed(replayed.request)


def _text(step: TimelineStep, records: Sequence[Record], record: Record | None) -> str:
    """What there is to read of a step: a call with its input and result, or a record. Blocks."""
    parts = [step.note] if step.note else []
    if step.call_id:
        parts += [_input(records, step.call_id)]
        results = (r for r in records if r.type == "tool_result")
        record = next((r for r in results if r.data.get("call_id") == step.call_id), record)
    if record is not None:
        data = record.data
        said = text_of(blocks_of(data.get("content"))) or string_of(data.get("summary"))
        if not said or record.type not in {"user", "tool_result", "compaction"}:
            fields = {name: value for name, value in data.items() if name != "content"}
            said = json.dumps(fields, ensure_ascii=False, indent=2, default=str)
        parts.append(said[:_CHARS])
    return clean("\n\n".join(filter(None, parts))) or one_line(step.label)


def _input(records: Sequence[Record], call_id: str) -> str:
    """The input of a call, as the model wrote it."""
    for record in reversed(records):
        if record.type == "assistant":
            for block in blocks_of(record.data.get("content")):
                if block.get("id") == call_id:
                    given = json.dumps(block.get("input"), ensure_ascii=False, indent=2)
                    return f"{block.get('name')} {given[:_CHARS]}"
    return ""
