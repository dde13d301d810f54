"""Limits that the person sets for a run, and what the run has used of them."""

from __future__ import annotations

from dataclasses import dataclass

from tui.config import Price
from tui.errors import LimitReachedError
from tui.messages import Usage


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one run; None is no bound. `max_turns` counts requests to the model."""

    max_turns: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None

    def check(self, *, turns: int, usage: Usage, cost_usd: float | None) -> None:
        """Raise LimitReachedError when the next request would go past a limit."""
        if self.max_turns is not None and turns >= self.max_turns:
            raise LimitReachedError(
                f"The limit of {self.max_turns} requests is reached.", hint="Raise --max-turns."
            )
        spent = usage.prompt_tokens + usage.output_tokens
        if self.max_tokens is not None and spent >= self.max_tokens:
            raise LimitReachedError(
                f"The limit of {self.max_tokens:,} tokens is reached ({spent:,} used).",
                hint="Raise --max-tokens.",
            )
        if self.max_cost is not None and cost_usd is not None and cost_usd >= self.max_cost:
            raise LimitReachedError(
                f"The limit of ${self.max_cost:.2f} is reached (${cost_usd:.2f} spent).",
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
