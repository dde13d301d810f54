"""A run whose tasks an engine places on machines: put into the store, watched there, and merged.

The driver may end at any moment: the store has all that counts, and the next one goes on from it.
It starts workers for tasks that wait, notices those whose lease stands still, and takes results.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from tui.app.options.arguments import Options
from tui.batch.cluster import results
from tui.batch.cluster.answering import TaskQuestions
from tui.batch.cluster.budget import Budget, lost_answers
from tui.batch.cluster.engines.port import EngineError, Life, RestingHosts, WorkerEngine
from tui.batch.cluster.lease import (
    LeasePace,
    StoredTask,
    change,
    lost,
    ref_of,
)
from tui.batch.cluster.relay import WorkerEvents
from tui.batch.cluster.run_in_store import groups_to_do, put_run
from tui.batch.cluster.sight import DriverSight, PlacedStates
from tui.batch.cluster.task_store import (
    QUESTIONS,
    TASKS,
    WAITS,
    StoreError,
    TaskStore,
)
from tui.batch.cluster.waits import ObservedWaits
from tui.batch.cluster.worker import private_place, scratch_folder
from tui.batch.cluster.worker_session import WorkerSession
from tui.batch.cluster.worker_starts import WorkerStarts
from tui.batch.events import EventSink, RunFinished, RunStarted, TaskFinished, TaskStarted
from tui.batch.merging import MergeQueue
from tui.batch.placement import RUN_ON, RunPlacement
from tui.batch.plan import RunPlan
from tui.batch.run_policy import cost_reached
from tui.batch.run_store import RunStore
from tui.batch.state import PlacedRun, RunFolder, RunState, TaskState, total_usage
from tui.core.clock import Clock, timestamp
from tui.core.errors import HoldfastError, UsageError, os_error_as
from tui.core.facts import Notice
from tui.core.formatting import plural
from tui.core.paths import Folders
from tui.permissions.gate import RulesOnly
from tui.permissions.types import Approver
from tui.session.checkpoints.scratch import remove_tree

_READ_S: Final = 0.2
"""Seconds between two looks at what workers of this machine have printed."""
_TAKES: Final = 5
"""Tries to take the last results."""
_FINISHED: Final = (
    "status", "change", "attempts", "error_class", "seconds", "usage", "cost_usd", "unchanged",
)  # fmt: skip
_REFUSED: Final = 3
"""Refusals after which a run without a single attempt gives up."""
_ALL_SKIPPED: Final = "skipped the remaining tasks"
_OUTLIVES: Final = (
    "Closing this window ends nothing: the tasks run on, and the same command takes their results. "
    "Ctrl+C ends them."
)
_ENDS: Final = (
    "The tasks end with this window; the same command goes on from where each of them was."
)
_UNREACHED: Final = "The store can't be reached; it is tried again. {}"


class PlacedRunner:
    """Runs one task file on an `engine`'s machines. `stop`, `leave`, `pause`, `skip`, `redo` and
    `edit` may be called meanwhile. `clock`: one whose seconds pass while this machine sleeps, since
    leases run on then.

    `pausing`: the run ends after the tasks that are being worked on. `placement` is as of the last
    look at the store. The `approver` asks the person what tasks ask; without one nobody can be
    asked.
    """

    def __init__(
        self,
        planned: RunPlan,
        options: Options,
        store: TaskStore,
        engine: WorkerEngine,
        sink: EventSink,
        *,
        clock: Clock,
        confined: bool,
        approver: Approver | None = None,
        printed: WorkerEvents | None = None,
    ) -> None:
        """`printed` has the events of workers on this machine."""
        self._planned, self._options, self._printed = planned, options, printed
        self._store, self._engine = store, engine
        self._sink, self._clock = sink, clock
        self._confined, self._asks = confined, approver is not None
        # a run that was begun with a screen may be continued without one
        self._questions = TaskQuestions(
            store, approver or RulesOnly(), sink, clock, told=printed is not None
        )
        self._merging = MergeQueue(planned.worktrees)
        self._pace = LeasePace(planned.launch.config.batch.lease_s)
        self._stop = asyncio.Event()
        self._leaving = self._again = self._out_of_money = self.pausing = False
        self._seen: dict[str, tuple[StoredTask, float]] = {}
        """Each task as last seen, and since when it is unchanged, by this machine's clock."""
        self._refused_before: dict[str, int] = {}
        """The refusals that each task had when this program first read it."""
        self._starts = WorkerStarts()
        self._last_read = 0.0
        self._failed_takes: dict[str, int] = {}
        self._handles: dict[str, str] = {}
        """The worker of each task, as the engine knows it."""
        self._fatal = self._limit_reached = ""
        """The reasons why the run ends; at a limit, what runs comes to its end first."""
        self._told: set[str] = set()
        self._begun: dict[str, int] = {}
        """The attempts of each task that were told."""
        self._tried: set[int] = set()
        self._failures, self._keeps = 0, False
        self._paid: dict[int, float] = {}
        """The cost of tasks before they were put into the store again."""
        self._cut: dict[str, list[int]] = {}
        """The limits that groups have reached, with the tasks that they were at."""
        self.book: RunStore | None = None
        self.fatal_class: str | None = None
        self.placement = RunPlacement(
            engine=engine.name, outlives=engine.outlives, slots=engine.slots
        )
        self._began = clock.monotonic()
        self._skipped: set[int] = set()
        self._rest = ""
        """The reason why tasks are left that could run."""
        self._waits = ObservedWaits(store, clock)
        self._lives: dict[str, Life] = {}
        """The life of each worker, as the engine last said."""
        self._ended: dict[str, int] = {}
        """The attempt of each task whose worker has ended, as the engine said."""
        self._engine_problem = ""
        self._store_problem: tuple[str, datetime] | None = None
        self._running: tuple[int, ...] = ()
        self._last_sight: DriverSight | None = None
        self._states = PlacedStates()
        self._shown: tuple[RunState, RunState] | None = None
        """A state of the book, and that state as a person is to see it."""

    @property
    def runner(self) -> PlacedRunner:
        """Itself: there is nothing else to let go of."""
        return self

    @property
    def state(self) -> RunState | None:
        """The state of every task, with what the store says of those that aren't taken yet; None
        before the run has begun."""
        if self.book is None:
            return None
        state = self.book.state
        if self._shown is None or self._shown[0] is not state:
            sight = self._last_sight  # threads change what it was made of
            self._shown = state, self._states.over(state, sight) if sight else state
        return self._shown[1]

    @property
    def running(self) -> tuple[int, ...]:
        """The tasks that are being worked on."""
        return self._running

    @property
    def skipped(self) -> frozenset[int]:
        """The tasks that are left out of this run."""
        return frozenset(self._skipped)

    @property
    def elapsed_s(self) -> float:
        """The seconds since the run began."""
        return self._clock.monotonic() - self._began

    @property
    def stopping(self) -> bool:
        """True if it was stopped, or left."""
        return self._stop.is_set()

    @property
    def waiting(self) -> Mapping[int, str]:
        """The tasks that wait for the person's answer, each with its question in a line that is
        safe to draw."""
        return self._questions.waiting

    def stop(self) -> None:
        """End the run now. What the engine outlives is cancelled, too."""
        self._stop.set()

    def leave(self) -> None:
        """End the driver alone, for a terminal that is lost: what its engine outlives goes on."""
        self._leaving = True
        self._stop.set()

    def take_up_failed(self) -> None:
        """Run the failed tasks of the earlier run again. To be called before `run`."""
        self._again = True

    def pause(self, wanted: bool = True) -> None:
        """Start no more tasks, and end the run after those that run; not `wanted` takes that
        back."""
        self.pausing = wanted

    def skip(self, index: int) -> None:
        """Don't start a task in this run, nor the others of its group, which share its worker.
        Raises UsageError where a worker is starting with it."""
        key = self._key_of(index)
        if key in self._handles and self._lives.get(self._handles[key]) != "waits":
            raise UsageError(
                f"A worker is starting with task {index + 1}.", hint="Try p or Ctrl+C."
            )
        mine = self._group_of(key, index)
        self._skipped.update(mine)
        if len(mine) > 1:
            numbers = f"{min(mine) + 1} to {max(mine) + 1}"
            self._say(f"Tasks {numbers} are skipped together: one worker runs their group.")

    async def redo(self, index: int) -> None:
        """Take a failed or left out task up again. One that had failed runs after the others."""
        self._skipped.difference_update(self._group_of(self._key_of(index), index))
        if self.book is not None and self.book.task(index).status == "failed":
            self._tried.discard(index)
            await self.book.take_up_failed(index)

    async def edit(self, data: bytes) -> None:
        """Take over a task file that was edited on the screen. Raises UsageError for a change of
        tasks that are in the store."""
        if self.book is None:
            return
        placed = self.book.state.placed
        mine = [index for indexes in placed.keys.values() for index in indexes] if placed else []
        try:
            await self.book.edit(data, running=mine)
        except UsageError as error:
            if not mine:
                raise
            raise UsageError(
                "Tasks of a run on machines are in its store and can't be edited.",
                hint="Add new ones at the end of the file; they run after these.",
            ) from error

    def session_of(self, index: int) -> WorkerSession | None:
        """Return the session of a task that isn't taken yet, or that was given up; None for all
        others, whose sessions are on this machine."""
        seen = self.last_seen(key := self._key_of(index))
        if seen is None or self.book is None or seen.entry.active is None:
            return None
        taken = key in self._taken(self.book) or self.book.state.placed is None
        if taken and self.book.task(index).session_id is not None:
            return None
        return None if self._data_of(index) else WorkerSession(self._store, self, key)

    def folders_of(self, index: int) -> Folders:
        """Return the folders of this machine that have the session of a task: those of its worker
        until its result is taken."""
        usual = self._planned.launch.folders
        data = self._data_of(index)
        return usual if data is None else Folders(data, usual.config, usual.cache, usual.log)

    def _data_of(self, index: int) -> Path | None:
        """The data folder of a task's worker whose events are told as they happen; None where its
        session is in the store or was taken."""
        placed, key = self.book.state.placed if self.book else None, self._key_of(index)
        if self._printed is None or placed is None or not key or key in placed.taken:
            return None
        data = self._printed.place / placed.run / key / "data"
        return data if data.is_dir() else None

    def last_seen(self, key: str) -> StoredTask | None:
        """Return a task as the store had it at the last look; None before that."""
        seen = self._seen.get(key)
        return seen[0] if seen else None

    def _key_of(self, index: int) -> str:
        """The name in the store of a task; "" for one that isn't there."""
        entries = (stored.entry for stored, _ in [*self._seen.values()])
        return next((entry.key for entry in entries if index in entry.tasks), "")

    def _group_of(self, key: str, index: int) -> tuple[int, ...]:
        """The tasks that share a worker with one, that one included."""
        seen = self.last_seen(key)
        return seen.entry.tasks if seen else (index,)

    async def close(self) -> None:
        """Let go of the engine."""
        await asyncio.to_thread(self._engine.close)

    @property
    def reason(self) -> str:
        """The reason why the run ended before all was done; "" where it did not."""
        if self._leaving and self._engine.outlives:
            return RUN_ON
        if self.stopping:
            return "interrupted"
        unmerged = self.book.state.counts().get("unmerged", 0) if self.book else 0
        cut = {why: self._to_do(tasks) for why, tasks in self._cut.items()}
        words = [f"{why}: {_named(tasks)}" for why, tasks in cut.items() if tasks]
        merge = f"{plural(unmerged, 'task')} couldn't be merged" if unmerged else ""
        fatal = "" if cut.get(self._fatal) else self._fatal
        return fatal or self._rest or "; ".join(words) or merge

    def _to_do(self, tasks: Iterable[int]) -> list[int]:
        """The tasks, of some, that aren't done."""
        book = self.book
        return [index for index in dict.fromkeys(tasks) if book and book.task(index).is_to_do]

    async def run(self) -> RunState:
        """Work through the file; returns the state of every task. Raises UsageError, StorageError,
        StoreError, EngineError."""
        planned, folder = self._planned, RunFolder(self._planned.target)
        self._began = self._clock.monotonic()
        with folder.locked():
            self.book = book = await RunStore.opened(
                planned.task_file,
                folder,
                planned.isolation,
                planned.worktrees,
                clock=self._clock,
                say=self._say,
                opened=self._announce,
                folders=planned.launch.folders,
                resumes=False,
            )
            if book.state.batch is not None:
                raise UsageError(
                    "A message batch of this run isn't done yet.",
                    hint="Continue with --batch-api, or forget it with --reset.",
                )
            if self._again:
                await book.take_up_failed()
            # what was begun in this program's own process begins again
            await book.remove_worktrees(planned.worktrees, lambda task: task.is_to_do)
            try:
                await self._merge(book)
                while (placed := await self._placed(book)) is not None:
                    await self._watch(book, placed)
            finally:
                await self._end()
                if self._printed is not None:  # how calls ended that workers were at
                    await self._tell_printed(book, self._printed)
                await self._see_end(book)
            await self._interrupt(book)
            await self._merge(book, everything=True)
            await self._forget(book)
        if words := lost_answers(stored.entry for stored, _ in self._seen.values()):
            self._say(words)
        finished = RunFinished(
            book.state.counts(),
            self.elapsed_s,
            self.reason,
            total_usage(book.state.tasks).to_json(),
            book.spent_usd,
            book.state.tasks,
        )
        self._sink.show(finished)
        return book.state

    def _say(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._sink.show(Notice(text))

    def _announce(self, state: RunState) -> None:
        planned, batch = self._planned, self._planned.launch.config.batch
        done, shown = state.counts().get("completed", 0), planned.boot.shown
        self._sink.show(
            RunStarted(
                str(planned.task_file),
                len(state.tasks),
                done,
                shown,
                planned.isolation.name,
                self._engine.slots,
                batch.hooks,
                batch.sign,
            )
        )
        self._say(_OUTLIVES if self._engine.outlives else _ENDS)

    # Putting it into the store

    async def _placed(self, book: RunStore) -> PlacedRun | None:
        """The tasks in the store: those that were begun, else those that are to be done and that
        this program hasn't had there; None where there are none, or the run ends."""
        if self.stopping or self._fatal or self._rest:
            return None
        placed = book.state.placed
        if placed is not None and placed.store != self._store.address:
            raise UsageError(
                f"The run is in the store {placed.store}.",
                hint=f"Continue with --store {placed.store}, or forget it with --reset.",
            )
        if placed is None or placed.is_taken:
            await book.take_up_added()
            keys = groups_to_do(book.state, self._tried | self._skipped)
            if self.pausing and keys:
                self._rest = "paused"
            elif not keys and any(book.task(index).is_to_do for index in self._skipped):
                self._rest = _ALL_SKIPPED
            if self._rest or not keys:
                return None
            name = timestamp(self._clock.now()).translate({45: None, 58: None})[:15]
            placed = PlacedRun(
                run=f"{name}-{secrets.token_hex(3)}",
                store=self._store.address,
                on=self._engine.name,
                keys=keys,
                branch=self._planned.worktrees.branch(),
            )
            await book.note_placed(placed)  # before it is there: a kill may come between
        self._tried.update(index for key in placed.handles for index in placed.keys[key])
        self._seen, self._begun, self._refused_before = {}, {}, {}
        # those of an earlier driver, where the engine knows them by that
        self._handles = placed.handles
        await asyncio.to_thread(
            put_run,
            self._store,
            self._planned,
            self._options,
            book.state,
            confined=self._confined,
            asks=self._asks,
        )
        return placed

    # Watching it

    async def _watch(self, book: RunStore, placed: PlacedRun) -> None:
        """Start workers and take results until nothing is left that can run."""
        while not self.stopping and not self._fatal:
            is_read = await asyncio.to_thread(self._read_tasks, placed)
            found = {key: self._seen[key][0] for key in placed.keys if key in self._seen}
            self._questions.review(placed, found)
            self._note_sight(book)
            if self._printed is None:
                self._tell_begun(book, placed, found)
            else:
                await self._tell_printed(book, self._printed)
            for key, one in found.items():
                if one.entry.is_over and key not in self._taken(book):
                    await self._take(book, key, one)
            await self._merge(book)
            if book.state.placed is None or book.state.placed.is_taken:
                return
            self._judge_takes(book.state.placed)
            self._judge_limits()
            if is_read:  # else nobody knows whose lease stands still
                await asyncio.to_thread(self._free_lost, placed)
                await asyncio.to_thread(self._start_more, placed)
            self._judge_refusals(found)
            self._note_sight(book)
            while self._store.notes:
                self._say(self._store.notes.pop(0))
            if self._is_at_rest(book.state.placed):
                return
            await self._pass_time(book)

    async def _pass_time(self, book: RunStore) -> None:
        """Return when the next look is due, or once the run is stopped; tell meanwhile what workers
        print."""
        look_s = self._engine.look_s
        steps = max(1, round(look_s / _READ_S)) if self._printed else 1
        for _ in range(steps):
            await self._sleep(look_s / steps)
            if self.stopping or (
                self._printed is not None and await self._tell_printed(book, self._printed)
            ):
                return

    async def _sleep(self, seconds: float) -> None:
        """Let time pass, until the run is stopped."""
        pause = asyncio.ensure_future(self._clock.sleep(seconds))
        stop = asyncio.ensure_future(self._stop.wait())
        try:
            done, _ = await asyncio.wait({pause, stop}, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                one.result()
        finally:
            for one in (pause, stop):
                one.cancel()

    async def _tell_printed(self, book: RunStore, printed: WorkerEvents) -> bool:
        """Publish what workers have printed. True if a look at the store is due."""
        tasks = book.state.placed.keys if book.state.placed else {}
        events, is_due = await asyncio.to_thread(printed.read, tasks)
        for event in events:
            match event:
                case TaskStarted(task, attempt=attempt, session_id=session):
                    begun = replace(book.task(task), status="running", attempts=attempt)
                    await book.save(replace(begun, session_id=session))
                    self._note_sight(book)  # the others of its group no longer run
                case TaskFinished(status="interrupted"):
                    continue  # its worker ends, and gives it back
                case TaskFinished():
                    await self._note_finished(book, event)
                    continue
                case _:
                    pass
            self._sink.show(event)
        return is_due

    async def _note_finished(self, book: RunStore, event: TaskFinished) -> None:
        """Tell that a worker is done with a task, whose result is still to come."""
        named = {name: getattr(event, name) for name in _FINISHED}
        task = replace(book.task(event.task), **named, message=event.message or None)
        if task.status == "completed" and task.change:
            task = replace(task, status="unmerged")
        await book.rest(task)
        self._sink.show(_finished(task))

    def _tell_begun(
        self, book: RunStore, placed: PlacedRun, found: Mapping[str, StoredTask]
    ) -> None:
        """Publish attempts that have begun since the last look."""
        for key, one in found.items():
            entry = one.entry
            if entry.attempt > self._begun.get(key, 0):
                self._begun[key] = entry.attempt
                task = book.task(placed.keys[key][0])
                self._sink.show(
                    TaskStarted(task.index, task.group, task.task, entry.attempt, "", entry.host)
                )

    def _taken(self, book: RunStore) -> tuple[str, ...]:
        return book.state.placed.taken if book.state.placed else ()

    def _read_tasks(self, placed: PlacedRun) -> bool:
        """Read the tasks as the store has them. False where it can't be reached, and is waited
        for."""
        try:
            refs = self._store.refs(*(f"{room}{placed.run}/" for room in (TASKS, QUESTIONS, WAITS)))
            tasks, asked, waits = (_below(refs, room) for room in (TASKS, QUESTIONS, WAITS))
            now = {ref.rpartition("/")[2]: commit for ref, commit in tasks.items()}
            new = {
                ref_of(placed.run, key): commit
                for key, commit in now.items()
                if key not in self._seen or self._seen[key][0].commit != commit
            }
            self._store.fetch({**new, **self._waits.unread(waits)})
            entries = self._store.entries(new.values())
            self._waits.take(waits)
            self._questions.read(asked)
        except StoreError as error:
            if self._store_problem is None:
                self._store_problem = error.message, self._clock.now()
                self._sink.show(Notice(_UNREACHED.format(error)))
            return False
        if self._store_problem is not None:
            self._store_problem = None
            self._sink.show(Notice("The store can be reached again."))
        at = self._clock.monotonic()
        if at - self._last_read > max(self._pace.lost / 3, 5 * self._engine.look_s):
            # it slept: nobody saw whether they moved
            self._seen = {key: (one, at) for key, (one, _) in self._seen.items()}
        self._last_read = at
        for key, commit in now.items():
            if commit in entries:
                self._refused_before.setdefault(key, len(entries[commit].refusals))
                self._seen[key] = StoredTask(commit, entries[commit]), self._clock.monotonic()
        return True

    def _free_lost(self, placed: PlacedRun) -> None:
        """Take tasks from workers that have been still for too long, and end these, wherever the
        engine still has them."""
        for key, (stored, since) in [*self._seen.items()]:
            still_s = self._clock.monotonic() - since
            if stored.entry.state != "running" or still_s <= self._pace.lost:
                continue
            ref = ref_of(placed.run, key)
            try:
                if now := lost(self._store, ref, stored, "the worker was gone"):
                    self._seen[key] = now, self._clock.monotonic()
                    self._say(f"Task {now.entry.tasks[0] + 1}: {now.entry.ended}.")
                    if handle := self._handles.pop(key, ""):
                        with suppress(EngineError):
                            self._engine.cancel([handle])
            except StoreError as error:
                self._say(f"Task {key} can't be taken from its worker now: {error}")

    def _start_more(self, placed: PlacedRun) -> None:
        """Give the engine tasks that wait, as many as it and the money allow."""
        try:
            self._drop_ended()
            self._take_back()
            stays = self.pausing or bool(self._limit_reached)
            if not stays and (wanted := self._chosen(placed)):
                self._handles |= self._engine.put(wanted)
            self._engine_problem = ""
        except EngineError as error:
            self._engine_problem = error.message
            self._say(f"The engine {self._engine.name} can't start workers now: {error}")
        except StoreError as error:
            self._say(f"Workers can't be started now: {error}")

    def _drop_ended(self) -> None:
        """Forget the workers that have ended, by what the engine says: nothing but new ones depends
        on it. One that lives by its word, and takes no task, isn't waited for without an end."""
        self._lives = lives = dict(self._engine.watch([*self._handles.values()]))
        now = self._clock.monotonic()
        for key, handle in [*self._handles.items()]:
            life = lives.get(handle)
            if life not in {"lives", "waits"}:
                if life == "ended" and (seen := self.last_seen(key)):
                    self._ended[key] = seen.entry.attempt
                del self._handles[key]
                self._say_end(key, handle)
                if self._printed is not None:
                    self._printed.forget(key)
                    if self._printed.engine.was_killed(handle):
                        self._let_lapse(key)
            elif key not in self._seen:
                continue
            elif self._seen[key][0].entry.is_over:
                del self._handles[key]
            elif life == "lives" and self._is_overdue(key, now):
                del self._handles[key]
                self._say(f"Task {key}: its worker hasn't taken it; another one is started.")
                self._engine.cancel([handle])

    def _let_lapse(self, key: str) -> None:
        """Wait for no lease of a task whose worker is known to be gone."""
        if key in self._seen:
            past = self._clock.monotonic() - self._pace.lost - 1.0
            self._seen[key] = self._seen[key][0], past

    def _is_overdue(self, key: str, now: float) -> bool:
        stored, since = self._seen[key]
        return self._starts.is_overdue(stored.entry, since, now)

    def _take_back(self) -> None:
        """Cancel workers that no machine has begun, of tasks that aren't to be started now."""
        back = [
            (key, handle)
            for key, handle in self._handles.items()
            if self._lives.get(handle) == "waits"
            and (
                self.pausing
                or self._limit_reached
                or not self._skipped.isdisjoint(self._seen[key][0].entry.tasks)
            )
        ]
        if back:
            self._engine.cancel([handle for _, handle in back])
            for key, _ in back:
                del self._handles[key]

    def _chosen(self, placed: PlacedRun) -> dict[str, list[str]]:
        """The next tasks for the engine, each with the words of its worker's command."""
        wanted: dict[str, list[str]] = {}
        self._out_of_money = False
        entries = [stored.entry for stored, _ in self._seen.values()]
        slots = self._printed.slots() if self._printed else self._engine.slots
        sharing = min(self._engine.slots, sum(not entry.is_over for entry in entries)) or 1
        budget = Budget(self._limit(placed), sharing, entries)
        unpaid: set[str] = set()
        for key, (stored, _) in sorted(self._seen.items()):
            entry = stored.entry
            if entry.state != "waiting" or entry.cancelled or key in self._handles:
                continue
            if not self._skipped.isdisjoint(entry.tasks):
                continue
            if len(self._handles) + len(wanted) >= slots:
                break
            if not self._starts.is_due(entry, self._clock.monotonic()):
                continue
            cap = budget.cap_of(entry)
            if cap is not None and cap <= 0:
                unpaid.add(key)
                self._out_of_money = True
                continue
            if cap != entry.cap_usd:
                capped = change(self._store, ref_of(placed.run, key), stored, cap_usd=cap)
                if capped is None:
                    continue  # somebody has it
                self._seen[key] = capped, self._clock.monotonic()
            budget.reserve(entry, cap)
            words = ["work", f"{placed.run}/{key}", "--store", self._store.address]
            if self._options.batch.scratch is not None:
                words += ["--scratch", str(self._options.batch.scratch.absolute())]
            wanted[key] = words
            self._starts.note(entry, self._clock.monotonic())
        comes = {
            one.key
            for one in entries
            if not one.is_over and not one.cancelled and self._skipped.isdisjoint(one.tasks)
        }
        if unpaid and not self._handles and unpaid == comes:
            self._fatal = cost_reached(self._planned.stops.cost_usd or 0.0)
        return wanted

    def _limit(self, placed: PlacedRun) -> float | None:
        """The limit of cost, less what tasks have cost that aren't of this run in the store."""
        limit = self._planned.stops.cost_usd
        if limit is None:
            return None
        return max(0.0, limit - self._spent_by_others(placed))

    def _spent_by_others(self, placed: PlacedRun) -> float:
        """The cost of tasks that aren't of this run in the store."""
        mine = {index for indexes in placed.keys.values() for index in indexes}
        tasks = self.book.state.tasks if self.book else ()
        others = sum(task.cost_usd or 0.0 for task in tasks if task.index not in mine)
        return others + sum(self._paid.get(index, 0.0) for index in mine)

    def _say_end(self, key: str, handle: str) -> None:
        """Say why a worker is gone that has left its task as it was."""
        if key not in self._seen or self._seen[key][0].entry.state != "waiting":
            return
        with suppress(EngineError):  # a log that is lost stops nobody
            last = self._engine.fetch(handle).strip().rpartition("\n")[2]
            is_event = last.endswith("}")  # of one that came to its end meanwhile
            if last and not is_event:
                self._say(f"A worker ended without its task. {last}")

    def _judge_refusals(self, found: Mapping[str, StoredTask]) -> None:
        """Say why machines refuse tasks; end the run where no task was ever taken. What they said
        to an earlier driver counts no more: somebody may have mended it."""
        entries = [one.entry for one in found.values()]
        refusals = [
            refusal
            for key, one in found.items()
            for refusal in one.entry.refusals[self._refused_before[key] :]
        ]
        for one in refusals:
            self._say(f"{one.host} can't take tasks of this run: {one.reason}")
        begun = any(entry.attempt or entry.requests for entry in entries)
        if len(refusals) >= _REFUSED and not begun:
            self._fatal = f"no machine takes tasks of this run: {refusals[-1].reason}"

    def _judge_takes(self, placed: PlacedRun) -> None:
        """End the run where nothing is left but results that can't be taken here; the next one
        takes them."""
        rest = [key for key in placed.keys if key not in placed.taken]
        if all(self._failed_takes.get(key, 0) >= _TAKES for key in rest):
            what = plural(len(rest), "result")
            self._fatal = f"{what} can't be taken here yet; the store has all of it"

    def _judge_limits(self) -> None:
        """Begin nothing more where a limit of the person's is reached that no task heeds by itself,
        and end the run once what runs has ended."""
        stops = self._planned.stops
        self._limit_reached = self._limit_reached or stops.reached(
            spent_usd=None, failures=self._failures, elapsed_s=self.elapsed_s
        )
        if self._limit_reached and not self._handles:
            self._fatal = self._limit_reached

    # Showing it

    def _sight(self, placed: PlacedRun | None, *, is_over: bool) -> DriverSight | None:
        """The facts for a person; None where nothing is placed."""
        if placed is None:
            return None
        now = self._clock.monotonic()
        seen = {key: one for key, one in self._seen.items() if key in placed.keys}
        begun = self._printed.begun if self._printed else dict[str, int]()
        return DriverSight(
            engine=self._engine.name,
            slots=self._engine.slots,
            lease_s=self._pace.lost,
            keys=placed.keys,
            entries={key: stored.entry for key, (stored, _) in seen.items()},
            still_s={key: now - since for key, (_, since) in seen.items()},
            lives={key: self._lives.get(one, "unknown") for key, one in self._handles.items()},
            delays={
                key: delay
                for key, (stored, _) in seen.items()
                if (delay := self._starts.wait_s(stored.entry, now))
            },
            ended=frozenset(
                key
                for key, (stored, _) in seen.items()
                if self._ended.get(key) == stored.entry.attempt
            ),
            skipped=frozenset(self._skipped),
            asking=dict(self._questions.waiting),
            at={key: task for key, task in begun.items() if key in self._handles},
            is_over=is_over,
            pausing=self.pausing,
            out_of_money=self._out_of_money,
            engine_problem=self._engine_problem,
        )

    def _note_sight(self, book: RunStore, *, is_over: bool = False) -> None:
        """Note what the last look showed."""
        placed = book.state.placed
        sight = self._sight(placed, is_over=is_over)
        if placed is None or sight is None:
            return
        entries = [*sight.entries.values()]
        budget = Budget(self._limit(placed), self._engine.slots, entries)
        engine: object = self._engine
        resting: Mapping[str, str] = engine.resting() if isinstance(engine, RestingHosts) else {}
        refused = {one.host: one.reason for entry in entries for one in entry.refusals}
        problem, since = self._store_problem or ("", None)
        self._running, before = sight.running(), self.placement.tasks
        self._last_sight, self._shown = sight, None
        self.placement = RunPlacement(
            engine=sight.engine,
            outlives=self._engine.outlives,
            slots=sight.slots,
            tasks={
                index: before[index] if before.get(index) == one else one
                for index, one in sight.tasks()
            },
            hosts=sight.hosts(),
            refusing={**refused, **resting},
            server_waits=self._waits.remaining_s(),
            spent_usd=None
            if any(one.spent_usd is None for one in entries)
            else self._spent_by_others(placed) + sum(one.spent_usd or 0.0 for one in entries),
            reserved_usd=budget.reserved_usd,
            limit_usd=self._planned.stops.cost_usd,
            store_problem=problem,
            unreachable_since=since,
        )

    def _is_at_rest(self, placed: PlacedRun | None) -> bool:
        """True, with the reason noted, where nothing runs and nothing that is left may start."""
        rest = [
            stored.entry
            for key, (stored, _) in self._seen.items()
            if placed is not None and key not in placed.taken
        ]
        if self._handles or not all(one.state == "waiting" for one in rest):
            return False
        if self.pausing:
            self._rest = "paused"
        elif all(not self._skipped.isdisjoint(one.tasks) for one in rest):
            self._rest = _ALL_SKIPPED
        return bool(self._rest)

    async def _see_end(self, book: RunStore) -> None:
        """Look once more: workers that were ended have given their tasks back."""
        if book.state.placed is not None and not self._leaving:
            await asyncio.to_thread(self._read_tasks, book.state.placed)
            self._handles.clear()
            self._note_sight(book, is_over=True)

    # Taking it

    async def _merge(self, book: RunStore, *, everything: bool = False) -> None:
        """Merge results; each waits for the tasks before it that are still to come."""

        def comes(task: TaskState) -> bool:
            done_elsewhere = task.status == "unmerged" and not task.worktree
            to_do = task.is_to_do and task.index not in self._skipped
            return to_do or task.status == "running" or done_elsewhere

        await self._merging.merge(book, self._sink.show, None if everything else comes)

    async def _take(self, book: RunStore, key: str, found: StoredTask) -> None:
        """Take the result of a group that has come to rest."""
        assert book.state.placed is not None
        indexes = book.state.placed.keys[key]
        first = book.task(indexes[0])
        members = [book.task(index) for index in indexes]
        self._keeps = self._keeps or found.entry.state == "given_up"
        try:
            result = await asyncio.to_thread(
                lambda: results.take(
                    self._store,
                    found,
                    members,
                    self._planned.target,
                    book.worktree_of(first, members),
                    folders=self._planned.launch.folders,
                    clock=self._clock,
                )
            )
        except results.ResultError as error:
            self._keeps = True
            why = f"Its result can't be read: {error} It stays in the store."
            tasks = tuple(
                replace(one, status="failed", message=why, error_class="unknown") for one in members
            )
        except (HoldfastError, OSError) as error:
            self._say(f"The result of task {first.index + 1} can't be taken yet: {error}")
            self._failed_takes[key] = self._failed_takes.get(key, 0) + 1
            return
        else:
            self._failed_takes.pop(key, None)
            self._keeps = self._keeps or bool(result.problems)
            for problem in result.problems:
                self._say(f"[{first.index + 1}] {problem}")
            tasks = result.tasks
        told = {(t.index, t.status, t.change) for t in map(book.task, indexes)}
        tasks = [
            replace(task, cost_usd=task.cost_usd + self._paid[task.index])
            if task.index in self._paid and task.cost_usd is not None
            else task
            for task in tasks
        ]
        for task in tasks:
            await book.rest(task)
            self._failures = self._failures + 1 if task.status == "failed" else 0
        entry, again = found.entry, [task for task in tasks if task.is_to_do]
        limit = self._planned.stops.cost_usd
        if again and entry.ended:
            why = cost_reached(limit) if limit is not None and entry.cap_reached else entry.ended
            self._cut.setdefault(why, []).append(again[0].index)
        if limit is not None and entry.state == "done":
            # its share was too small: it may get what others have left
            self._tried -= {task.index for task in again}
            self._paid |= {task.index: task.cost_usd or 0.0 for task in again}
        placed = book.state.placed
        await book.note_placed(replace(placed, taken=(*placed.taken, key)))
        if self._printed is not None:
            self._printed.engine.drop(key)
        for task in tasks:
            if (task.index, task.status, task.change) not in told:
                self._sink.show(_finished(task))

    async def _end(self) -> None:
        """Leave the engine. Where the run was ended, and not only this window, workers end, too."""
        await self._questions.close()
        ended = self._fatal or (self.stopping and not self._leaving)
        if ended and self._engine.outlives:
            placed = self.book.state.placed if self.book else None
            # also those that the engine has denied meanwhile
            handles = {*placed.handles.values()} if placed else set[str]()
            with suppress(EngineError):
                await asyncio.to_thread(self._engine.cancel, handles)
        await self.close()

    async def _interrupt(self, book: RunStore) -> None:
        """Say of tasks that were at work that the next run continues them. Those of a window that
        was closed stay as they are."""
        for task in book.state.tasks if not self._leaving else ():
            if task.status == "running":
                spent = self._spent(book, task.index)
                now = timestamp(self._clock.now())
                cut = replace(task, status="interrupted", interrupted_at=now, cost_usd=spent)
                await book.rest(cut)
                self._sink.show(_finished(cut))

    def _spent(self, book: RunStore, index: int) -> float | None:
        """The cost so far of the group that begins with a task; 0 for the others in a group."""
        keys = book.state.placed.keys if book.state.placed else {}
        first = next((key for key, indexes in keys.items() if indexes[0] == index), "")
        return self._seen[first][0].entry.spent_usd if first in self._seen else 0.0

    async def _forget(self, book: RunStore) -> None:
        """Remove what merged tasks have left, and the note of a run that is over."""
        await book.remove_worktrees(
            self._planned.worktrees, lambda task: task.status == "completed"
        )
        if book.state.placed is not None and book.state.placed.is_taken:
            await book.note_placed(None)
            # what of it is unmerged or unread can still be looked at
            kept = self._keeps or any(map(_may_be_looked_at, book.state.tasks))
            if self._owns_store and not kept:
                await asyncio.to_thread(self._remove_store)

    def _remove_store(self) -> None:
        try:
            self._store.remove()
            place = private_place(scratch_folder(self._options), self._store.address)
            with os_error_as(StoreError, f"Can't remove {place}"):
                remove_tree(place)
        except StoreError as error:
            self._say(str(error))

    @property
    def _owns_store(self) -> bool:
        """True if the store is the one that runs of this folder on this machine use."""
        return Path(self._store.address).parent == stores_of(self._planned.launch.folders)


def _may_be_looked_at(task: TaskState) -> bool:
    """True if the store has what a task did, and nothing else may have."""
    return task.status == "unmerged" or (task.status == "failed" and not task.change)


def stores_of(folders: Folders) -> Path:
    """The folder of the stores of runs whose workers are all on this machine."""
    return folders.data / "stores"


def _below(refs: Mapping[str, str], room: str) -> dict[str, str]:
    """The refs of a room."""
    return {ref: commit for ref, commit in refs.items() if ref.startswith(room)}


def _named(tasks: Sequence[int]) -> str:
    return f"task{'s' * (len(tasks) > 1)} {', '.join(str(one + 1) for one in sorted(tasks))}"


def _finished(task: TaskState) -> TaskFinished:
    return TaskFinished(
        task.index,
        task.status,
        task.change,
        task.attempts,
        task.error_class,
        task.message or "",
        task.seconds,
        task.usage,
        task.cost_usd,
        task.unchanged,
    )
