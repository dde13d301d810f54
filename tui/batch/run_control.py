"""A run under the control of a front end, wherever its tasks are worked on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from tui.batch.composition import RunComposition
from tui.batch.events import EventSink
from tui.permissions.gate import RulesOnly

if TYPE_CHECKING:
    from tui.app.options.arguments import Options
    from tui.batch.placement import RunPlacement
    from tui.batch.plan import RunPlan
    from tui.batch.state import RunState
    from tui.core.clock import Clock
    from tui.core.paths import Folders
    from tui.permissions.types import Approver
    from tui.session.records import Record


class GrowingSession(Protocol):
    """A session that a process elsewhere writes. `records` are those that were read so far; `begun`
    counts how often they began afresh."""

    records: list[Record]
    begun: int

    @property
    def is_behind(self) -> bool:
        """True if there may be more to read."""
        ...

    def read(self) -> None:
        """Read what came. Blocks; raises HoldfastError."""
        ...


class ControlledRunner(Protocol):
    """Works through a task file. All but `take_up_failed` may be called meanwhile.

    `pausing`: the run ends after the tasks that are being worked on.
    """

    pausing: bool

    async def run(self) -> RunState:
        """Work through the file; returns the state of every task. Raises HoldfastError."""
        ...

    @property
    def state(self) -> RunState | None:
        """The state of every task; None before the run has begun."""
        ...

    @property
    def running(self) -> Sequence[int]:
        """The tasks that are being worked on."""
        ...

    @property
    def skipped(self) -> frozenset[int]:
        """The tasks that are left out of this run."""
        ...

    @property
    def stopping(self) -> bool:
        """True if it was stopped, or left."""
        ...

    @property
    def reason(self) -> str:
        """The reason why the run ended before all was done; "" where it did not."""
        ...

    @property
    def fatal_class(self) -> str | None:
        """The class of the error that the run can't continue after."""
        ...

    @property
    def elapsed_s(self) -> float:
        """The seconds since the run began."""
        ...

    @property
    def placement(self) -> RunPlacement | None:
        """The places of the tasks on machines; None where they are worked on in this process."""
        ...

    def session_of(self, index: int) -> GrowingSession | None:
        """Return the session of a task that isn't one of this machine; None for all others."""
        ...

    def folders_of(self, index: int) -> Folders:
        """Return the folders of this machine that have the session of a task, if any does."""
        ...

    def take_up_failed(self) -> None:
        """Run the failed tasks of the earlier run again. To be called before `run`."""
        ...

    def stop(self) -> None:
        """End the run now."""
        ...

    def leave(self) -> None:
        """End the run now, and let be what can go on, for a terminal that is lost."""
        ...

    def pause(self, wanted: bool = True) -> None:
        """End the run after the tasks that are being worked on; not `wanted` takes that back."""
        ...

    def skip(self, index: int) -> None:
        """Leave out a task that has not begun. Raises UsageError where it can't be."""
        ...

    async def redo(self, index: int) -> None:
        """Take a failed or left out task up again."""
        ...

    async def edit(self, data: bytes) -> None:
        """Take over a task file that was edited on the screen. Raises UsageError."""
        ...


class OpenedRun(Protocol):
    """A runner with what it uses, which `close` lets go of."""

    @property
    def runner(self) -> ControlledRunner: ...

    async def close(self) -> None: ...


class RunOpener(Protocol):
    """Puts a run together, as `open_run` does."""

    async def __call__(
        self,
        planned: RunPlan,
        options: Options,
        sink: EventSink,
        approver: Approver | None,
        clock: Clock,
        /,
    ) -> OpenedRun: ...


async def open_run(
    planned: RunPlan, options: Options, sink: EventSink, approver: Approver | None, clock: Clock
) -> OpenedRun:
    """Put a run together: the one place that decides where its tasks are worked on. The `approver`
    asks the person what rules leave open; None where nobody can be asked. Raises
    HoldfastError."""
    if options.batch.on:
        from tui.batch.cluster.command import make_runner  # noqa: PLC0415 - seldom needed

        return await make_runner(planned, options, sink, clock, approver)
    return RunComposition(planned, sink.show, approver=approver or RulesOnly(), clock=clock)
