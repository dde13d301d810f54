"""The runner: task after task until the file is done, something stops it, or it cannot go on.

How one task is worked on stands in `task_run`.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from tui.batch.events import RunFinished, RunStarted
from tui.batch.run_config import RunProgress, RunSetup
from tui.batch.run_store import RunStore
from tui.batch.state import RunFolder, RunState
from tui.batch.task_run import TaskRun
from tui.core.messages import Usage

_NO_ISOLATION = "Neither jj nor git keeps the tasks apart here: failed ones leave traces."


class Runner:
    """Runs one task file. `stop`, `pause`, `skip`, `redo` and `edit` may be called meanwhile."""

    def __init__(self, setup: RunSetup) -> None:
        self._setup = setup
        self._course = RunProgress(setup)
        self._book: RunStore | None = None
        self._running: int | None = None
        self._pausing = False
        self._skipped: set[int] = set()
        self._again = False

    async def run(self) -> RunState:
        """Work through the file; returns how every task stands. Goes on with an earlier run.

        Raises UsageError where it cannot begin (another runner, a changed file, a dirty tree),
        StorageError where its state cannot be saved.
        """
        setup, folder = self._setup, RunFolder(self._setup.target)
        self._course.began = setup.clock.monotonic()
        with folder.locked():
            self._book = book = await RunStore.opened(
                setup.task_file,
                folder,
                setup.isolation,
                clock=setup.clock,
                say=self._course.say,
                opened=self._announce,
            )
            if self._again:
                await book.take_up_failed()
            if setup.isolation.name == "none":
                self._course.say(_NO_ISOLATION)
            try:
                await self._work(book)
            finally:
                await self._course.group.leave()
        usage = sum((Usage.from_json(task.usage) for task in book.state.tasks), Usage())
        setup.publish(
            RunFinished(
                book.state.counts(),
                setup.clock.monotonic() - self._course.began,
                self._why_stop(book),
                usage.to_json(),
                book.spent_usd,
                tuple(msgspec.to_builtins(task) for task in book.state.tasks),
            )
        )
        return book.state

    def stop(self) -> None:
        """End the run now: the running task becomes interrupted. Again it changes nothing."""
        self._course.stopping.set()
        if self._course.group.agent is not None:
            self._course.group.agent.cancel()

    def pause(self, wanted: bool = True) -> None:
        """End the run after the task that is running; not `wanted` takes that back."""
        self._pausing = wanted

    def skip(self, index: int) -> None:
        """Leave out a task that has not begun; it stays pending for the next run."""
        self._skipped.add(index)

    def take_up_failed(self) -> None:
        """Run the failed tasks of the earlier run again. To be said before `run`."""
        self._again = True

    async def redo(self, index: int) -> None:
        """Take a failed or left out task up again: it is run when its turn comes."""
        self._skipped.discard(index)
        if self._book and self._book.task(index).status == "failed":
            await self._book.rest(replace(self._book.task(index), status="pending", attempts=0))

    async def edit(self, data: bytes) -> None:
        """Take over a task file that was edited on the screen; see `RunStore.edit`."""
        if self._book:
            await self._book.edit(data, running=self._running)

    @property
    def state(self) -> RunState | None:
        """How every task stands; None before the run has begun."""
        return self._book.state if self._book else None

    @property
    def running(self) -> int | None:
        """The task that is being worked on."""
        return self._running

    @property
    def skipped(self) -> frozenset[int]:
        """The tasks that are left out of this run."""
        return frozenset(self._skipped)

    @property
    def pausing(self) -> bool:
        """Whether the run ends after the task that is running."""
        return self._pausing

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._course.stopping.is_set()

    @property
    def reason(self) -> str:
        """Why the run ended before all was done; "" where it did not."""
        return self._why_stop(self._book) if self._book else ""

    @property
    def fatal_class(self) -> str | None:
        """The class of the error that ended the run, if one did."""
        return self._course.fatal_class

    @property
    def spent_usd(self) -> float:
        """What the run has cost so far, as far as it is known."""
        tasks = self._book.state.tasks if self._book else ()
        return sum(task.cost_usd or 0.0 for task in tasks)

    def _announce(self, state: RunState) -> None:
        setup, done = self._setup, state.counts().get("completed", 0)
        file, count = str(setup.task_file), len(state.tasks)
        setup.publish(RunStarted(file, count, done, setup.boot, setup.isolation.name))

    async def _work(self, book: RunStore) -> None:
        """Run what is to be run, in the order of the file."""
        while not self._why_stop(book):
            index = book.next_index(self._skipped)
            if index is None:
                return
            self._running = index
            try:
                await TaskRun(self._course, book, book.task(index)).run()
            finally:
                self._running = None

    def _why_stop(self, book: RunStore) -> str:
        """Why the run goes no further now; "" where it does, or nothing is left."""
        if self.stopping:
            return "interrupted"
        if not book.has_open_tasks:
            return ""
        if self._course.fatal:
            return self._course.fatal
        if book.next_index(self._skipped) is None:
            return "what is left was skipped"
        return "paused" if self._pausing else self._course.bound(book.spent_usd)
