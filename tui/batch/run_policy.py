"""The rules for retries after failed attempts, and for ending a run early. Pure.

The class of a failure decides what to do; then the run waits, and may use another model. This comes
on top of the retries inside one request. The person's limits end a run early.
"""

from __future__ import annotations

import random
from typing import Final, Literal, TypeAlias, cast

from tui.batch.attempt import TaskAttempt
from tui.core.dataclass import dataclass, replace
from tui.core.errors import ErrorClass
from tui.provider.task_error_class import TASK_CLASS, TaskClass, classify_text

Answer: TypeAlias = Literal["give_up", "stop_run", "go_on", "summarise", "analyse"]
"""`go_on` in the same session, with the work done so far; `summarise` it for a fresh session;
`analyse` asks the small model whether to begin the task again. `stop_run`: every other task would
fail as well."""


def class_of(made: TaskAttempt) -> TaskClass:
    """The kind of failure of an attempt: by its error class, else by the text of the error."""
    kind = TASK_CLASS.get(cast("ErrorClass", made.error_class), "unknown")
    return classify_text(made.message) if made.error_class in {None, "unknown"} else kind


def answer_to(kind: TaskClass, *, met_before: bool, last: bool) -> Answer:
    """Choose the answer to a failure. `met_before`: the task has failed this way already; `last`:
    it has no attempt left."""
    match kind:
        case "auth":
            return "stop_run"
        case _ if last:
            return "give_up"
        case "timeout" | "context_overflow" if met_before:
            return "give_up"
        case "context_overflow":
            return "summarise"
        case "unknown":
            return "analyse"
        case "rate_limit" | "network" | "timeout":
            return "go_on"


CAP_S: Final = 60
SPREAD_S: Final = 3
SWITCHING: Final = frozenset({"rate_limit", "overloaded", "timeout"})
"""The error classes that may not occur with another model."""


def wait_s(attempt: int, error_class: str, rng: random.Random) -> int:
    """Seconds to wait after failed attempt number `attempt`, which counts from 1."""
    doubled = error_class in {"rate_limit", "overloaded"}
    base = 2 ** min(attempt, 16) * (2 if doubled else 1)
    return min(base + rng.randint(0, SPREAD_S), CAP_S)


def wait_line(seconds: int) -> str:
    """The line that is printed before waiting."""
    return f"  waiting {seconds}s before retry..."


@dataclass(frozen=True, slots=True)
class ModelPair:
    """The model of the next attempt and the one to swap with; `first` is the task's own."""

    first: str
    fallback: str = ""
    swapped: bool = False

    @property
    def current(self) -> str:
        return self.fallback if self.swapped else self.first

    def after(self, error_class: str, *, last: bool) -> ModelPair:
        """The models of the next attempt after a failure; not swapped after the last attempt."""
        helps = bool(self.fallback) and not last and error_class in SWITCHING
        return replace(self, swapped=not self.swapped) if helps else self

    def restored(self) -> ModelPair:
        """The models of the next task: it begins with the first one."""
        return replace(self, swapped=False)


def switch_line(old: str, new: str) -> str:
    """The line that is logged when the model is swapped."""
    return f"  failover: switching from {old} to {new}"


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The person's limits of a run; None is no limit. The cost is that of all its attempts, those
    of earlier programs included; failures and seconds count from the start of the program."""

    cost_usd: float | None = None
    failures_in_a_row: int | None = None
    seconds: float | None = None

    def reached(self, *, spent_usd: float | None, failures: int, elapsed_s: float) -> str:
        """Name the limit that is reached, as a reason to stop; "" for none."""
        if self.cost_usd is not None and (spent_usd or 0.0) >= self.cost_usd:
            return cost_reached(self.cost_usd)
        if self.failures_in_a_row is not None and failures >= self.failures_in_a_row:
            return f"{failures} task{'s' * (failures != 1)} failed in a row"
        if self.seconds is not None and elapsed_s >= self.seconds:
            return f"reached the limit of {_span(self.seconds)}"
        return ""


def cost_reached(usd: float) -> str:
    """The reason for a run that has cost as much as it may."""
    return f"reached the limit of ${usd:.2f}"


def _span(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 60 else f"{seconds:.0f} seconds"
