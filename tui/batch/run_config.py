"""The parts that a run is made of, and its progress from one task to the next."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tui.agent.agent import Agent
from tui.batch.attempt import TaskAttempt
from tui.batch.events import BatchEvent, RunNotice
from tui.batch.group_session import GroupSession
from tui.batch.isolation import Isolation
from tui.batch.run_policy import ModelPair, RunLimits
from tui.core.clock import Clock
from tui.core.config import Batch
from tui.provider.base import ModelInfo


@dataclass(frozen=True, slots=True)
class RunSetup:
    """What a run is made of. `task_file` and `target` are real paths.

    `open_agent` makes an agent on a new session that asks the named model; `ask` puts one
    question to the small model and returns its answer with what it cost, or raises HoldfastError.
    """

    task_file: Path
    target: Path
    isolation: Isolation
    open_agent: Callable[[str], Awaitable[Agent]]
    ask: Callable[[str], Awaitable[TaskAttempt]]
    model_info: Callable[[str], ModelInfo]
    models: ModelPair
    clock: Clock
    publish: Callable[[BatchEvent], None]
    batch: Batch = field(default_factory=Batch)
    threshold: float = 0.8
    stops: RunLimits = field(default_factory=RunLimits)
    boot: str = ""
    rng: random.Random = field(default_factory=random.Random)


class RunProgress:
    """What a run carries from one task to the next.

    `summary` is of the group's last session, for the next prompt; `failures` counts those in a
    row; `fatal` says why the run cannot go on, and `fatal_class` the class of that error.
    """

    def __init__(self, setup: RunSetup) -> None:
        self.setup = setup
        self.models = setup.models
        self.group = GroupSession(lambda: setup.open_agent(self.models.current), self.say)
        self.summary: str | None = None
        self.failures = 0
        self.fatal = ""
        self.fatal_class: str | None = None
        self.began = setup.clock.monotonic()
        self.stopping = asyncio.Event()

    def say(self, text: str) -> None:
        """A line for the person."""
        self.setup.publish(RunNotice(text))

    def bound(self, spent_usd: float | None) -> str:
        """Which of the person's bounds is reached; "" for none."""
        return self.setup.stops.reached(
            spent_usd=spent_usd,
            failures=self.failures,
            elapsed_s=self.setup.clock.monotonic() - self.began,
        )

    async def or_stopped(self, work: asyncio.Future[Any]) -> None:
        """Wait for something, or until the run is stopped; it is then cancelled."""
        stopping = asyncio.ensure_future(self.stopping.wait())
        try:
            await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            if not work.done():
                work.cancel()
                await asyncio.wait({work})
