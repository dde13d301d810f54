"""The events of a run, as facts. `to_json` gives the lines of `run --json`.

The events of the agents pass through with the index of their task, which counts from 0.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from msgspec import field

from tui.batch.state import Status, TaskState
from tui.core.dataclass import dataclass
from tui.core.facts import Fact, Notice, WireFact


class RunStarted(WireFact, frozen=True, tag="run_started"):
    """`boot` is the boot file as shown, "" without one; `isolation` is git, jj, none or batch (for
    questions in a message batch). `at_once` tasks are worked on at a time. `hooks`: the project's
    git hooks run when a task is committed; `sign`: the commit is signed."""

    task_file: str
    tasks: int
    done: int
    boot: str
    isolation: str
    at_once: int = 1
    hooks: bool = False
    sign: bool = False


class TaskStarted(WireFact, frozen=True, tag="task_started"):
    """An attempt begins; `attempt` counts from 1. `host` is the machine, "" for this one."""

    task: int
    group: str
    text: str
    attempt: int
    session_id: str
    host: str = ""


@dataclass(frozen=True, slots=True)
class FromAgent:
    """An event that the agent of a task published."""

    task: int
    event: Fact

    def to_json(self) -> dict[str, Any]:
        return {**self.event.to_json(), "task": self.task}

    def to_lines(self) -> list[dict[str, Any]]:
        return [{**line, "task": self.task} for line in self.event.to_lines()]


class RetryDelayed(WireFact, frozen=True, tag="waiting"):
    """The next attempt begins in `seconds`."""

    task: int
    seconds: int
    reason: str


class TaskFinished(WireFact, frozen=True, tag="task_finished"):
    """A task came to rest. `change` is its commit, or where a failed attempt is kept; `unchanged`:
    it is completed, and no file is different."""

    task: int
    status: Status
    change: str | None
    attempts: int
    error_class: str | None
    message: str
    seconds: float
    usage: dict[str, int]
    cost_usd: float | None
    unchanged: bool = False


class TaskMerged(WireFact, frozen=True, tag="task_merged"):
    """A task that was done in a worktree is in the branch, as `completed`, or is `unmerged` still:
    `message` says why, and what to do."""

    task: int
    status: Status
    change: str | None
    message: str


class RunFinished(WireFact, frozen=True, tag="run_finished"):
    """The run is over. `reason` says why tasks are left, "" where none is; `tasks` are as in
    `run --status --json`."""

    counts: dict[Status, int]
    seconds: float
    reason: str = ""
    usage: dict[str, int] = field(default_factory=dict[str, int])
    cost_usd: float | None = None
    tasks: tuple[TaskState, ...] = ()


def finished(task: TaskState) -> TaskFinished:
    """The event that a task has come to rest."""
    return TaskFinished(
        task.index,
        task.status,
        task.change,
        task.attempts,
        task.error_class,
        task.message or "",
        task.seconds,
        task.usage,
        task.cost_usd,
        task.unchanged,
    )


class EventSink(Protocol):
    """Shows the events of a run, which may come from any thread."""

    def show(self, event: BatchEvent) -> None: ...


BatchEvent: TypeAlias = (
    RunStarted
    | TaskStarted
    | FromAgent
    | RetryDelayed
    | Notice
    | TaskFinished
    | TaskMerged
    | RunFinished
)
"""A `Notice` is about the run: a model swapped, a session begun afresh, a warning."""
