"""The parts of a run, and what its tasks share while it runs."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from tui.agent.agent import Agent
from tui.batch.attempt import TaskAttempt
from tui.batch.events import BatchEvent
from tui.batch.isolation import Isolation
from tui.batch.run_policy import ModelPair, RunLimits, cost_reached
from tui.batch.run_store import RunStore
from tui.batch.task_worktrees import TaskWorktrees
from tui.core.clock import Clock
from tui.core.config import Batch, Price
from tui.core.dataclass import dataclass, field
from tui.core.facts import Notice
from tui.core.paths import Folders, folders
from tui.provider.base import ModelInfo


class RunAgents(Protocol):
    """Makes the agents of a run, and asks its small model."""

    async def open_agent(self, model: str, folder: Path, session: Path | None) -> Agent:
        """Make an agent that asks the named model and works in a folder, on a session in a file or,
        without one, on a new session."""
        ...

    async def ask(self, question: str) -> TaskAttempt:
        """Put a question to the small model; return its answer with what it cost. Raises
        HoldfastError."""
        ...

    def model_info(self, name: str) -> ModelInfo:
        """Return what is known about a model."""
        ...


@dataclass(frozen=True, slots=True)
class RunSetup:
    """The parts of a run. `task_file` and `target` are real paths.

    `recorded`: the tasks are prompts of recorded sessions, `at_once` at a time, sent as they were,
    and never again with a hint or a summary.
    """

    task_file: Path
    target: Path
    isolation: Isolation
    worktrees: TaskWorktrees
    agents: RunAgents
    models: ModelPair
    clock: Clock
    publish: Callable[[BatchEvent], None]
    batch: Batch = field(default_factory=Batch)
    threshold: float = 0.8
    stops: RunLimits = field(default_factory=RunLimits)
    boot: str = ""
    at_once: int = 1
    recorded: bool = False
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    rng: random.Random = field(default_factory=random.Random)
    folders: Folders = field(default_factory=folders)


class RunContext:
    """The state that decides if a run continues, and its cost.

    `failures` are those in a row; `fatal` is the reason why the run cannot continue, and
    `fatal_class` the class of that error. `leaving`: it ends at once, and running tasks stay as
    they are for the next run. `book` holds the state of every task, once the run has begun.
    """

    def __init__(
        self, setup: RunSetup, cancel_others: Callable[[int], None] = lambda _: None
    ) -> None:
        """`cancel_others` stops what runs beside a task."""
        self.setup = setup
        self.book: RunStore | None = None
        self.began = setup.clock.monotonic()
        self.failures = 0
        self.fatal = ""
        self.fatal_class: str | None = None
        self.leaving = False
        self._cancel_others = cancel_others
        self._stop = asyncio.Event()
        self._unpaid: dict[int, float] = {}

    def stop(self) -> None:
        """Begin no attempt any more."""
        self._stop.set()

    @property
    def stopping(self) -> bool:
        """True once `stop` was called."""
        return self._stop.is_set()

    @property
    def ending(self) -> bool:
        """True if no further attempt is to begin."""
        return self.stopping or bool(self.fatal)

    @property
    def parallel(self) -> bool:
        """True if several tasks are worked on at a time."""
        return self.setup.at_once > 1

    @property
    def elapsed_s(self) -> float:
        """The seconds since the run began."""
        return self.setup.clock.monotonic() - self.began

    @property
    def spent_usd(self) -> float:
        """The cost of the run so far, as far as it is known."""
        tasks = self.book.state.tasks if self.book else ()
        return sum(task.cost_usd or 0.0 for task in tasks) + sum(self._unpaid.values())

    def paid(self, index: int, usd: float) -> None:
        """A running task has paid for a request. Where the run's limit of cost is reached by that,
        the other running tasks end, too."""
        self._unpaid[index] = self._unpaid.get(index, 0.0) + usd
        most = self.setup.stops.cost_usd
        if self.parallel and most is not None and not self.fatal and self.spent_usd >= most:
            self.fatal = cost_reached(most)
            self._cancel_others(index)

    def counted(self, index: int) -> None:
        """Make what a task has paid part of its state from now on."""
        self._unpaid.pop(index, None)

    def say(self, text: str) -> None:
        """A line for the person."""
        self.setup.publish(Notice(text))

    def reached_limit(self, book: RunStore) -> str:
        """Name the limit of the person's that is reached; "" for none."""
        return self.setup.stops.reached(
            spent_usd=book.spent_usd, failures=self.failures, elapsed_s=self.elapsed_s
        )

    async def or_stopped(self, work: asyncio.Future[Any]) -> None:
        """Wait for something, or until the run is stopped; it is then cancelled."""
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            if not work.done():
                work.cancel()
                await asyncio.wait({work})
