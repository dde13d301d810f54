"""A run whose tasks an engine places on machines: put into the store, watched there, and merged.

The driver may end at any moment: the store has all that counts, and the next one goes on from it.
Again and again it reads the tasks (`observed_tasks`), takes results (`taken_results`), and starts
workers for tasks that wait or whose lease stands still (`placed_workers`).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from tui.app.options.arguments import Options
from tui.batch.cluster.answering import TaskQuestions
from tui.batch.cluster.budget import lost_answers
from tui.batch.cluster.engines.port import EngineError, WorkerEngine
from tui.batch.cluster.lease import LeasePace, StoredTask
from tui.batch.cluster.observed_tasks import ObservedTasks
from tui.batch.cluster.placed_view import PlacedView
from tui.batch.cluster.placed_workers import PlacedWorkers
from tui.batch.cluster.relay import WorkerEvents
from tui.batch.cluster.run_in_store import groups_to_do, put_run
from tui.batch.cluster.taken_results import TakenResults
from tui.batch.cluster.task_store import TaskStore
from tui.batch.cluster.worker_session import WorkerSession
from tui.batch.events import (
    EventSink,
    RunFinished,
    TaskFinished,
    TaskStarted,
    finished,
)
from tui.batch.placement import RUN_ON, RunPlacement
from tui.batch.plan import RunPlan
from tui.batch.run_policy import cost_reached
from tui.batch.run_store import RunStore
from tui.batch.state import PlacedRun, RunFolder, RunState, total_usage
from tui.core.clock import Clock, timestamp
from tui.core.errors import UsageError
from tui.core.facts import Notice
from tui.core.formatting import plural
from tui.core.paths import Folders
from tui.permissions.gate import RulesOnly
from tui.permissions.types import Approver

_READ_S: Final = 0.2
"""Seconds between two looks at what workers of this machine have printed."""
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
        pace = LeasePace(planned.launch.config.batch.lease_s)
        self._told: set[str] = set()
        self._tasks = ObservedTasks(
            store,
            self._questions,
            sink,
            clock,
            slept_s=max(pace.lost / 3, 5 * engine.look_s),
        )
        scratch = options.batch.scratch
        self._workers = PlacedWorkers(
            engine,
            self._tasks,
            self,
            pace,
            clock,
            printed=printed,
            scratch=str(scratch.absolute()) if scratch is not None else "",
        )
        self._results = TakenResults(
            planned, options, store, sink, clock, run=self, printed=printed
        )
        self._view = PlacedView(
            engine,
            self._tasks,
            self._workers,
            self._results,
            self,
            questions=self._questions,
            printed=printed,
            lease_s=pace.lost,
        )
        self._stop = asyncio.Event()
        self._leaving = self._again = self.pausing = False
        self._fatal = self._limit_reached = ""
        """The reasons why the run ends; at a limit, what runs comes to its end first."""
        self._begun: dict[str, int] = {}
        """The attempts of each task that were told."""
        self.book: RunStore | None = None
        self.fatal_class: str | None = None
        self._began = clock.monotonic()
        self._skipped: set[int] = set()
        self._rest = ""
        """The reason why tasks are left that could run."""

    @property
    def runner(self) -> PlacedRunner:
        """Itself: there is nothing else to let go of."""
        return self

    @property
    def state(self) -> RunState | None:
        """The state of every task, with what the store says of those that aren't taken yet; None
        before the run has begun."""
        return self._view.state(self.book.state) if self.book else None

    @property
    def running(self) -> tuple[int, ...]:
        """The tasks that are being worked on."""
        return self._view.running

    @property
    def placement(self) -> RunPlacement:
        """The places of the tasks."""
        return self._view.placement

    @property
    def skipped(self) -> frozenset[int]:
        """The tasks that are left out of this run."""
        return frozenset(self._skipped)

    @property
    def starts_nothing(self) -> bool:
        """True if no further task is to be started."""
        return self.pausing or bool(self._limit_reached)

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
        key = self._tasks.key_of(index)
        if key in self._workers.handles and self._workers.life_of(key) != "waits":
            raise UsageError(
                f"A worker is starting with task {index + 1}.", hint="Try p or Ctrl+C."
            )
        mine = self._tasks.group_of(index)
        self._skipped.update(mine)
        if len(mine) > 1:
            numbers = f"{min(mine) + 1} to {max(mine) + 1}"
            self.say(f"Tasks {numbers} are skipped together: one worker runs their group.")

    async def redo(self, index: int) -> None:
        """Take a failed or left out task up again. One that had failed runs after the others."""
        self._skipped.difference_update(self._tasks.group_of(index))
        if self.book is not None and self.book.task(index).status == "failed":
            self._results.tried.discard(index)
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
        seen = self._tasks.last_seen(key := self._tasks.key_of(index))
        if seen is None or self.book is None or seen.entry.active is None:
            return None
        taken = key in self._taken(self.book) or self.book.state.placed is None
        if taken and self.book.task(index).session_id is not None:
            return None
        return None if self._data_of(index) else WorkerSession(self._store, self._tasks, key)

    def folders_of(self, index: int) -> Folders:
        """Return the folders of this machine that have the session of a task: those of its worker
        until its result is taken."""
        usual = self._planned.launch.folders
        data = self._data_of(index)
        return usual if data is None else Folders(data, usual.config, usual.cache, usual.log)

    def _data_of(self, index: int) -> Path | None:
        """The data folder of a task's worker whose events are told as they happen; None where its
        session is in the store or was taken."""
        placed, key = self.book.state.placed if self.book else None, self._tasks.key_of(index)
        if self._printed is None or placed is None or not key or key in placed.taken:
            return None
        data = self._printed.place / placed.run / key / "data"
        return data if data.is_dir() else None

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
        cut = self._results.cut_short(self.book) if self.book else {}
        words = [f"{why}: {_named(tasks)}" for why, tasks in cut.items()]
        merge = f"{plural(unmerged, 'task')} couldn't be merged" if unmerged else ""
        fatal = "" if self._fatal in cut else self._fatal
        return fatal or self._rest or "; ".join(words) or merge

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
                say=self.say,
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
                await self._results.merge(book, self._skipped)
                while (placed := await self._placed(book)) is not None:
                    await self._watch(book, placed)
            finally:
                await self._end()
                if self._printed is not None:  # how calls ended that workers were at
                    await self._tell_printed(book, self._printed)
                await self._see_end(book)
            await self._interrupt(book)
            await self._results.merge(book, self._skipped, everything=True)
            await self._results.forget(book)
        if words := lost_answers(self._tasks.entries()):
            self.say(words)
        self._sink.show(
            RunFinished(
                book.state.counts(),
                self.elapsed_s,
                self.reason,
                total_usage(book.state.tasks).to_json(),
                book.spent_usd,
                book.state.tasks,
            )
        )
        return book.state

    def say(self, text: str) -> None:
        """Tell the person a line, once."""
        if text not in self._told:
            self._told.add(text)
            self._sink.show(Notice(text))

    def _announce(self, state: RunState) -> None:
        self._sink.show(self._planned.started(state, self._engine.slots))
        self.say(_OUTLIVES if self._engine.outlives else _ENDS)

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
            keys = groups_to_do(book.state, self._results.tried | self._skipped)
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
        self._results.tried.update(index for key in placed.handles for index in placed.keys[key])
        self._tasks.clear()
        self._begun = {}
        # those of an earlier driver, where the engine knows them by that
        self._workers.handles = placed.handles
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
            is_read = await asyncio.to_thread(self._tasks.read, placed)
            found = self._tasks.among(placed.keys)
            self._questions.review(placed, found)
            self._view.note(book.state)
            if self._printed is None:
                self._tell_begun(book, placed, found)
            else:
                await self._tell_printed(book, self._printed)
            for key, one in found.items():
                if one.entry.is_over and key not in self._taken(book):
                    await self._results.take(book, key, one)
            await self._results.merge(book, self._skipped)
            if book.state.placed is None or book.state.placed.is_taken:
                return
            self._judge_takes(book.state.placed)
            self._judge_limits()
            if is_read:  # else nobody knows whose lease stands still
                await asyncio.to_thread(self._workers.free_lost, placed)
                limit = self._results.limit_usd(book.state)
                await asyncio.to_thread(self._workers.start_more, placed, limit)
                if self._workers.is_unpaid:
                    self._fatal = cost_reached(self._planned.stops.cost_usd or 0.0)
            self._judge_refusals(found)
            self._view.note(book.state)
            while self._store.notes:
                self.say(self._store.notes.pop(0))
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
                    self._view.note(book.state)  # the others of its group no longer run
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
        self._sink.show(finished(task))

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

    def _judge_refusals(self, found: Mapping[str, StoredTask]) -> None:
        """Say why machines refuse tasks; end the run where no task was ever taken."""
        entries = [one.entry for one in found.values()]
        refusals = self._tasks.new_refusals(found)
        for one in refusals:
            self.say(f"{one.host} can't take tasks of this run: {one.reason}")
        begun = any(entry.attempt or entry.requests for entry in entries)
        if len(refusals) >= _REFUSED and not begun:
            self._fatal = f"no machine takes tasks of this run: {refusals[-1].reason}"

    def _judge_takes(self, placed: PlacedRun) -> None:
        """End the run where nothing is left but results that can't be taken here; the next one
        takes them."""
        if stuck := self._results.stuck(placed):
            what = plural(stuck, "result")
            self._fatal = f"{what} can't be taken here yet; the store has all of it"

    def _judge_limits(self) -> None:
        """Begin nothing more where a limit of the person's is reached that no task heeds by itself,
        and end the run once what runs has ended."""
        stops = self._planned.stops
        self._limit_reached = self._limit_reached or stops.reached(
            spent_usd=None, failures=self._results.failures, elapsed_s=self.elapsed_s
        )
        if self._limit_reached and not self._workers.handles:
            self._fatal = self._limit_reached

    def _is_at_rest(self, placed: PlacedRun | None) -> bool:
        """True, with the reason noted, where nothing runs and nothing that is left may start."""
        rest = [
            stored.entry
            for key, stored in self._tasks.every().items()
            if placed is not None and key not in placed.taken
        ]
        if self._workers.handles or not all(one.state == "waiting" for one in rest):
            return False
        if self.pausing:
            self._rest = "paused"
        elif all(not self._skipped.isdisjoint(one.tasks) for one in rest):
            self._rest = _ALL_SKIPPED
        return bool(self._rest)

    async def _see_end(self, book: RunStore) -> None:
        """Look once more: workers that were ended have given their tasks back."""
        if book.state.placed is not None and not self._leaving:
            await asyncio.to_thread(self._tasks.read, book.state.placed)
            self._workers.handles.clear()
            self._view.note(book.state, is_over=True)

    # Ending it

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
                self._sink.show(finished(cut))

    def _spent(self, book: RunStore, index: int) -> float | None:
        """The cost so far of the group that begins with a task; 0 for the others in a group."""
        keys = book.state.placed.keys if book.state.placed else {}
        first = next((key for key, indexes in keys.items() if indexes[0] == index), "")
        seen = self._tasks.last_seen(first)
        return seen.entry.spent_usd if seen else 0.0


def _named(tasks: Sequence[int]) -> str:
    return f"task{'s' * (len(tasks) > 1)} {', '.join(str(one + 1) for one in sorted(tasks))}"
