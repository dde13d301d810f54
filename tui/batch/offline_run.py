"""A run as it stands on the disk: looked at, and changed while nobody works on it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec.structs import replace

from tui.batch.run_store import Book
from tui.batch.state import RunFolder, RunState
from tui.core.clock import Clock
from tui.core.errors import UsageError


class StandingRun:
    """The run of a folder. `state` is what `refresh` last found; None where there is no run.

    Changes raise UsageError while another program works on it, StorageError where they cannot
    be saved.
    """

    live = False
    pausing = False
    skipped: frozenset[int] = frozenset()

    def __init__(self, target: Path, clock: Clock) -> None:
        self._folder = RunFolder(target)
        self._clock = clock
        self.state: RunState | None = None

    @property
    def running(self) -> int | None:
        """The task that another program works on, or worked on when it was killed."""
        tasks = self.state.tasks if self.state else ()
        return next((task.index for task in tasks if task.status == "running"), None)

    async def refresh(self) -> None:
        """Read the state again. Raises UsageError for a damaged one."""
        self.state = await asyncio.to_thread(self._folder.load)

    def pause(self) -> None:
        """There is nothing to pause: whoever runs it has its own screen."""

    def skip(self, index: int) -> None:
        """As for `pause`."""

    async def redo(self, index: int) -> None:
        """Make a failed task pending: the next run takes it up."""
        with self._folder.locked():
            book = await self._book()
            task = book.task(index)
            if task.status == "failed":
                await book.rest(replace(task, status="pending", attempts=0))
            self.state = book.state

    async def edit(self, data: bytes) -> None:
        """Take over an edited task file; the run goes on with it."""
        with self._folder.locked():
            book = await self._book()
            await book.edit(data, running=None)
            self.state = book.state

    async def _book(self) -> Book:
        await self.refresh()
        if self.state is None:
            raise UsageError("There is no run here.", hint="holdfast run TASKS.md begins one.")
        path = Path(self.state.task_file)
        return Book(path, self._folder, self.state, self._clock, lambda _: None)
