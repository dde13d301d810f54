"""A run whose tasks an engine places on machines: put into the store, watched there, and merged.

The driver may end at any moment: the store has all that counts, and the next one goes on from it.
It starts workers for tasks that wait, notices those whose lease stands still, and takes results.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Final

import msgspec
from msgspec.structs import replace

from tui.app.options.arguments import Options
from tui.batch.cluster import results
from tui.batch.cluster.answering import TaskQuestions
from tui.batch.cluster.budget import Budget
from tui.batch.cluster.engines.port import EngineError, WorkerEngine
from tui.batch.cluster.entry import TaskEntry
from tui.batch.cluster.lease import (
    LeasePace,
    StoredTask,
    SuspendAwareClock,
    change,
    lost,
    ref_of,
)
from tui.batch.cluster.run_spec import BOOT_FILE, STATE_FILE, TASK_FILE, spec_for
from tui.batch.cluster.task_store import (
    QUESTIONS,
    RUNS,
    TASKS,
    CommitDraft,
    StoreError,
    TaskStore,
)
from tui.batch.cluster.worker_starts import WorkerStarts
from tui.batch.events import EventSink, RunFinished, RunStarted, TaskFinished, TaskStarted
from tui.batch.merging import MergeQueue
from tui.batch.plan import RunPlan
from tui.batch.run_policy import cost_reached
from tui.batch.run_store import RunStore
from tui.batch.state import PlacedRun, RunFolder, RunState, TaskState, total_usage
from tui.batch.taskfile import UNGROUPED
from tui.core.clock import Clock, timestamp
from tui.core.errors import UsageError
from tui.core.facts import Notice
from tui.core.files import read_small
from tui.core.formatting import plural
from tui.core.git.checkout import Checkout
from tui.core.git.door import GitError
from tui.permissions.gate import RulesOnly
from tui.permissions.types import Approver

_TAKES: Final = 5
"""Tries to take a result."""
_REFUSED: Final = 3
"""Refusals after which a run without a single attempt gives up."""


_OUTLIVES: Final = (
    "Closing this window ends nothing: the tasks run on, and the same command takes their results. "
    "Ctrl+C ends them."
)
_ENDS: Final = (
    "The tasks end with this window; the same command goes on from where each of them was."
)


class PlacedRunner:
    """Runs one task file on an `engine`'s machines. `stop` and `leave` may be called meanwhile.

    The `approver` asks the person what tasks ask; without one nobody can be asked.
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
    ) -> None:
        self._planned, self._options = planned, options
        self._store, self._engine = store, engine
        self._sink, self._clock = sink, clock
        self._confined, self._asks = confined, approver is not None
        # a run that was begun with a screen may be continued without one
        self._questions = TaskQuestions(store, approver or RulesOnly(), sink, clock)
        self._merging = MergeQueue(planned.worktrees)
        self._pace = LeasePace(planned.launch.config.batch.lease_s)
        self._lease_clock = SuspendAwareClock()
        self._stop = asyncio.Event()
        self._leaving = False
        self._seen: dict[str, tuple[StoredTask, float]] = {}
        """Each task as last seen, and since when it is unchanged, by this machine's clock."""
        self._starts = WorkerStarts()
        self._last_read = 0.0
        self._failed_takes: dict[str, int] = {}
        self._handles: dict[str, str] = {}
        """The worker of each task, as the engine knows it."""
        self._fatal = ""
        self._again = False
        self._told: set[str] = set()
        self._begun: dict[str, int] = {}
        """The attempts of each task that were told."""
        self._tried: set[int] = set()
        self._failures = 0
        self.book: RunStore | None = None
        self.fatal_class: str | None = None

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

    async def close(self) -> None:
        """Let go of the engine."""
        await asyncio.to_thread(self._engine.close)

    @property
    def reason(self) -> str:
        """The reason why the run ended before all was done; "" where it did not."""
        if self.stopping:
            return "interrupted"
        unmerged = self.book.state.counts().get("unmerged", 0) if self.book else 0
        return self._fatal or (f"{plural(unmerged, 'task')} couldn't be merged" if unmerged else "")

    async def run(self) -> RunState:
        """Work through the file; returns the state of every task. Raises UsageError, StorageError,
        StoreError, EngineError."""
        planned, folder = self._planned, RunFolder(self._planned.target)
        began = self._clock.monotonic()
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
            )
            if self._again:
                await book.take_up_failed()
            try:
                await self._merge(book)
                while (placed := await self._placed(book)) is not None:
                    await self._watch(book, placed)
            finally:
                await self._end()
            await self._merge(book, everything=True)
            await self._forget(book)
        finished = RunFinished(
            book.state.counts(),
            self._clock.monotonic() - began,
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
        if self.stopping or self._fatal:
            return None
        placed = book.state.placed
        if placed is not None and placed.store != self._store.address:
            raise UsageError(
                f"The run is in the store {placed.store}.",
                hint=f"Continue with --store {placed.store}, or forget it with --reset.",
            )
        if placed is None or _is_taken(placed):
            await book.take_up_added(())
            keys = _keys(book.state, self._tried)
            if not keys:
                return None
            name = timestamp(self._clock.now()).translate({45: None, 58: None})[:15]
            placed = PlacedRun(
                run=f"{name}-{secrets.token_hex(3)}",
                store=self._store.address,
                on=self._engine.name,
                keys=keys,
            )
            await book.note_placed(placed)  # before it is there: a kill may come between
        self._tried.update(index for indexes in placed.keys.values() for index in indexes)
        self._seen, self._begun = {}, {}
        # those of an earlier driver, where the engine knows them by that
        self._handles = {
            key: f"{placed.run}/{key}" for key in placed.keys if key not in placed.taken
        }
        await asyncio.to_thread(self._put, book, placed)
        return placed

    def _put(self, book: RunStore, placed: PlacedRun) -> None:
        """Put run and tasks into the store, if they aren't there. Blocks."""
        store, run_ref = self._store, f"{RUNS}{placed.run}"
        if run_ref in store.refs(run_ref):
            return
        planned = self._planned
        spec = spec_for(
            planned, self._options, placed.run, confined=self._confined, asks=self._asks
        )
        files: dict[str, bytes | None] = {TASK_FILE: read_small(planned.task_file)[0]}
        if planned.launch.boot is not None:
            files[BOOT_FILE] = read_small(planned.launch.boot)[0]
        store.bring([spec.base], Checkout.of(planned.target).common)
        files[STATE_FILE] = msgspec.json.encode(replace(book.state, placed=None))
        drafts = [CommitDraft(spec.to_message(), works=(spec.base,), files=files)]
        for key, indexes in placed.keys.items():
            drafts.append(CommitDraft(TaskEntry(key=key, tasks=indexes).to_message()))
        refs = [run_ref, *(ref_of(placed.run, key) for key in placed.keys)]
        made = store.commits(drafts)
        moves = {ref: ("", commit) for ref, commit in zip(refs, made, strict=True)}
        store.keep(run_ref, made[0])
        if not store.move(moves):
            raise StoreError(f"The store has another run {placed.run}.")

    # Watching it

    async def _watch(self, book: RunStore, placed: PlacedRun) -> None:
        """Start workers and take results until nothing is left that can run."""
        began = self._clock.monotonic()
        while not self.stopping and not self._fatal:
            found = await asyncio.to_thread(self._read_tasks, placed)
            self._questions.review(placed, found)
            self._tell_begun(book, placed, found)
            for key, one in found.items():
                if one.entry.is_over and key not in self._taken(book):
                    await self._take(book, key, one)
            await self._merge(book)
            if book.state.placed is None or _is_taken(book.state.placed):
                return
            self._judge_limits(began)
            await asyncio.to_thread(self._free_lost, placed)
            await asyncio.to_thread(self._start_more, placed)
            self._judge_refusals(found)
            waiting = asyncio.ensure_future(self._stop.wait())
            await asyncio.wait({waiting}, timeout=self._engine.look_s)
            waiting.cancel()

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

    def _read_tasks(self, placed: PlacedRun) -> dict[str, StoredTask]:
        """The tasks as the store has them. A store that can't be reached is waited for."""
        try:
            refs = self._store.refs(f"{TASKS}{placed.run}/", f"{QUESTIONS}{placed.run}/")
            now, asked = _by_key(refs, TASKS), _by_key(refs, QUESTIONS)
            new = [
                commit
                for key, commit in now.items()
                if key not in self._seen or self._seen[key][0].commit != commit
            ]
            self._store.fetch(new)
            entries = self._store.entries(new)
            self._questions.read(asked)
        except StoreError as error:
            self._say(f"The store can't be reached; it is tried again. {error}")
            return {key: found for key, (found, _) in self._seen.items()}
        at = self._lease_clock.monotonic()
        if at - self._last_read > max(self._pace.lost / 3, 5 * self._engine.look_s):
            # it slept: nobody saw whether they moved
            self._seen = {key: (one, at) for key, (one, _) in self._seen.items()}
        self._last_read = at
        for key, commit in now.items():
            if commit in entries:
                self._seen[key] = StoredTask(commit, entries[commit]), self._lease_clock.monotonic()
        return {key: self._seen[key][0] for key in placed.keys if key in self._seen}

    def _free_lost(self, placed: PlacedRun) -> None:
        """Take tasks from workers that have been still for too long, and end these, wherever the
        engine still has them."""
        for key, (stored, since) in [*self._seen.items()]:
            still_s = self._lease_clock.monotonic() - since
            if stored.entry.state != "running" or still_s <= self._pace.lost:
                continue
            with suppress(StoreError):
                ref = ref_of(placed.run, key)
                if now := lost(self._store, ref, stored, "the worker was gone"):
                    self._seen[key] = now, self._lease_clock.monotonic()
                    self._say(f"Task {key}: {now.entry.ended}.")
                    if handle := self._handles.pop(key, ""):
                        with suppress(EngineError):
                            self._engine.cancel([handle])

    def _start_more(self, placed: PlacedRun) -> None:
        """Give the engine tasks that wait, as many as it and the money allow."""
        try:
            self._drop_ended()
            if wanted := self._chosen(placed):
                self._handles |= self._engine.put(wanted)
        except EngineError as error:
            self._say(f"The engine {self._engine.name} can't start workers now: {error}")

    def _drop_ended(self) -> None:
        """Forget the workers that have ended, by what the engine says: nothing but new ones depends
        on it."""
        lives = self._engine.watch([*self._handles.values()])
        for key, handle in [*self._handles.items()]:
            if lives.get(handle) not in {"lives", "waits"}:
                self._say_end(key, handle)
                del self._handles[key]
            elif key in self._seen and self._seen[key][0].entry.is_over:
                del self._handles[key]

    def _chosen(self, placed: PlacedRun) -> dict[str, list[str]]:
        """The next tasks for the engine, each with the words of its worker's command."""
        wanted: dict[str, list[str]] = {}
        entries = [stored.entry for stored, _ in self._seen.values()]
        budget = Budget(self._limit(placed), self._engine.slots, entries, self._handles)
        for key, (stored, _) in sorted(self._seen.items()):
            entry = stored.entry
            if entry.state != "waiting" or entry.cancelled or key in self._handles:
                continue
            if len(self._handles) + len(wanted) >= self._engine.slots:
                break
            if not self._starts.is_due(entry, self._lease_clock.monotonic()):
                continue
            cap = budget.cap_of(entry)
            if cap is not None and cap <= 0:
                if not self._handles and not wanted:
                    self._fatal = cost_reached(budget.limit or 0.0)
                break
            if cap != entry.cap_usd:
                capped = change(self._store, ref_of(placed.run, key), stored, cap_usd=cap)
                if capped is None:
                    continue  # somebody has it
                self._seen[key] = capped, self._lease_clock.monotonic()
            budget.reserve(entry, cap)
            wanted[key] = ["work", f"{placed.run}/{key}", "--store", self._store.address]
            self._starts.note(entry, self._lease_clock.monotonic())
        return wanted

    def _limit(self, placed: PlacedRun) -> float | None:
        """The limit of cost, less what tasks have cost that aren't of this run in the store."""
        limit, book = self._planned.stops.cost_usd, self.book
        if limit is None or book is None:
            return limit
        mine = {index for indexes in placed.keys.values() for index in indexes}
        others = (task.cost_usd or 0.0 for task in book.state.tasks if task.index not in mine)
        return max(0.0, limit - sum(others))

    def _say_end(self, key: str, handle: str) -> None:
        """Say why a worker is gone that has left its task as it was."""
        last = self._engine.fetch(handle).strip().rpartition("\n")[2]
        is_event = last.endswith("}")  # of one that came to its end meanwhile
        if self._seen[key][0].entry.state == "waiting" and last and not is_event:
            self._say(f"A worker ended without its task. {last}")

    def _judge_refusals(self, found: Mapping[str, StoredTask]) -> None:
        """Say why machines refuse tasks; end the run where no task was ever taken."""
        entries = [one.entry for one in found.values()]
        refusals = [refusal for entry in entries for refusal in entry.refusals]
        for one in refusals:
            self._say(f"{one.host} can't take tasks of this run: {one.reason}")
        if len(refusals) >= _REFUSED and not any(entry.requests for entry in entries):
            self._fatal = f"no machine takes tasks of this run: {refusals[-1].reason}"

    def _judge_limits(self, began: float) -> None:
        """End the run where a limit of the person's is reached that no task heeds by itself."""
        stops = self._planned.stops
        if reached := stops.reached(
            spent_usd=None, failures=self._failures, elapsed_s=self._clock.monotonic() - began
        ):
            self._fatal = reached

    # Taking it

    async def _merge(self, book: RunStore, *, everything: bool = False) -> None:
        """Merge results; each waits for the tasks before it that are still to come."""

        def comes(task: TaskState) -> bool:
            return task.is_to_do

        await self._merging.merge(book, self._sink.show, None if everything else comes)

    async def _take(self, book: RunStore, key: str, found: StoredTask) -> None:
        """Take the result of a task that has come to rest."""
        assert book.state.placed is not None
        indexes = book.state.placed.keys[key]
        first = book.task(indexes[0])
        if found.entry.state == "given_up":
            why = f"Given up: {found.entry.losses} workers were lost with it; {found.entry.ended}."
            tasks = tuple(
                replace(
                    book.task(index),
                    status="failed",
                    message=why,
                    error_class="unknown",
                    attempts=found.entry.attempt,
                    cost_usd=found.entry.spent_usd,
                )
                for index in indexes
            )
        else:
            members = [book.task(index) for index in indexes]
            try:
                result = await asyncio.to_thread(
                    lambda: results.take(
                        self._store,
                        found,
                        indexes,
                        self._planned.target,
                        book.worktree_of(first, members),
                        folders=self._planned.launch.folders,
                        clock=self._clock,
                    )
                )
            except (StoreError, GitError, msgspec.DecodeError) as error:
                self._say(f"The result of task {first.index + 1} can't be taken yet: {error}")
                self._failed_takes[key] = tried = self._failed_takes.get(key, 0) + 1
                if tried < _TAKES:
                    return
                why = f"Its result can't be read: {error}. It stays in the store."
                tasks = tuple(
                    replace(one, status="failed", message=why, error_class="unknown")
                    for one in members
                )
            else:
                for problem in result.problems:
                    self._say(f"[{first.index + 1}] {problem}")
                tasks = result.tasks
        for task in tasks:
            await book.rest(task)
            self._failures = self._failures + 1 if task.status == "failed" else 0
        placed = book.state.placed
        await book.note_placed(replace(placed, taken=(*placed.taken, key)))
        for task in tasks:
            self._sink.show(_finished(task))

    async def _end(self) -> None:
        """Leave the engine. Where the run was ended, and not only this window, workers end, too."""
        await self._questions.close()
        ended = self._fatal or (self.stopping and not self._leaving)
        if ended and self._engine.outlives:
            with suppress(EngineError):
                await asyncio.to_thread(self._engine.cancel, [*self._handles.values()])
        await self.close()

    async def _forget(self, book: RunStore) -> None:
        """Remove what merged tasks have left, and the note of a run that is over."""
        names = {task.worktree for task in book.state.tasks if task.status == "completed"}
        for name in sorted(filter(None, names)):
            if refusal := await asyncio.to_thread(self._planned.worktrees.leave, name):
                self._say(refusal)
            else:
                await book.forget_worktree(name)
        if book.state.placed is not None and _is_taken(book.state.placed):
            await book.note_placed(None)


def _by_key(refs: Mapping[str, str], room: str) -> dict[str, str]:
    """The commits of a room's refs, by the names of the tasks."""
    return {ref.rpartition("/")[2]: one for ref, one in refs.items() if ref.startswith(room)}


def _is_taken(placed: PlacedRun) -> bool:
    """True if the results of all tasks are here."""
    return all(key in placed.taken for key in placed.keys)


def _keys(state: RunState, tried: Collection[int]) -> dict[str, tuple[int, ...]]:
    """The groups of tasks that are to be done and were not `tried`, by the names that they have in
    the store: tasks of a group share a session, and one above the first heading is on its own."""
    groups: dict[tuple[int, int], list[int]] = {}
    for task in state.tasks:
        if task.is_to_do and task.index not in tried:
            key = (task.section, task.index if task.group == UNGROUPED else -1)
            groups.setdefault(key, []).append(task.index)
    return {f"{indexes[0] + 1:05}": tuple(indexes) for indexes in groups.values()}


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
