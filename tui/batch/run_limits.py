"""What ends a run early: bounds that the person sets. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stops:
    """Bounds of a run; None is no bound. The cost is that of all its attempts, earlier ones
    included; failures and seconds count from the start of the program."""

    cost_usd: float | None = None
    failures_in_a_row: int | None = None
    seconds: float | None = None

    def reached(self, *, spent_usd: float | None, failures: int, elapsed_s: float) -> str:
        """Which bound is reached, as a reason to stop; "" for none."""
        if self.cost_usd is not None and (spent_usd or 0.0) >= self.cost_usd:
            return cost_reached(self.cost_usd)
        if self.failures_in_a_row is not None and failures >= self.failures_in_a_row:
            return f"{failures} task{'s' * (failures != 1)} failed in a row"
        if self.seconds is not None and elapsed_s >= self.seconds:
            return f"the limit of {_span(self.seconds)} is reached"
        return ""


def cost_reached(usd: float) -> str:
    """The reason for a run that has cost as much as it may."""
    return f"the limit of ${usd:.2f} is reached"


def _span(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 60 else f"{seconds:.0f} seconds"
