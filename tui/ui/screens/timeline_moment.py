"""Opening a moment of the timeline: a request as it was sent, a call, a diff, a sub-agent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from textual.app import App

from tui.app.reports.session import diff_until
from tui.context.timeline import SessionTimeline, TimelineStep
from tui.core.errors import HoldfastError
from tui.core.formatting import plural
from tui.core.gc_pause import gc_pause
from tui.core.messages import blocks_of, string_of, text_of
from tui.core.text_cleaning import clean, one_line
from tui.session import importers
from tui.session.reader import read
from tui.session.records import Record
from tui.ui.screens.context_past import ContextPastScreen
from tui.ui.screens.read_screen import ReadScreen
from tui.ui.screens.reports import DiffScreen
from tui.ui.screens.sent_request import SentRequestScreen, sent_request
from tui.ui.screens.sub_agents import open_sub_agent

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.core.config import Price
    from tui.ui.frontend import ScreenFrontend

_CHARS: Final = 200_000
"""Most characters of a result that are shown."""


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
        if step.kind == "request":
            sent = await asyncio.to_thread(sent_request, step.record, records)
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
        frontend = self._frontend
        known = timeline
        if known is None:  # nobody else may add to it meanwhile
            known, frontend.timeline = frontend.timeline, None
        prices = frontend.services.settings.now.prices
        made = known or SessionTimeline(prices, agent.session.header.cwd)
        screen = ContextPastScreen(agent, made, record)

        def keep(_: None) -> None:
            if timeline is None:
                frontend.timeline = screen.timeline

        self._app.push_screen(screen, keep)

    async def other(self, prices: Mapping[str, Price]) -> tuple[str, SessionTimeline] | str:
        """Have another session chosen: its title and its timeline, or why there is none."""
        choice = await self._frontend.pick_session()
        if choice is None or choice.path is None:
            return "No session chosen."
        try:
            return await asyncio.to_thread(_other, choice.path, prices, foreign=choice.foreign)
        except HoldfastError as error:
            return error.message

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


def _other(
    path: Path, prices: Mapping[str, Price], *, foreign: bool
) -> tuple[str, SessionTimeline]:
    """Read a session, and fold its records. Blocks. Raises SessionError."""
    loaded = importers.load(path) if foreign else read(path)
    made = SessionTimeline(prices, loaded.header.cwd)
    with gc_pause():
        made.extend(loaded.branch)
    prompts = made.marks["prompt"].steps
    return one_line(made.steps[prompts[0]].label) if prompts else loaded.header.id, made


def _record(records: Sequence[Record], id_: str) -> Record | None:
    return next((one for one in reversed(records) if one.id == id_), None)


def _text(step: TimelineStep, records: Sequence[Record], record: Record | None) -> str:
    """The text of a step: a call with its input and result, or a record. Blocks."""
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
