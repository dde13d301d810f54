"""The workers of a run: started for tasks that wait, and replaced where they are gone.

The store says whose a task is; what the engine says of a worker's life only decides whether another
one is started.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from tui.batch.cluster.budget import Budget
from tui.batch.cluster.engines.port import EngineError, Life, WorkerEngine
from tui.batch.cluster.entry import TaskEntry
from tui.batch.cluster.lease import LeasePace, change, lost, ref_of
from tui.batch.cluster.observed_tasks import ObservedTasks
from tui.batch.cluster.relay import WorkerEvents
from tui.batch.cluster.task_store import StoreError
from tui.batch.cluster.worker_starts import WorkerStarts
from tui.batch.state import PlacedRun
from tui.core.clock import Clock


class RunInCharge(Protocol):
    """The run that has the workers, with what the person wishes of it now."""

    @property
    def pausing(self) -> bool:
        """True if the run is to end after the tasks that are being worked on."""
        ...

    @property
    def skipped(self) -> frozenset[int]:
        """The tasks that aren't to be started."""
        ...

    @property
    def starts_nothing(self) -> bool:
        """True if no further task is to be started."""
        ...

    def say(self, text: str) -> None:
        """Tell the person a line, once."""
        ...


class PlacedWorkers:
    """The workers that an `engine` has for `tasks`. All but the properties blocks.

    `printed` has the events of workers on this machine. `scratch` is the folder for tasks on each
    machine, "" for the usual one. `handles` has the worker of each task, as the engine knows it,
    and `lives` the life of each worker, as the engine last said; `ended` the attempt of each task
    whose worker has ended by that. `engine_problem` is the reason why none can be started, "" for
    none. `out_of_money`: a task waits for money, and `is_unpaid`: nothing else is left to be done.
    """

    def __init__(
        self,
        engine: WorkerEngine,
        tasks: ObservedTasks,
        run: RunInCharge,
        pace: LeasePace,
        clock: Clock,
        *,
        printed: WorkerEvents | None,
        scratch: str,
    ) -> None:
        self._engine, self._tasks, self._run = engine, tasks, run
        self._pace, self._clock = pace, clock
        self._printed, self._scratch = printed, scratch
        self._starts = WorkerStarts()
        self.handles: dict[str, str] = {}
        self.lives: dict[str, Life] = {}
        self.ended: dict[str, int] = {}
        self.engine_problem = ""
        self.out_of_money = self.is_unpaid = False

    def life_of(self, key: str) -> Life | None:
        """Return the life of a task's worker; None where it has none that the engine was asked
        about."""
        return self.lives.get(self.handles[key]) if key in self.handles else None

    def delay_s(self, key: str) -> float:
        """Return the seconds until a worker may be started for a task that was read."""
        task = self._tasks.last_seen(key)
        return self._starts.wait_s(task.entry, self._clock.monotonic()) if task else 0.0

    def free_lost(self, placed: PlacedRun) -> None:
        """Take tasks from workers that have been still for too long, and end these, wherever the
        engine still has them."""
        for key, stored in self._tasks.every().items():
            if stored.entry.state != "running" or self._tasks.still_s(key) <= self._pace.lost:
                continue
            try:
                store, ref = self._tasks.store, ref_of(placed.run, key)
                if now := lost(store, ref, stored, "the worker was gone"):
                    self._tasks.note(key, now)
                    self._run.say(f"Task {now.entry.tasks[0] + 1}: {now.entry.ended}.")
                    if handle := self.handles.pop(key, ""):
                        with suppress(EngineError):
                            self._engine.cancel([handle])
            except StoreError as error:
                self._run.say(f"Task {key} can't be taken from its worker now: {error}")

    def start_more(self, placed: PlacedRun, limit_usd: float | None) -> None:
        """Give the engine tasks that wait, as many as it and the money allow: `limit_usd` for all
        tasks of this run in the store, None for no limit."""
        try:
            self._drop_ended()
            self._take_back()
            if not self._run.starts_nothing and (wanted := self._chosen(placed, limit_usd)):
                self.handles |= self._engine.put(wanted)
            self.engine_problem = ""
        except EngineError as error:
            self.engine_problem = error.message
            self._run.say(f"The engine {self._engine.name} can't start workers now: {error}")
        except StoreError as error:
            self._run.say(f"Workers can't be started now: {error}")

    def _drop_ended(self) -> None:
        """Forget the workers that have ended, by what the engine says: nothing but new ones depends
        on it. One that lives by its word, and takes no task, isn't waited for without an end."""
        self.lives = lives = dict(self._engine.watch([*self.handles.values()]))
        for key, handle in [*self.handles.items()]:
            life, task = lives.get(handle), self._tasks.last_seen(key)
            if life not in {"lives", "waits"}:
                if life == "ended" and task:
                    self.ended[key] = task.entry.attempt
                del self.handles[key]
                self._say_end(key, handle)
                if self._printed is not None:
                    self._printed.forget(key)
                    if self._printed.engine.was_killed(handle):
                        self._tasks.let_lapse(key, self._pace.lost + 1.0)
            elif task is None:
                continue
            elif task.entry.is_over:
                del self.handles[key]
            elif life == "lives" and self._is_overdue(key):
                del self.handles[key]
                self._run.say(f"Task {key}: its worker hasn't taken it; another one is started.")
                self._engine.cancel([handle])

    def _is_overdue(self, key: str) -> bool:
        task, since = self._tasks.last_seen(key), self._tasks.since(key)
        return task is not None and self._starts.is_overdue(
            task.entry, since, self._clock.monotonic()
        )

    def _say_end(self, key: str, handle: str) -> None:
        """Say why a worker is gone that has left its task as it was."""
        task = self._tasks.last_seen(key)
        if task is None or task.entry.state != "waiting":
            return
        with suppress(EngineError):  # a log that is lost stops nobody
            last = self._engine.fetch(handle).strip().rpartition("\n")[2]
            is_event = last.endswith("}")  # of one that came to its end meanwhile
            if last and not is_event:
                self._run.say(f"A worker ended without its task. {last}")

    def _take_back(self) -> None:
        """Cancel workers that no machine has begun, of tasks that aren't to be started now."""
        back = [
            (key, handle)
            for key, handle in self.handles.items()
            if self.lives.get(handle) == "waits"
            and (task := self._tasks.last_seen(key)) is not None
            and (self._run.starts_nothing or self._is_skipped(task.entry))
        ]
        if back:
            self._engine.cancel([handle for _, handle in back])
            for key, _ in back:
                del self.handles[key]

    def _is_skipped(self, entry: TaskEntry) -> bool:
        return not self._run.skipped.isdisjoint(entry.tasks)

    def _chosen(self, placed: PlacedRun, limit_usd: float | None) -> dict[str, list[str]]:
        """The next tasks for the engine, each with the words of its worker's command."""
        wanted: dict[str, list[str]] = {}
        self.out_of_money = False
        entries = self._tasks.entries()
        slots = self._printed.slots() if self._printed else self._engine.slots
        sharing = min(self._engine.slots, sum(not entry.is_over for entry in entries)) or 1
        budget = Budget(limit_usd, sharing, entries)
        unpaid: set[str] = set()
        for key, stored in self._tasks.every().items():
            entry = stored.entry
            if entry.state != "waiting" or entry.cancelled or key in self.handles:
                continue
            if self._is_skipped(entry):
                continue
            if len(self.handles) + len(wanted) >= slots:
                break
            if not self._starts.is_due(entry, self._clock.monotonic()):
                continue
            cap = budget.cap_of(entry)
            if cap is not None and cap <= 0:
                unpaid.add(key)
                self.out_of_money = True
                continue
            if cap != entry.cap_usd:
                store, ref = self._tasks.store, ref_of(placed.run, key)
                capped = change(store, ref, stored, cap_usd=cap)
                if capped is None:
                    continue  # somebody has it
                self._tasks.note(key, capped)
            budget.reserve(entry, cap)
            wanted[key] = self._command(placed, key)
            self._starts.note(entry, self._clock.monotonic())
        comes = {
            one.key
            for one in entries
            if not one.is_over and not one.cancelled and not self._is_skipped(one)
        }
        self.is_unpaid = bool(unpaid) and not self.handles and unpaid == comes
        return wanted

    def _command(self, placed: PlacedRun, key: str) -> list[str]:
        """The words of a worker's command."""
        words = ["work", f"{placed.run}/{key}", "--store", self._tasks.store.address]
        return [*words, "--scratch", self._scratch] if self._scratch else words
