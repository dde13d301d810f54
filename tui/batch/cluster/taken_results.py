"""The results of a placed run: taken from its store, merged, and what is then over removed."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from tui.app.options.arguments import Options
from tui.batch.cluster import results
from tui.batch.cluster.lease import StoredTask
from tui.batch.cluster.placed_workers import RunInCharge
from tui.batch.cluster.relay import WorkerEvents
from tui.batch.cluster.run_in_store import stores_of
from tui.batch.cluster.task_store import StoreError, TaskStore
from tui.batch.cluster.worker import private_place, scratch_folder
from tui.batch.events import EventSink, finished
from tui.batch.merging import MergeQueue
from tui.batch.plan import RunPlan
from tui.batch.run_policy import cost_reached
from tui.batch.run_store import RunStore
from tui.batch.state import PlacedRun, RunState, TaskState
from tui.core.clock import Clock
from tui.core.errors import HoldfastError, os_error_as
from tui.session.checkpoints.scratch import remove_tree

_TAKES: Final = 5
"""Tries to take the last results."""


class TakenResults:
    """Takes the results of the run that is `planned`, and has what that tells of it.

    `tried` are the tasks that aren't put into the store again, `failures` the failed ones in a row.
    """

    def __init__(
        self,
        planned: RunPlan,
        options: Options,
        store: TaskStore,
        sink: EventSink,
        clock: Clock,
        *,
        run: RunInCharge,
        printed: WorkerEvents | None,
    ) -> None:
        self._planned, self._options, self._store = planned, options, store
        self._sink, self._clock, self._run = sink, clock, run
        self._printed = printed
        self._merging = MergeQueue(planned.worktrees)
        self.tried: set[int] = set()
        self.failures = 0
        self._failed_takes: dict[str, int] = {}
        self._paid: dict[int, float] = {}
        """The cost of tasks before they were put into the store again."""
        self._cut: dict[str, list[int]] = {}
        """The limits that groups have reached, with the tasks that they were at."""
        self._store_stays = False

    async def take(self, book: RunStore, key: str, task: StoredTask) -> None:
        """Take the result of a group that has come to rest."""
        assert book.state.placed is not None
        indexes = book.state.placed.keys[key]
        tasks = await self._read(book, key, task, [*map(book.task, indexes)])
        if tasks is None:
            return
        before = {(one.index, one.status, one.change) for one in map(book.task, indexes)}
        tasks = [
            replace(one, cost_usd=one.cost_usd + self._paid[one.index])
            if one.index in self._paid and one.cost_usd is not None
            else one
            for one in tasks
        ]
        for one in tasks:
            await book.rest(one)
            self.failures = self.failures + 1 if one.status == "failed" else 0
        self._note_limit(task, [one for one in tasks if one.is_to_do])
        placed = book.state.placed
        await book.note_placed(replace(placed, taken=(*placed.taken, key)))
        if self._printed is not None:
            self._printed.engine.drop(key)
        for one in tasks:
            if (one.index, one.status, one.change) not in before:
                self._sink.show(finished(one))

    async def _read(
        self, book: RunStore, key: str, task: StoredTask, members: list[TaskState]
    ) -> Iterable[TaskState] | None:
        """The tasks of a group as their result says; None where it can't be taken yet."""
        first = members[0]
        self._store_stays = self._store_stays or task.entry.state == "given_up"
        try:
            result = await asyncio.to_thread(
                lambda: results.take(
                    self._store,
                    task,
                    members,
                    self._planned.target,
                    book.worktree_of(first, members),
                    folders=self._planned.launch.folders,
                    clock=self._clock,
                )
            )
        except results.ResultError as error:
            self._store_stays = True
            why = f"Its result can't be read: {error} It stays in the store."
            return [
                replace(one, status="failed", message=why, error_class="unknown") for one in members
            ]
        except (HoldfastError, OSError) as error:
            self._run.say(f"The result of task {first.index + 1} can't be taken yet: {error}")
            self._failed_takes[key] = self._failed_takes.get(key, 0) + 1
            return None
        self._failed_takes.pop(key, None)
        self._store_stays = self._store_stays or bool(result.problems)
        for problem in result.problems:
            self._run.say(f"[{first.index + 1}] {problem}")
        return result.tasks

    def _note_limit(self, task: StoredTask, again: list[TaskState]) -> None:
        """Note the limit that a group has reached which has tasks that are to be done `again`."""
        entry, limit = task.entry, self.whole_limit_usd
        if again and entry.ended:
            why = cost_reached(limit) if limit is not None and entry.cap_reached else entry.ended
            self._cut.setdefault(why, []).append(again[0].index)
        if limit is not None and entry.state == "done":
            # its share was too small: it may get what others have left
            self.tried -= {one.index for one in again}
            self._paid |= {one.index: one.cost_usd or 0.0 for one in again}

    def cut_short(self, book: RunStore) -> dict[str, list[int]]:
        """Return the limits that groups have reached, with those of their tasks that aren't
        done."""
        cut = {
            why: [index for index in dict.fromkeys(tasks) if book.task(index).is_to_do]
            for why, tasks in self._cut.items()
        }
        return {why: tasks for why, tasks in cut.items() if tasks}

    @property
    def whole_limit_usd(self) -> float | None:
        """The person's limit of cost; None for none."""
        return self._planned.stops.cost_usd

    def limit_usd(self, state: RunState) -> float | None:
        """Return the limit of cost for the tasks that are in the store; None for none."""
        limit = self.whole_limit_usd
        return None if limit is None else max(0.0, limit - self.spent_before_usd(state))

    def spent_before_usd(self, state: RunState) -> float:
        """Return what was spent on other tasks than those in the store, and on those before they
        were put there."""
        placed = state.placed
        mine = {index for indexes in placed.keys.values() for index in indexes} if placed else ()
        others = sum(task.cost_usd or 0.0 for task in state.tasks if task.index not in mine)
        return others + sum(self._paid.get(index, 0.0) for index in mine)

    def stuck(self, placed: PlacedRun) -> int:
        """Return the number of results that are left, if none of them could be taken here however
        often that was tried; else 0."""
        rest = [key for key in placed.keys if key not in placed.taken]
        return len(rest) * all(self._failed_takes.get(key, 0) >= _TAKES for key in rest)

    async def merge(
        self, book: RunStore, skipped: Collection[int], *, everything: bool = False
    ) -> None:
        """Merge results; each waits for the tasks before it that are still to come."""

        def comes(task: TaskState) -> bool:
            done_elsewhere = task.status == "unmerged" and not task.worktree
            to_do = task.is_to_do and task.index not in skipped
            return to_do or task.status == "running" or done_elsewhere

        await self._merging.merge(book, self._sink.show, None if everything else comes)

    async def forget(self, book: RunStore) -> None:
        """Remove what merged tasks have left, and the note of a run that is over, with its store
        where nothing can be gained from that any more."""
        await book.remove_worktrees(
            self._planned.worktrees, lambda task: task.status == "completed"
        )
        if book.state.placed is not None and book.state.placed.is_taken:
            await book.note_placed(None)
            # what of it is unmerged or unread can still be looked at
            stays = self._store_stays or any(map(_may_be_looked_at, book.state.tasks))
            if self._owns_store and not stays:
                await asyncio.to_thread(self._remove_store)

    def _remove_store(self) -> None:
        try:
            self._store.remove()
            place = private_place(scratch_folder(self._options), self._store.address)
            with os_error_as(StoreError, f"Can't remove {place}"):
                remove_tree(place)
        except StoreError as error:
            self._run.say(str(error))

    @property
    def _owns_store(self) -> bool:
        """True if the store is the one that runs of this folder on this machine use."""
        return Path(self._store.address).parent == stores_of(self._planned.launch.folders)


def _may_be_looked_at(task: TaskState) -> bool:
    """True if the store has what a task did, and nothing else may have."""
    return task.status == "unmerged" or (task.status == "failed" and not task.change)
