"""Lines that workers of this machine print, told again as the events of the run.

A worker's own run is one of its tasks alone: how that began and ended is the driver's to say.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from tui.batch.cluster.engines.local import LocalEngine
from tui.batch.events import (
    BatchEvent,
    FromAgent,
    RetryDelayed,
    RunFinished,
    RunStarted,
    TaskFinished,
    TaskStarted,
)
from tui.core import facts
from tui.core.clock import Clock
from tui.core.dataclass import dataclass, field
from tui.core.facts import Notice
from tui.core.facts.lines import UnknownFactError, fact_of_json

LONGEST_WAIT_S: Final = 15.0
"""Seconds for which other workers wait for the first one's answer."""
_OF_TASK: Final[Mapping[str, type[TaskStarted | RetryDelayed | TaskFinished]]] = {
    "task_started": TaskStarted,
    "waiting": RetryDelayed,
    "task_finished": TaskFinished,
}
_OF_RUN: Final = {"run_started": RunStarted, "notice": Notice, "run_finished": RunFinished}
_NONE: Final = -1
_ANSWERS: Final = (
    facts.TextDelta,
    facts.ThinkingDelta,
    facts.ToolInputDelta,
    facts.AssistantMessage,
)


@dataclass(slots=True)
class WorkerEvents:
    """The events that the workers of `engine` print, whose folders are in `place`. `answered`: a
    model's answer has begun. Until then one worker goes ahead, and the others read from the
    server's cache what it has written."""

    engine: LocalEngine
    place: Path
    clock: Clock
    answered: bool = False
    _first: float | None = None
    _at: dict[str, int] = field(default_factory=dict[str, int])
    """The task that each worker has begun."""
    _live: int = 0

    @property
    def begun(self) -> Mapping[str, int]:
        """The task that each worker has come to, where it was told."""
        return {key: task for key, task in [*self._at.items()] if task != _NONE}

    def forget(self, key: str) -> None:
        """Note that the worker of a task has ended, which may not have said so."""
        self._at.pop(key, None)

    def slots(self) -> int:
        """The workers that may be at work now."""
        now = self.clock.monotonic()
        self._first = now if self._first is None else self._first
        ahead = not self.answered and now - self._first < LONGEST_WAIT_S
        return 1 if ahead else self.engine.slots

    def read(self, tasks: Mapping[str, Collection[int]]) -> tuple[list[BatchEvent], bool]:
        """Return the events printed since the last call, and True if a look at the store is due: a
        worker has ended, or others may begin. `tasks` are those of each worker, which tells of no
        others. Blocks."""
        before, was_answered = self._live, self.answered
        self._live = self.engine.live()
        events = [
            event
            for key, line in self.engine.printed()
            if (event := self._event(key, line, tasks.get(key, ()))) is not None
        ]
        return events, self._live < before or self.answered != was_answered

    def _event(self, key: str, line: bytes, tasks: Collection[int]) -> BatchEvent | None:
        """The event of the run that a line of a worker tells; None for none."""
        try:
            event = event_of(json.loads(line))
        except (ValueError, KeyError, TypeError, RecursionError, UnknownFactError):
            return None  # words for whoever reads the log, or a line that a kill cut off
        if isinstance(event, (*_OF_TASK.values(), FromAgent)) and event.task not in tasks:
            return None  # an error may quote a name of a file that has lines of its own
        match event:
            case TaskStarted(task):
                self._at[key] = task
            case FromAgent(event=inner) if isinstance(inner, _ANSWERS):
                self.answered = True
            case Notice(text):
                task = self._at.get(key, int(key) - 1)
                return Notice(f"[{task + 1}] {text.strip()}") if task >= 0 else None
            case RunStarted():
                self._at[key] = _NONE  # what it says of the file was said
                return None
            case RunFinished():
                self._at.pop(key, None)
                return None
            case _:
                pass
        return event


def event_of(data: dict[str, Any]) -> BatchEvent:
    """The event that `to_json` gave. Raises ValidationError, KeyError, TypeError, RecursionError
    or UnknownFactError for what is none."""
    kind = data["type"]
    if of_task := _OF_TASK.get(kind):
        return msgspec.convert(data, of_task)
    if "task" not in data:
        return msgspec.convert(data, _OF_RUN[kind])
    return FromAgent(msgspec.convert(data["task"], int), fact_of_json(data))  # pyright: ignore[reportArgumentType] - of Fact
