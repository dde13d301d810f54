"""The state of placed tasks for a person: who works on each, and what the others wait for. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Final, TypeAlias

from msgspec.structs import replace

from tui.batch.cluster.engines.port import Life
from tui.batch.cluster.entry import TaskEntry
from tui.batch.placement import TaskPlacement
from tui.batch.state import RunState, TaskState
from tui.core.dataclass import dataclass, field
from tui.core.formatting import duration

_STILL: Final = 0.4
"""The share of the lease without a sign of life after which that is mentioned: a worker renews it
sooner."""

Wait: TypeAlias = tuple[str, str, bool]
"""The words for what a task waits for, short and as a sentence, and if that is out of the
ordinary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverSight:
    """The facts that a driver has at one moment, by the keys of the tasks where it is about one:
    the state in the store of each `entry`, for how long it is unchanged, the life of its worker,
    and the seconds before another one is started for it.

    `keys` are the tasks of each key in the task file, `skipped` those that aren't to be started;
    `ended` are the running ones whose worker has ended, as the engine says. `asking` has the
    questions of tasks that wait for the person's answer; `at` has the task that a worker has begun,
    where it tells that at once. `is_over`: the driver has ended.
    """

    engine: str
    slots: int
    lease_s: float
    keys: Mapping[str, tuple[int, ...]]
    entries: Mapping[str, TaskEntry]
    still_s: Mapping[str, float]
    lives: Mapping[str, Life]
    delays: Mapping[str, float] = field(default_factory=dict[str, float])
    ended: Collection[str] = frozenset()
    skipped: Collection[int] = frozenset()
    asking: Mapping[int, str] = field(default_factory=dict[int, str])
    at: Mapping[str, int] = field(default_factory=dict[str, int])
    is_over: bool = False
    pausing: bool = False
    out_of_money: bool = False
    engine_problem: str = ""

    def running(self) -> tuple[int, ...]:
        """The tasks that are being worked on."""
        at_work = (
            self._active(key, entry)
            for key, entry in self.entries.items()
            if entry.state == "running" or (key in self.at and not entry.is_over)
        )
        return tuple(sorted(at_work))

    def _active(self, key: str, entry: TaskEntry) -> int:
        """The task of a group that is being worked on."""
        return self.at.get(key, _active(entry, self.keys[key]))

    def hosts(self) -> dict[str, int]:
        """The number of tasks that each host works on."""
        counted = Counter(
            one.host
            for key, one in self.entries.items()
            if one.state == "running" and key not in self.ended
        )
        return dict(sorted(counted.items()))

    def tasks(self) -> Iterator[tuple[int, TaskPlacement]]:
        """Yield each task that isn't over with its place."""
        for key, entry in self.entries.items():
            if not entry.is_over:
                active = self._active(key, entry)
                for index in self.keys[key]:
                    yield index, self._place(key, entry, index, active)

    def _place(self, key: str, entry: TaskEntry, index: int, active: int) -> TaskPlacement:
        if entry.state == "running" and index != active:
            earlier = index < active
            label = "with group" if earlier else "group next"
            why = "Its result comes with its group's." if earlier else "It runs after its group's."
            return TaskPlacement(label=label, why=why)
        if index in self.asking:
            label, why, warning = "asks you", self.asking[index], True
        else:
            label, why, warning = self._still(key) if entry.state == "running" else self._wait(key)
        return TaskPlacement(
            entry.host if entry.state == "running" else "",
            label,
            why,
            warning,
            entry.attempt,
            entry.losses.count,
            entry.ended,
            entry.spent_usd,
            entry.cap_usd,
        )

    def _still(self, key: str) -> Wait:
        """Words for a running task whose worker gives no sign of life; "" for all others."""
        still_s = self.still_s.get(key, 0.0)
        left = duration(self.lease_s - still_s)
        if key in self.ended:
            return "worker gone", f"Its worker has ended; its lease runs out in {left}.", True
        if still_s < _STILL * self.lease_s:
            return "", "", False
        why = f"No sign of life for {duration(still_s)}; its lease runs out in {left}."
        return f"silent {int(still_s)} s", why, True

    def _wait(self, key: str) -> Wait:
        """Words for the first thing that keeps a waiting task from being worked on."""
        entry, delay = self.entries[key], self.delays.get(key, 0.0)
        if entry.cancelled:
            return "canceled", "It was canceled with --reset.", True
        if self.keys[key][0] in self.skipped:
            return "skipped", "It is skipped in this run.", False
        if key in self.lives:
            if self.lives[key] == "waits":
                return "in queue", f"It waits in the queue of {self.engine}.", False
            return "starting", "Its worker is starting.", False
        if self.is_over:
            return "", "The next run continues with it.", False
        if self.pausing:
            return "paused", "Paused: p continues.", False
        if self.out_of_money:
            return "budget", "It waits for the budget: what is left is reserved.", True
        if self.engine_problem:
            return "engine", self.engine_problem, True
        if delay > 0:
            why = f"Its workers ended without it; the next one starts in {duration(delay)}."
            return f"again {int(delay)} s", why, True
        return "no machine", f"It waits for a free machine: all {self.slots} are taken.", False


def _active(entry: TaskEntry, indexes: tuple[int, ...]) -> int:
    """The task of a group that is being worked on: the first one until its worker says more."""
    active = entry.active
    return active.index if active is not None and active.index in indexes else indexes[0]


@dataclass(slots=True)
class PlacedStates:
    """The state of a run with what the store says of the tasks that aren't taken yet. A task that
    has not changed stays the same object, so that only changed rows are drawn."""

    _made: dict[int, tuple[TaskState, TaskEntry, bool, TaskState]] = field(
        default_factory=dict[int, "tuple[TaskState, TaskEntry, bool, TaskState]"]
    )

    def over(self, state: RunState, sight: DriverSight) -> RunState:
        """Return the state as a person is to see it."""
        seen = {index: entry for key, entry in sight.entries.items() for index in sight.keys[key]}
        running = frozenset(sight.running())
        tasks = tuple(
            self._task(task, entry, running=task.index in running)
            if (entry := seen.get(task.index))
            else task
            for task in state.tasks
        )
        return replace(state, tasks=tasks)

    def _task(self, task: TaskState, entry: TaskEntry, *, running: bool) -> TaskState:
        before = self._made.get(task.index)
        if before and before[0] is task and before[1] is entry and before[2] == running:
            return before[3]
        shown = task
        session = entry.active.session if entry.active else None
        begun = entry.attempt > 0 and task.index <= _active(entry, entry.tasks)
        to_do = task.is_to_do or task.status == "running"  # as its worker had told
        if to_do and (running or (entry.state == "waiting" and begun)):
            shown = replace(
                task,
                status="running" if running else "interrupted",
                attempts=entry.attempt,
                session_id=session or task.session_id,
            )
        elif task.session_id is None and (entry.is_over or begun):
            shown = replace(task, session_id=session)
        self._made[task.index] = task, entry, running, shown
        return shown
