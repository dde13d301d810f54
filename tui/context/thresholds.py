"""When the context is full: the threshold, and the word some turns before. Pure."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

SOON: Final = 3
"""So many turns before a compaction it is told."""


def over(tokens: int, window: int, threshold: float) -> bool:
    """Whether a context is strictly over the threshold (A33): 80.0 % of it is not over 80 %."""
    return tokens > Fraction(str(threshold)) * window


def percent(tokens: int, window: int) -> str:
    """How full, with one digit: `80.1`."""
    return f"{100 * tokens / max(1, window):.1f}"


def soon(forecast: int | None) -> bool:
    """Whether a compaction is near, by the forecast of the ledger in turns."""
    return forecast is not None and 0 < forecast <= SOON
