"""Counts of the workers that were started and never took their task: each next one waits longer.
Pure."""

from __future__ import annotations

from typing import Final

from tui.batch.cluster.entry import TaskEntry

FREE: Final = 3
"""Workers of a task that are started without a wait."""
_FIRST_S: Final = 15.0
_MOST_S: Final = 300.0
_OVERDUE_S: Final = 600.0


class WorkerStarts:
    """The starts of workers by task, since a worker last took it."""

    def __init__(self) -> None:
        self._starts: dict[str, tuple[int, int, float]] = {}
        """The attempts that a task had, the workers started since, and when the last one was."""

    def wait_s(self, entry: TaskEntry, now: float) -> float:
        """The seconds until a worker may be started for a waiting task; 0 if it may be now."""
        attempt, count, last = self._starts.get(entry.key, (entry.attempt, 0, now))
        if attempt != entry.attempt or count < FREE:
            return 0.0
        return max(0.0, min(_MOST_S, _FIRST_S * 2 ** (count - FREE)) - (now - last))

    def is_due(self, entry: TaskEntry, now: float) -> bool:
        """True if a worker may be started for a waiting task."""
        return self.wait_s(entry, now) <= 0.0

    def note(self, entry: TaskEntry, now: float) -> None:
        """A worker is started."""
        attempt, count, _ = self._starts.get(entry.key, (entry.attempt, 0, now))
        same = attempt == entry.attempt
        self._starts[entry.key] = entry.attempt, count + 1 if same else 1, now

    def is_overdue(self, entry: TaskEntry, since: float, now: float) -> bool:
        """True if a worker that lives, as its engine says, should have taken this task by now: it
        waits unchanged `since` then."""
        _, _, last = self._starts.get(entry.key, (0, 0, since))
        return entry.state == "waiting" and now - max(since, last) > _OVERDUE_S
