"""The runner: task after task until the file is done, something stops it, or it cannot continue.

Several at a time work in worktrees, group by group, and are merged in the order of the file. How
one task is worked on stands in `task_run`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from tui.batch.events import RunFinished, RunStarted
from tui.batch.group_session import GroupSession
from tui.batch.merging import MergeQueue
from tui.batch.run_context import RunContext, RunSetup
from tui.batch.run_store import RunStore
from tui.batch.state import RunFolder, RunState, TaskState, total_usage
from tui.batch.task_run import TaskRun
from tui.batch.task_worktrees import TaskPlace
from tui.batch.taskfile import UNGROUPED
from tui.core.errors import UsageError
from tui.core.formatting import plural
from tui.core.git.door import GitError
from tui.core.paths import Folders

_NO_ISOLATION = "Neither jj nor git isolates tasks here: changes made by failed tasks stay."


class Runner:
    """Runs one task file. `stop`, `leave`, `pause`, `skip`, `redo` and `edit` may be called
    meanwhile.

    `pausing`: the run ends after the tasks that are being worked on.
    """

    def __init__(self, setup: RunSetup) -> None:
        self.setup = setup
        self.context = RunContext(setup, self._cancel_others)
        self.pausing = False
        self._left_agents: list[asyncio.Task[None]] = []
        self._groups: dict[tuple[int, int], GroupSession] = {}
        self._merging = MergeQueue(setup.worktrees)
        self._left: set[str] = set()
        self._skipped: set[int] = set()
        self._again = False

    async def run(self) -> RunState:
        """Work through the file; returns the state of every task. Continues with an earlier run.

        Raises UsageError where it cannot begin (another runner, a changed file, a dirty tree),
        StorageError where its state cannot be saved.
        """
        setup, folder = self.setup, RunFolder(self.setup.target)
        run = self.context
        run.began = setup.clock.monotonic()
        with folder.locked():
            run.book = book = await RunStore.opened(
                setup.task_file,
                folder,
                setup.isolation,
                setup.worktrees,
                clock=setup.clock,
                say=run.say,
                opened=self._announce,
                folders=setup.folders,
                parallel=run.parallel,
            )
            if book.state.batch is not None:
                raise UsageError(
                    "A message batch of this run isn't done yet.",
                    hint="Continue with --batch-api, or forget it with --reset.",
                )
            if book.state.placed is not None:
                raise UsageError(
                    f"The tasks of this run are worked on elsewhere, by {book.state.placed.on}.",
                    hint=f"Continue with --on {book.state.placed.on}, or forget it with --reset.",
                )
            self._left = {task.worktree for task in book.state.tasks if task.worktree}
            if self._again:
                await book.take_up_failed()
            if setup.isolation.name == "none":
                run.say(_NO_ISOLATION)
            try:
                # a killed run may have left finished tasks unmerged
                await self._merge(book)
                await self._work(book)
            finally:
                # agents that were left still write their records
                await asyncio.gather(*self._left_agents)
                await self._leave_groups(self._groups)
            await self._merging.merge(book, setup.publish, None)
            await self._remove_worktrees(book)
        setup.publish(
            RunFinished(
                book.state.counts(),
                run.elapsed_s,
                self._why_stop(book),
                total_usage(book.state.tasks).to_json(),
                book.spent_usd,
                book.state.tasks,
            )
        )
        return book.state

    def stop(self) -> None:
        """End the run now: running tasks become interrupted. Again it changes nothing."""
        if self.context.leaving:
            return
        self.context.stop()
        self.setup.isolation.stop()
        for group in self._groups.values():
            group.cancel()

    def leave(self) -> None:
        """End the run now, and let running tasks be: their commands run on, and the next run
        continues with them. For a terminal that is lost."""
        if not self.stopping:
            self.context.leaving = True
            self.context.stop()
            self.setup.isolation.stop()
            groups = self._groups.values()
            self._left_agents = [asyncio.create_task(group.let_be()) for group in groups]

    def pause(self, wanted: bool = True) -> None:
        """End the run after the task that is running; not `wanted` takes that back."""
        self.pausing = wanted

    def skip(self, index: int) -> None:
        """Leave out a task that has not begun; it stays pending for the next run."""
        self._skipped.add(index)

    def take_up_failed(self) -> None:
        """Run the failed tasks of the earlier run again. To be called before `run`."""
        self._again = True

    async def redo(self, index: int) -> None:
        """Take a failed or left out task up again: it is run when its turn comes."""
        self._skipped.discard(index)
        if self.context.book:
            await self.context.book.take_up_failed(index)

    async def edit(self, data: bytes) -> None:
        """Take over a task file that was edited on the screen; see `RunStore.edit`."""
        if self.context.book:
            await self.context.book.edit(data, running=self._begun or self.running)

    @property
    def running(self) -> tuple[int, ...]:
        """The tasks that are being worked on."""
        groups = self._groups.values()
        return tuple(sorted(one.running for one in groups if one.running is not None))

    @property
    def state(self) -> RunState | None:
        """The state of every task; None before the run has begun."""
        return self.context.book.state if self.context.book else None

    @property
    def skipped(self) -> frozenset[int]:
        """The tasks that are left out of this run."""
        return frozenset(self._skipped)

    @property
    def elapsed_s(self) -> float:
        """The seconds since the run began."""
        return self.context.elapsed_s

    @property
    def placement(self) -> None:
        """The places of the tasks on machines: none, they are worked on here."""
        return None

    def session_of(self, index: int) -> None:
        """The session of a task elsewhere: none, all are on this machine."""

    def folders_of(self, index: int) -> Folders:
        """Return the folders that have the session of a task: those of all."""
        del index
        return self.setup.folders

    @property
    def stopping(self) -> bool:
        """True if it was stopped, or left."""
        return self.context.stopping

    @property
    def fatal_class(self) -> str | None:
        """The class of the error that the run cannot continue after."""
        return self.context.fatal_class

    @property
    def reason(self) -> str:
        """The reason why the run ended before all was done; "" where it did not."""
        return self._why_stop(self.context.book) if self.context.book else ""

    def _cancel_others(self, index: int) -> None:
        """Stop what runs beside a task, which may be done with this answer."""
        for group in self._groups.values():
            if group.running != index:
                group.cancel()

    def _announce(self, state: RunState) -> None:
        setup, done = self.setup, state.counts().get("completed", 0)
        file, count = str(setup.task_file), len(state.tasks)
        setup.publish(
            RunStarted(
                file,
                count,
                done,
                setup.boot,
                setup.isolation.name,
                setup.at_once,
                setup.batch.hooks,
                setup.batch.sign,
            )
        )

    async def _work(self, book: RunStore) -> None:
        """Run what is to be run, in the order of the file, as many at a time as may be."""
        at_work: dict[asyncio.Task[None], GroupSession] = {}
        try:
            while True:
                await self._begin_more(book, at_work)
                if not at_work:
                    return
                done, _ = await asyncio.wait(at_work, return_when=asyncio.FIRST_COMPLETED)
                for one in done:
                    at_work.pop(one).running = None
                    one.result()
                await self._merge(book)
                if self.context.parallel:
                    to_do = {self._key_of(task) for task in book.state.tasks if book.is_to_do(task)}
                    over = (key for key, group in self._groups.items() if group.running is None)
                    await self._leave_groups([key for key in over if key not in to_do])
                    await self._remove_worktrees(book)
        finally:
            for one in at_work:
                one.cancel()
            if at_work:
                await asyncio.wait(at_work)

    async def _begin_more(
        self, book: RunStore, at_work: dict[asyncio.Task[None], GroupSession]
    ) -> None:
        """Begin tasks whose group is free while there is room."""
        while len(at_work) < self.setup.at_once and not self._why_stop(book):
            await book.take_up_added(self._begun)
            index = book.next_index(self._skipped, busy=self._is_busy)
            if index is None:
                return
            try:
                group = await self._group_of(book, book.task(index))
            except GitError as error:
                self.context.fatal = str(error)
                self.context.say(str(error))
                return
            group.running = group.last = index
            work = TaskRun(self.context, book, book.task(index), group).run()
            at_work[asyncio.create_task(work, name=f"task {index + 1}")] = group

    @property
    def _begun(self) -> list[int]:
        """The task that each group in a worktree has come to: none before it may move."""
        return [group.last for group in self._groups.values()] if self.context.parallel else []

    async def _leave_groups(self, keys: Iterable[tuple[int, int]]) -> None:
        """Close the sessions of groups that have nothing to do any more."""
        for key in [*keys]:
            group = self._groups.pop(key)
            await group.leave()
            group.place.leave()
            self._left.add(group.place.worktree)

    def _is_busy(self, task: TaskState) -> bool:
        group = self._groups.get(self._key_of(task))
        return group is not None and group.running is not None

    def _key_of(self, task: TaskState) -> tuple[int, int]:
        """Return a key that is the same for tasks that are worked on one after the other: those of
        a group. Where several run at a time, a task above the first heading is on its own."""
        if not self.context.parallel:
            return (0, 0)
        return (task.section, task.index if task.group == UNGROUPED else 0)

    async def _group_of(self, book: RunStore, task: TaskState) -> GroupSession:
        """The group of a task at its place. Raises GitError where there can be no worktree."""
        setup, key = self.setup, self._key_of(task)
        if key not in self._groups:
            place = TaskPlace(setup.target, setup.isolation)
            if self.context.parallel:
                members = [one for one in book.state.tasks if self._key_of(one) == key]
                name = book.worktree_of(task, members)
                place = await asyncio.to_thread(setup.worktrees.enter, name)
                for note in place.notes:
                    self.context.say(f"[{task.index + 1}] {note}")
            alone = self.context.parallel and task.group == UNGROUPED
            self._groups[key] = GroupSession(self.context, place, setup.models, alone)
        return self._groups[key]

    async def _merge(self, book: RunStore) -> None:
        """Merge what is done in worktrees, each after those before it."""

        def still_comes(task: TaskState) -> bool:
            return self._is_before_others(book, task)

        await self._merging.merge(book, self.setup.publish, still_comes)

    def _is_before_others(self, book: RunStore, task: TaskState) -> bool:
        """True if a task is being worked on, or will be in this run."""
        if task.index in self.running:
            return True
        return book.is_to_do(task) and task.index not in self._skipped

    async def _remove_worktrees(self, book: RunStore) -> None:
        """Remove the worktrees of tasks that hold nothing any more; the others are named."""
        busy = {group.place.worktree for group in self._groups.values()}
        unfinished = {"unmerged", "running"}
        waits = {task.worktree for task in book.state.tasks if task.status in unfinished}
        for name in sorted(self._left - busy - waits - {""}):
            self._left.discard(name)
            if refusal := await asyncio.to_thread(self.setup.worktrees.leave, name):
                self.context.say(refusal)
            else:
                await book.forget_worktree(name)

    def _why_stop(self, book: RunStore) -> str:
        """Say why the run must stop now; "" where it need not, or nothing is left."""
        if self.stopping:
            return "interrupted"
        if book.next_index(()) is None:
            left = book.state.counts().get("unmerged", 0)
            return f"{plural(left, 'task')} couldn't be merged" if left else ""
        if self.context.fatal:
            return self.context.fatal
        if book.next_index(self._skipped) is None:
            return "skipped the remaining tasks"
        return "paused" if self.pausing else self.context.reached_limit(book)
