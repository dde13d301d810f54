"""The tasks of a run as its driver last read them, and since when each is unchanged.

Leases are judged by this: a task that stands still for too long has lost its worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from tui.batch.cluster.answering import TaskQuestions
from tui.batch.cluster.entry import Refusal, TaskEntry
from tui.batch.cluster.lease import StoredTask, ref_of
from tui.batch.cluster.task_store import QUESTIONS, TASKS, WAITS, StoreError, TaskStore
from tui.batch.cluster.waits import ObservedWaits
from tui.batch.events import EventSink
from tui.batch.state import PlacedRun
from tui.core.clock import Clock
from tui.core.facts import Notice

_UNREACHED: Final = "The store can't be reached; it is tried again. {}"


class ObservedTasks:
    """The tasks in the `store` by their keys, with the `questions` and the waits of their workers.

    `problem` is the reason why the store can't be reached, and since when that is so; None while it
    can be. Where nobody has read for longer than `slept_s`, this machine slept, and every task
    counts as unchanged since then only.
    """

    def __init__(
        self,
        store: TaskStore,
        questions: TaskQuestions,
        sink: EventSink,
        clock: Clock,
        *,
        slept_s: float,
    ) -> None:
        self.store, self._questions = store, questions
        self._sink, self._clock, self._slept_s = sink, clock, slept_s
        self.waits = ObservedWaits(store, clock)
        self.problem: tuple[str, datetime] | None = None
        self._seen: dict[str, tuple[StoredTask, float]] = {}
        """Each task as last read, and since when it is unchanged, by this machine's clock."""
        self._refused_before: dict[str, int] = {}
        """The refusals that each task had when this program first read it."""
        self._last_read = 0.0

    def clear(self) -> None:
        """Forget all tasks, for others that were put into the store."""
        self._seen, self._refused_before = {}, {}

    def read(self, placed: PlacedRun) -> bool:
        """Read the tasks as the store has them. False where it can't be reached, and is waited
        for. Blocks."""
        try:
            refs = self.store.refs(*(f"{room}{placed.run}/" for room in (TASKS, QUESTIONS, WAITS)))
            tasks, asked, waits = (_below(refs, room) for room in (TASKS, QUESTIONS, WAITS))
            now = {ref.rpartition("/")[2]: commit for ref, commit in tasks.items()}
            new = {
                ref_of(placed.run, key): commit
                for key, commit in now.items()
                if key not in self._seen or self._seen[key][0].commit != commit
            }
            self.store.fetch({**new, **self.waits.unread(waits)})
            entries = self.store.entries(new.values())
            self.waits.take(waits)
            self._questions.read(asked)
        except StoreError as error:
            if self.problem is None:
                self.problem = error.message, self._clock.now()
                self._sink.show(Notice(_UNREACHED.format(error)))
            return False
        if self.problem is not None:
            self.problem = None
            self._sink.show(Notice("The store can be reached again."))
        at = self._clock.monotonic()
        if at - self._last_read > self._slept_s:
            # it slept: nobody saw whether they moved
            self._seen = {key: (one, at) for key, (one, _) in self._seen.items()}
        self._last_read = at
        for key, commit in now.items():
            if commit in entries:
                self._refused_before.setdefault(key, len(entries[commit].refusals))
                self.note(key, StoredTask(commit, entries[commit]))
        return True

    def note(self, key: str, task: StoredTask) -> None:
        """Note a task as it is in the store from now on."""
        self._seen[key] = task, self._clock.monotonic()

    def let_lapse(self, key: str, seconds: float) -> None:
        """Let a task count as unchanged for some seconds."""
        if task := self.last_seen(key):
            self._seen[key] = task, self._clock.monotonic() - seconds

    def last_seen(self, key: str) -> StoredTask | None:
        """Return a task as it was last read; None for one that was not."""
        seen = self._seen.get(key)
        return seen[0] if seen else None

    def since(self, key: str) -> float:
        """Return since when a task that was read is unchanged, by this machine's clock."""
        return self._seen[key][1]

    def still_s(self, key: str) -> float:
        """Return the seconds for which a task that was read is unchanged."""
        return self._clock.monotonic() - self._seen[key][1]

    def among(self, keys: Iterable[str]) -> dict[str, StoredTask]:
        """Return those of some tasks that were read, as they were then."""
        return {key: seen[0] for key in keys if (seen := self._seen.get(key))}

    def every(self) -> Mapping[str, StoredTask]:
        """Return all tasks as they were last read, in the order of their keys."""
        return {key: task for key, (task, _) in sorted([*self._seen.items()])}

    def entries(self) -> list[TaskEntry]:
        """Return the states of all tasks as they were last read."""
        return [task.entry for task, _ in [*self._seen.values()]]

    def new_refusals(self, keys: Iterable[str]) -> list[Refusal]:
        """Return why machines refuse some tasks. What they said to an earlier driver counts no
        more: somebody may have mended it."""
        return [
            refusal
            for key, task in self.among(keys).items()
            for refusal in task.entry.refusals[self._refused_before[key] :]
        ]

    def key_of(self, index: int) -> str:
        """Return the name in the store of a task of the file; "" for one that isn't there."""
        return next((entry.key for entry in self.entries() if index in entry.tasks), "")

    def group_of(self, index: int) -> tuple[int, ...]:
        """Return the tasks that share a worker with one, that one included."""
        task = self.last_seen(self.key_of(index))
        return task.entry.tasks if task else (index,)


def _below(refs: Mapping[str, str], room: str) -> dict[str, str]:
    """The refs of a room."""
    return {ref: commit for ref, commit in refs.items() if ref.startswith(room)}
