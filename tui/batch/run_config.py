"""The parts that a run is made of."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from tui.agent.agent import Agent
from tui.batch.attempt import TaskAttempt
from tui.batch.events import BatchEvent
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
