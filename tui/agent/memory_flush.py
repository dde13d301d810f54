"""Memory: what is worth keeping of a session, asked for and written to MEMORY.md."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from tui.agent import events
from tui.agent.agent_context import AgentContext
from tui.agent.model_stream import ask_aside
from tui.agent.request_builder import RequestBuilder
from tui.context import memory, summary_prompts
from tui.context.compaction_view import GONE
from tui.context.history import History
from tui.context.overrides import SPEAKING, content_of
from tui.core.errors import HoldfastError
from tui.core.files import private_folder
from tui.core.messages import Usage
from tui.session.records import Record

log = logging.getLogger(__name__)

SAVING: Final = "📝 Saving context..."
"""Shown to the letter."""

_ANSWER_TOKENS = 2000
_PARTS = 4


@dataclass(frozen=True, slots=True)
class MemoryFlush:
    """Flushes one session to its memory file, where there is one and the configuration says so."""

    ctx: AgentContext
    requests: RequestBuilder

    def pending(self, upto: str = "") -> bool:
        """Whether something was said, up to a record, that was not flushed yet."""
        enabled = self.ctx.config.compaction.memory_flush and self.ctx.memory_file is not None
        return bool(self._fresh(upto)) and enabled

    async def flush(self, *, upto: str = "") -> bool:
        """Ask what is worth keeping of what is new, and write it. False where nothing was kept.

        Nothing is raised but a cancellation: whatever comes after does not depend on it.
        """
        path = self.ctx.memory_file
        if not self.pending(upto) or path is None:
            return False
        self.ctx.publish(events.Notice(SAVING))
        try:
            notes, usage = await self._notes(self._fresh(upto))
            added = 0
            if notes:
                today = self.ctx.clock.now().astimezone().date()
                added = await asyncio.to_thread(_write, path, notes, today)
        except HoldfastError as error:
            log.warning("the memory was not saved: %s", error)
            self.ctx.publish(events.Notice(f"The memory was not saved: {error.message}"))
            return False
        except Exception:
            log.exception("the memory was not saved")
            return False
        last = self._fresh(upto)[-1].id
        data = {"path": str(path), "notes": notes, "added": added, "covers": last}
        self.ctx.recorder.append("memory", **data, model=self.ctx.model.id, usage=usage.to_json())
        await self.ctx.recorder.show(events.MemorySaved(str(path), added))
        return bool(added)

    def _fresh(self, upto: str) -> list[Record]:
        """What was said since the last flush, if an answer is in it."""
        found: list[Record] = []
        done = next(
            (r.data.get("covers") for r in reversed(self.ctx.records) if r.type == "memory"), None
        )
        for record in reversed(self.ctx.records):
            if record.id == done:
                break
            if record.type in SPEAKING:
                found.append(record)
        found.reverse()
        if upto:
            ends = [n for n, record in enumerate(found) if record.id == upto]
            found = found[: ends[0] + 1] if ends else []
        answered = any(r.type == "assistant" and content_of(r) for r in found)
        return found if answered else []

    async def _notes(self, fresh: Sequence[Record]) -> tuple[list[str], Usage]:
        """The notes of the model on all that is new: a request for each part that one can carry.

        Of very much, the newest parts.
        """
        stands = self.requests.view().stands
        history = History(self.ctx.model.id)
        for record in fresh:
            stand = stands.get(record.id)
            history.add(record, None if stand is None or stand.state == GONE.state else stand)
        pieces = summary_prompts.transcript(history.messages)
        parts = summary_prompts.parts(pieces, int(self.ctx.model.window * summary_prompts.SHARE))
        notes, used = list[str](), Usage()
        for part in parts[-_PARTS:]:
            answer = await ask_aside(self.ctx, memory.question(part), _ANSWER_TOKENS)
            notes += memory.notes_in(answer.text)
            used += answer.usage
        return notes, used


def _write(path: Path, notes: Sequence[str], today: date) -> int:
    private_folder(path.parent)
    return memory.remember(path, notes, today).added
