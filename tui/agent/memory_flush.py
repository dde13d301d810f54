"""Memory: what is worth keeping of a session, asked for and written to MEMORY.md (R26 to R29)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from tui.agent import events
from tui.agent.events import Event
from tui.agent.limits import Spent
from tui.agent.recorder import Recorder
from tui.agent.side_question import Question, ask
from tui.context import memory, summary_prompts
from tui.context.compaction_view import GONE
from tui.context.history import History
from tui.context.overrides import SPEAKING, content_of
from tui.context.view import View
from tui.core.clock import Clock
from tui.core.config import Price
from tui.core.errors import HoldfastError
from tui.core.files import private_folder
from tui.core.messages import Usage
from tui.provider.base import ModelInfo, Provider
from tui.session.records import Record

log = logging.getLogger(__name__)

SAVING: Final = "📝 Saving context..."
"""R27's text, to the letter."""

_ANSWER_TOKENS = 2000
_PARTS = 4


@dataclass(slots=True)
class Memory:
    """Flushes one session to a memory file. `path` None: there is nowhere to write (R28).

    `enabled` is EnablePreCompactionFlush; `spend` takes what a request costs.
    """

    provider: Provider
    recorder: Recorder
    clock: Clock
    path: Path | None
    enabled: bool
    model: Callable[[], ModelInfo]
    look: Callable[[], View]
    publish: Callable[[Event], None]
    spend: Callable[[Spent], None]
    price: Callable[[], Price | None] = lambda: None

    def pending(self, upto: str = "") -> bool:
        """Whether something was said, up to a record, that was not flushed yet."""
        return bool(self._fresh(upto)) and self.enabled and self.path is not None

    async def flush(self, *, upto: str = "") -> bool:
        """Ask what is worth keeping of what is new, and write it. False where nothing was kept.

        Nothing is raised but a cancellation: whatever comes after does not depend on it (R28).
        """
        path = self.path
        if not self.pending(upto) or path is None:
            return False
        self.publish(events.Notice(SAVING))
        try:
            notes, usage = await self._notes(self._fresh(upto))
            added = 0
            if notes:
                today = self.clock.now().astimezone().date()
                added = await asyncio.to_thread(_write, path, notes, today)
        except HoldfastError as error:
            log.warning("the memory was not saved: %s", error)
            self.publish(events.Notice(f"The memory was not saved: {error.message}"))
            return False
        except Exception:
            log.exception("the memory was not saved")
            return False
        last = self._fresh(upto)[-1].id
        said = {"path": str(path), "notes": notes, "added": added, "covers": last}
        self.recorder.append("memory", **said, model=self.model().id, usage=usage.to_json())
        await self.recorder.show(events.MemorySaved(str(path), added))
        return bool(added)

    def _fresh(self, upto: str) -> list[Record]:
        """What was said since the last flush, if an answer is in it."""
        found: list[Record] = []
        done = next(
            (r.data.get("covers") for r in reversed(self._records) if r.type == "memory"), None
        )
        for record in reversed(self._records):
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

    @property
    def _records(self) -> Sequence[Record]:
        return self.recorder.session.records

    async def _notes(self, fresh: Sequence[Record]) -> tuple[list[str], Usage]:
        """The notes of the model on all that is new: a request for each part that one can carry.

        Of very much, the newest parts.
        """
        stands = self.look().stands
        told = History(self.model().id)
        for record in fresh:
            stand = stands.get(record.id)
            told.add(record, None if stand is None or stand.state == GONE.state else stand)
        pieces = summary_prompts.transcript(told.messages)
        parts = summary_prompts.parts(pieces, int(self.model().window * summary_prompts.SHARE))
        notes, used = list[str](), Usage()
        for part in parts[-_PARTS:]:
            question = Question(self.model(), memory.question(part), _ANSWER_TOKENS)
            answer = await ask(self.provider, question, publish=self.publish)
            self.spend(Spent.on(answer.usage, self.price()))
            notes += memory.notes_in(answer.text)
            used += answer.usage
        return notes, used


def _write(path: Path, notes: Sequence[str], today: date) -> int:
    private_folder(path.parent)
    return memory.remember(path, notes, today).added
