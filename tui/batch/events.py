"""What happens in a run, as facts. `to_json` gives the lines of `run --json`.

The events of the agents pass through with the index of their task, which counts from 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeAlias

from tui.agent import events as agent_events
from tui.agent.events import Event
from tui.batch.state import Status


@dataclass(frozen=True, slots=True)
class RunStarted:
    """`boot` is the boot file as shown, "" without one; `isolation` is git, jj or none."""

    type: ClassVar[str] = "run_started"
    task_file: str
    tasks: int
    done: int
    boot: str
    isolation: str


@dataclass(frozen=True, slots=True)
class TaskStarted:
    """An attempt begins; `attempt` counts from 1."""

    type: ClassVar[str] = "task_started"
    task: int
    group: str
    text: str
    attempt: int
    session_id: str


@dataclass(frozen=True, slots=True)
class FromAgent:
    """What the agent of a task published."""

    task: int
    event: Event


@dataclass(frozen=True, slots=True)
class RetryDelayed:
    """The next attempt begins in `seconds`."""

    type: ClassVar[str] = "waiting"
    task: int
    seconds: int
    reason: str


@dataclass(frozen=True, slots=True)
class RunNotice:
    """A line about the run for the person: a model swapped, a session begun afresh, a warning."""

    type: ClassVar[str] = "notice"
    text: str


@dataclass(frozen=True, slots=True)
class TaskFinished:
    """A task came to rest. `change` is its commit, or where a failed attempt is kept."""

    type: ClassVar[str] = "task_finished"
    task: int
    status: Status
    change: str | None
    attempts: int
    error_class: str | None
    message: str
    seconds: float
    usage: dict[str, int]
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The run is over. `reason` says why tasks are left, "" where none is; `tasks` are as in
    `run --status --json`."""

    type: ClassVar[str] = "run_finished"
    counts: dict[Status, int]
    seconds: float
    reason: str = ""
    usage: dict[str, int] = field(default_factory=dict[str, int])
    cost_usd: float | None = None
    tasks: tuple[dict[str, Any], ...] = ()


BatchEvent: TypeAlias = (
    RunStarted | TaskStarted | FromAgent | RetryDelayed | RunNotice | TaskFinished | RunFinished
)


def to_json(event: BatchEvent) -> dict[str, Any]:
    """An event as one JSON object."""
    if isinstance(event, FromAgent):
        return {**agent_events.to_json(event.event), "task": event.task}
    return {"type": event.type} | {f.name: getattr(event, f.name) for f in fields(event)}
