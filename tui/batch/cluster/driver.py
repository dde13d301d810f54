"""A run whose tasks an engine places on machines: put into the store, watched there, and merged.

The driver may end at any moment: the store has all that counts, and the next one goes on from it.
It starts workers for tasks that wait, notices those whose lease stands still, and takes results.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

import msgspec
from msgspec.structs import replace

from tui.app.options.arguments import Options
from tui.batch.cluster import results
from tui.batch.cluster.engines.port import Engine, EngineError
from tui.batch.cluster.entry import LEASE_S, TaskEntry
from tui.batch.cluster.lease import Found, lost, ref_of, seconds
from tui.batch.cluster.run_spec import BOOT_FILE, STATE_FILE, TASK_FILE, spec_for
from tui.batch.cluster.task_store import RUNS, TASKS, StoreError, TaskStore
from tui.batch.events import BatchEvent, RunFinished, RunStarted, TaskFinished
from tui.batch.merging import MergeQueue
from tui.batch.plan import RunPlan
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

LOOK_S: Final = 2.0
"""Seconds between two looks at the store."""
_REFUSED: Final = 3
"""Refusals after which a run without a single attempt gives up."""


class PlacedRunner:
    """Runs one task file on an `engine`'s machines. `stop` and `leave` may be called meanwhile."""

    def __init__(
        self,
        planned: RunPlan,
        options: Options,
        store: TaskStore,
        engine: Engine,
        publish: Callable[[BatchEvent], None],
        *,
        clock: Clock,
        confined: bool,
    ) -> None:
        self._planned, self._options = planned, options
        self._store, self._engine = store, engine
        self._publish, self._clock = publish, clock
        self._confined = confined
        self._merging = MergeQueue(planned.worktrees, publish, lambda _, task: task.is_to_do)
        self._stop = asyncio.Event()
        self._leaving = False
        self._seen: dict[str, tuple[Found, float]] = {}
        """Each task as last seen, and since when it is unchanged, by this machine's clock."""
        self._handles: dict[str, str] = {}
        """The worker of each task, as the engine knows it."""
        self._fatal = ""
        self._again = False
        self._told: set[str] = set()
        self.book: RunStore | None = None
        self.fatal_class: str | None = None

    @property
    def stopping(self) -> bool:
        """True if it was stopped, or left."""
        return self._stop.is_set()

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
            placed = await self._placed(book)
            # those of an earlier driver, where the engine knows them by that
            self._handles = {
                key: f"{placed.run}/{key}" for key in placed.keys if key not in placed.taken
            }
            try:
                await self._merging.merge(book)
                await self._watch(book, placed)
            finally:
                await self._end()
            await self._merging.merge(book, everything=True)
            await self._forget(book)
        finished = RunFinished(
            book.state.counts(),
            self._clock.monotonic() - began,
            self.reason,
            total_usage(book.state.tasks).to_json(),
            book.spent_usd,
            book.state.tasks,
        )
        self._publish(finished)
        return book.state

    def _say(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._publish(Notice(text))

    def _announce(self, state: RunState) -> None:
        planned, batch = self._planned, self._planned.launch.config.batch
        done, shown = state.counts().get("completed", 0), planned.boot.shown
        self._publish(
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

    # Putting it into the store

    async def _placed(self, book: RunStore) -> PlacedRun:
        """The run in the store: the one that was begun, else a new one."""
        placed = book.state.placed
        if placed is not None and placed.store != self._store.address:
            raise UsageError(
                f"The run is in the store {placed.store}.",
                hint=f"Continue with --store {placed.store}, or forget it with --reset.",
            )
        if placed is None or all(key in placed.taken for key in placed.keys):
            name = timestamp(self._clock.now()).translate({45: None, 58: None})[:15]
            placed = PlacedRun(
                run=f"{name}-{secrets.token_hex(3)}",
                store=self._store.address,
                on=self._engine.name,
                keys=_keys(book.state),
            )
            await book.note_placed(placed)  # before it is there: a kill may come between
        await asyncio.to_thread(self._put, book, placed)
        return placed

    def _put(self, book: RunStore, placed: PlacedRun) -> None:
        """Put run and tasks into the store, if they aren't there. Blocks."""
        store, run_ref = self._store, f"{RUNS}{placed.run}"
        if run_ref in store.refs(run_ref):
            return
        planned = self._planned
        limit = planned.stops.cost_usd
        spec = spec_for(
            planned,
            self._options,
            placed.run,
            confined=self._confined,
            cap_usd=limit / self._engine.slots if limit else None,
        )
        files: dict[str, bytes | None] = {TASK_FILE: read_small(planned.task_file)[0]}
        if planned.launch.boot is not None:
            files[BOOT_FILE] = read_small(planned.launch.boot)[0]
        here = Checkout.of(planned.target).common / "objects"
        moves = {
            run_ref: (
                "",
                store.commit(spec.to_message(), works=[spec.base], files=files, objects=here),
            )
        }
        for key, indexes in placed.keys.items():
            tasks = [
                task if task.index in indexes else replace(task, status="completed")
                for task in book.state.tasks
            ]
            state = replace(book.state, tasks=tuple(tasks), placed=None)
            entry = TaskEntry(key=key)
            made = store.commit(entry.to_message(), files={STATE_FILE: msgspec.json.encode(state)})
            moves[ref_of(placed.run, key)] = "", made
        if not store.move(moves, here):
            raise StoreError(f"The store has another run {placed.run}.")

    # Watching it

    async def _watch(self, book: RunStore, placed: PlacedRun) -> None:
        """Start workers and take results until nothing is left that can run."""
        while not self.stopping and not self._fatal:
            found = await asyncio.to_thread(self._look, placed)
            for key, one in found.items():
                if one.entry.is_over and key not in self._taken(book):
                    await self._take(book, key, one)
            await self._merging.merge(book)
            if all(key in self._taken(book) for key in placed.keys):
                return
            await asyncio.to_thread(self._free_lost, placed)
            await asyncio.to_thread(self._start_more, placed)
            self._judge_refusals(found)
            waiting = asyncio.ensure_future(self._stop.wait())
            await asyncio.wait({waiting}, timeout=LOOK_S)
            waiting.cancel()

    def _taken(self, book: RunStore) -> tuple[str, ...]:
        return book.state.placed.taken if book.state.placed else ()

    def _look(self, placed: PlacedRun) -> dict[str, Found]:
        """The tasks as the store has them. A store that can't be reached is waited for."""
        try:
            refs = self._store.refs(f"{TASKS}{placed.run}/")
            now = {ref.rpartition("/")[2]: commit for ref, commit in refs.items()}
            new = [
                commit
                for key, commit in now.items()
                if key not in self._seen or self._seen[key][0].commit != commit
            ]
            self._store.fetch(new)
            entries = self._store.entries(new)
        except StoreError as error:
            self._say(f"The store can't be reached; it is tried again. {error}")
            return {key: found for key, (found, _) in self._seen.items()}
        for key, commit in now.items():
            if commit in entries:
                self._seen[key] = Found(commit, entries[commit]), seconds()
        return {key: self._seen[key][0] for key in placed.keys if key in self._seen}

    def _free_lost(self, placed: PlacedRun) -> None:
        """Take tasks from workers that have stood still for too long."""
        for key, (found, since) in [*self._seen.items()]:
            if found.entry.state == "running" and seconds() - since > LEASE_S:
                with suppress(StoreError):
                    if now := lost(
                        self._store, ref_of(placed.run, key), found, "the worker was gone"
                    ):
                        self._seen[key] = now, seconds()
                        self._say(f"Task {key}: {now.entry.ended}. It is started again.")

    def _start_more(self, placed: PlacedRun) -> None:
        """Give the engine tasks that wait, as many as it and the money allow."""
        try:
            lives = self._engine.watch([*self._handles.values()])
        except EngineError as error:
            self._say(f"The engine {self._engine.name} can't be asked; it is tried again. {error}")
            return
        self._handles = {
            key: handle
            for key, handle in self._handles.items()
            if lives.get(handle) in {"lives", "waits"}
            and not (key in self._seen and self._seen[key][0].entry.is_over)
        }
        wanted: dict[str, list[str]] = {}
        for key, (found, _) in sorted(self._seen.items()):
            entry = found.entry
            if entry.state != "waiting" or entry.cancelled or key in self._handles:
                continue
            if len(self._handles) + len(wanted) >= self._engine.slots:
                break
            if not self._has_money(len(wanted)):
                break
            words = ["work", f"{placed.run}/{key}", "--store", self._store.address]
            wanted[key] = words
        if wanted:
            try:
                self._handles |= self._engine.put(wanted)
            except EngineError as error:
                self._say(f"The engine {self._engine.name} didn't take a task: {error}")

    def _has_money(self, begun: int) -> bool:
        """True if the limit of cost has room for one more task, beside those that run."""
        limit = self._planned.stops.cost_usd
        if limit is None:
            return True
        entries = [found.entry for found, _ in self._seen.values()]
        dearest = max((one.next_usd for one in entries), default=0.0)
        reservation = limit / self._engine.slots + dearest
        settled = sum((one.spent_usd or 0.0) + one.reserved_usd for one in entries)
        running = begun + len(self._handles)
        return settled + reservation * (running + 1) <= limit + reservation * 0.01 or not running

    def _judge_refusals(self, found: Mapping[str, Found]) -> None:
        """Say why machines refuse tasks; end the run where no task was ever taken."""
        entries = [one.entry for one in found.values()]
        refusals = [refusal for entry in entries for refusal in entry.refusals]
        for one in refusals:
            self._say(f"{one.host} can't take tasks of this run: {one.reason}")
        if len(refusals) >= _REFUSED and not any(entry.requests for entry in entries):
            self._fatal = f"no machine takes tasks of this run: {refusals[-1].reason}"

    # Taking it

    async def _take(self, book: RunStore, key: str, found: Found) -> None:
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
            except (StoreError, GitError) as error:
                self._say(f"The result of task {first.index + 1} can't be taken yet: {error}")
                return
            for problem in result.problems:
                self._say(f"[{first.index + 1}] {problem}")
            tasks = result.tasks
        for task in tasks:
            await book.rest(task)
        placed = book.state.placed
        await book.note_placed(replace(placed, taken=(*placed.taken, key)))
        for task in tasks:
            self._publish(_finished(task))

    async def _end(self) -> None:
        """Leave the engine. Where the person stopped the run, its workers end, too."""
        if self.stopping and not self._leaving and self._engine.outlives:
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
        placed = book.state.placed
        if placed is not None and all(key in placed.taken for key in placed.keys):
            await book.note_placed(None)


def _keys(state: RunState) -> dict[str, tuple[int, ...]]:
    """The groups of tasks that are to be done, by the names that they have in the store: tasks of
    a group share a session, and one above the first heading is on its own."""
    groups: dict[tuple[int, int], list[int]] = {}
    for task in state.tasks:
        if task.is_to_do:
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
