"""The waits between a task's attempts (A21 to A23), and the model of the next (A25 to A30).

These come on top of the retries inside one request (decision 7). Pure.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Final

CAP_S: Final = 60
SPREAD_S: Final = 3
SWITCHING: Final = frozenset({"rate_limit", "overloaded", "timeout"})
"""The classes that another model may help against (A26, decision 29)."""


def wait_s(attempt: int, error_class: str, rng: random.Random) -> int:
    """Seconds to wait after failed attempt number `attempt`, which counts from 1 (A21, A22)."""
    doubled = error_class in {"rate_limit", "overloaded"}
    base = 2 ** min(attempt, 16) * (2 if doubled else 1)
    return min(base + rng.randint(0, SPREAD_S), CAP_S)


def wait_line(seconds: int) -> str:
    """What is printed before waiting (A23)."""
    return f"  waiting {seconds}s before retry..."


@dataclass(frozen=True, slots=True)
class Models:
    """The model of the next attempt and the one to swap with; `first` is the task's own."""

    first: str
    fallback: str = ""
    swapped: bool = False

    @property
    def current(self) -> str:
        return self.fallback if self.swapped else self.first

    def after(self, error_class: str, *, last: bool) -> Models:
        """What the next attempt uses after a failure: never swapped behind the last attempt."""
        helps = bool(self.fallback) and not last and error_class in SWITCHING
        return replace(self, swapped=not self.swapped) if helps else self

    def restored(self) -> Models:
        """What the next task begins with (A29, decision 19)."""
        return replace(self, swapped=False)


def switch_line(old: str, new: str) -> str:
    """What is logged when the model is swapped (A27)."""
    return f"  failover: switching from {old} to {new}"
