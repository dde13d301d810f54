"""The runner: task after task until the file is done, something stops it, or it cannot continue.

How one task is worked on stands in `task_run`. What an earlier run has done in worktrees is merged
in the order of the file.
"""

from __future__ import annotations

import asyncio

from tui.batch.events import RunFinished, RunStarted
from tui.batch.group_session import GroupSession
from tui.batch.merging import MergeQueue
from tui.batch.run_context import RunContext, RunSetup
from tui.batch.run_store import RunStore
from tui.batch.state import RunFolder, RunState, TaskState, total_usage
from tui.batch.task_run import TaskRun
from tui.batch.task_worktrees import TaskPlace
from tui.core.errors import UsageError
from tui.core.formatting import plural
from tui.core.paths import Folders

_NO_ISOLATION = "Neither jj nor git isolates tasks here: changes made by failed tasks stay."


class Runner:
    """Runs one task file. `stop`, `leave`, `pause`, `skip`, `redo` and `edit` may be called
    meanwhile.

    `pausing`: the run ends after the tasks that are being worked on.
    """

    def __init__(self, setup: RunSetup) -> None:
        self.setup = setup
        self.context = RunContext(setup)
        self.pausing = False
        place = TaskPlace(setup.target, setup.isolation)
        self._group = GroupSession(self.context, place, setup.models)
        self._index: int | None = None
        """The task that is being worked on."""
        self._left_agent: asyncio.Task[None] | None = None
        self._merging = MergeQueue(setup.worktrees)
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
            if self._again:
                await book.take_up_failed()
            await book.remove_worktrees(setup.worktrees, lambda task: task.is_to_do)
            if setup.isolation.name == "none":
                run.say(_NO_ISOLATION)
            try:
                # a killed run may have left finished tasks unmerged
                await self._merge(book)
                await self._work(book)
            finally:
                if self._left_agent is not None:  # it still writes its records
                    await self._left_agent
                await self._group.leave()
            await self._merging.merge(book, setup.publish, None)
            await book.remove_worktrees(setup.worktrees, lambda task: not task.is_to_do)
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
        self._group.cancel()

    def leave(self) -> None:
        """End the run now, and let running tasks be: their commands run on, and the next run
        continues with them. For a terminal that is lost."""
        if not self.stopping:
            self.context.leaving = True
            self.context.stop()
            self.setup.isolation.stop()
            self._left_agent = asyncio.create_task(self._group.let_be())

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
            await self.context.book.edit(data, running=self.running)

    @property
    def running(self) -> tuple[int, ...]:
        """The tasks that are being worked on."""
        return () if self._index is None else (self._index,)

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
                hooks=setup.batch.hooks,
                sign=setup.batch.sign,
            )
        )

    async def _work(self, book: RunStore) -> None:
        """Run what is to be run, in the order of the file."""
        while not self._why_stop(book):
            await book.take_up_added()
            self._index = book.next_index(self._skipped)
            if self._index is None:
                return
            try:
                await TaskRun(self.context, book, book.task(self._index), self._group).run()
            finally:
                self._index = None
            await self._merge(book)

    async def _merge(self, book: RunStore) -> None:
        """Merge what an earlier run has done in worktrees, after the tasks before it."""

        def still_comes(task: TaskState) -> bool:
            return book.is_to_do(task) and task.index not in self._skipped

        await self._merging.merge(book, self.setup.publish, still_comes)

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
