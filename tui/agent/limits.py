"""Limits that the person sets for a run, and what the run has used of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from tui.core.config import Price
from tui.core.errors import LimitReachedError
from tui.core.formatting import plural
from tui.core.messages import Usage


@dataclass(frozen=True, slots=True)
class Spent:
    """What answers have cost. They add up with `+`.

    `usd` is None as soon as one of them came from a model without a configured price.
    """

    requests: int = 0
    usage: Usage = field(default_factory=Usage)
    usd: float | None = 0.0

    @classmethod
    def on(cls, usage: Usage, price: Price | None) -> Spent:
        """One answer."""
        return cls(1, usage, cost(usage, price))

    def __add__(self, other: Spent) -> Spent:
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        return Spent(self.requests + other.requests, self.usage + other.usage, usd)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one run; None is no bound. `max_turns` counts requests to the model."""

    max_turns: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None

    def check(self, spent: Spent, *, priced: bool) -> None:
        """Raise LimitReachedError when the next request would go past a limit.

        `priced`: the price of the model to be asked is known. Without it no cost can be bounded.
        """
        if self.max_turns is not None and spent.requests >= self.max_turns:
            raise LimitReachedError(
                f"The limit of {plural(self.max_turns, 'request')} is reached.",
                hint="Raise --max-turns.",
            )
        tokens = spent.usage.total
        if self.max_tokens is not None and tokens >= self.max_tokens:
            raise LimitReachedError(
                f"The limit of {self.max_tokens:,} tokens is reached ({tokens:,} used).",
                hint="Raise --max-tokens.",
            )
        if self.max_cost is None:
            return
        if spent.usd is None or not priced:
            raise LimitReachedError(
                f"The limit of ${self.max_cost:.2f} cannot be kept: this model has no price.",
                hint="Put its price into [prices] of the configuration, or drop --max-cost.",
            )
        if spent.usd >= self.max_cost:
            raise LimitReachedError(
                f"The limit of ${self.max_cost:.2f} is reached (${spent.usd:.2f} spent).",
                hint="Raise --max-cost.",
            )


def cost(usage: Usage, price: Price | None) -> float | None:
    """USD of some usage; None where the configuration names no price for the model."""
    if price is None:
        return None
    return (
        usage.input_tokens * price.input
        + usage.output_tokens * price.output
        + usage.cache_creation_input_tokens * price.cache_write
        + usage.cache_read_input_tokens * price.cache_read
    ) / 1_000_000
