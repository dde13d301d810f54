"""A run whose state and places the test sets, for pictures and counts of the tasks screen."""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec.structs import replace

from tui.app.options.arguments import Options
from tui.app.options.parser import parse
from tui.batch.events import EventSink
from tui.batch.placement import RunPlacement
from tui.batch.plan import RunPlan, plan
from tui.batch.state import RunState, Status, begin
from tui.core.clock import Clock
from tui.core.paths import Folders, folders
from tui.permissions.types import Approver
from tui.ui.tasks.run import TasksApp


class ScriptedRun:
    """A runner that does nothing until it is stopped; its own opener."""

    def __init__(self, state: RunState, placement: RunPlacement) -> None:
        self.state, self.placement = state, placement
        self.pausing = False
        self.skipped: frozenset[int] = frozenset()
        self.reason, self.fatal_class, self.elapsed_s = "", None, 0.0
        self._stopped = asyncio.Event()

    @property
    def runner(self) -> ScriptedRun:
        return self

    @property
    def running(self) -> tuple[int, ...]:
        return tuple(task.index for task in self.state.tasks if task.status == "running")

    @property
    def stopping(self) -> bool:
        return self._stopped.is_set()

    async def __call__(
        self,
        planned: RunPlan,
        options: Options,
        sink: EventSink,
        approver: Approver | None,
        clock: Clock,
        /,
    ) -> ScriptedRun:
        return self

    async def run(self) -> RunState:
        await self._stopped.wait()
        return self.state

    async def close(self) -> None:
        pass

    def session_of(self, index: int) -> None:
        pass

    def folders_of(self, index: int) -> Folders:
        return folders()

    def take_up_failed(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        self._stopped.set()

    def leave(self) -> None:
        self._stopped.set()

    def pause(self, wanted: bool = True) -> None:
        self.pausing = wanted

    def skip(self, index: int) -> None:
        self.skipped |= {index}

    async def redo(self, index: int) -> None:
        raise NotImplementedError

    async def edit(self, data: bytes) -> None:
        raise NotImplementedError

    def change(self, index: int, status: Status) -> None:
        """Give a task another state, and leave all others the same objects."""
        task = replace(self.state.tasks[index], status=status)
        self.state = self.state.with_task(task)


def scripted(
    root: Path, placement: RunPlacement, theme: str = "midnight", clock: Clock | None = None
) -> tuple[TasksApp, ScriptedRun]:
    """The app over a run of the folder's task file."""
    options = parse(["run", str(root / "TASKS.md"), "-C", str(root), "--practice"])
    planned = plan(options)
    state = begin(planned.task_file, planned.file, now="2026-11-21T09:00:00.000Z")
    run = ScriptedRun(state, placement)
    return TasksApp(planned, options, theme=theme, clock=clock, opener=run), run
