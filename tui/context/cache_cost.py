"""Whether it pays to prune a cached conversation. Pure.

A pruned result is missing from every later request, where it would have been read from the
cache; in return everything after it is written to the cache once more. If the cache has expired,
that is written anyway, and pruning is free. How many requests will follow is not known. So
pruning waits until reading the old results has cost PATIENCE times as much as writing the rest
again would, and is not done if a compaction is about to remove them anyway.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

WRITE: Final = 1.25
READ: Final = 0.1
"""The price of a token written to the cache, or read from it; a token that is just sent is 1. It
is assumed where no price is known."""
LIFE_S: Final = 300.0
LONG_LIFE_S: Final = 3600.0
"""Seconds that the cache holds what nobody reads, by the life that was asked for."""
PATIENCE: Final = 2.0
"""Found on one scripted session, which it makes cheaper than no pruning; on two others it is about
even: see the context benchmark."""


@dataclass(frozen=True, slots=True)
class PruneFigures:
    """In tokens: `saved` by each request, `rewritten` once, because it comes after what goes.

    `requests` is how many are expected; `idle_s` how long ago the last was, None for never;
    `paid` what it has cost so far, at the price of plain input, to read again what is due. `write`
    and `read` are prices against plain input, `life_s` is how long the cache holds.
    """

    saved: int
    rewritten: int
    requests: int
    idle_s: float | None = None
    paid: float = 0.0
    write: float = WRITE
    read: float = READ
    life_s: float = LIFE_S

    @property
    def cold(self) -> bool:
        """Whether the cache has expired: all is written again anyway."""
        return self.idle_s is None or self.idle_s >= self.life_s

    @property
    def price(self) -> float:
        """What pruning now costs, in tokens at the price of plain input."""
        return self.rewritten * (self.write - self.read)

    @property
    def gain(self) -> float:
        """What pruning now is worth, in tokens at the price of plain input."""
        return self.saved * self.read * self.requests - self.price


def expected(answers: int, tokens: int, room: float) -> int:
    """How many requests are to be expected, after this many answers that brought that many tokens.

    As many again, but no more than fill `room`, the tokens up to a compaction.
    """
    if not answers or tokens <= 0:
        return 0
    return max(0, min(answers, int(room / (tokens / answers))))


@dataclass(frozen=True, slots=True)
class Verdict:
    pays: bool
    reason: str


def verdict(figures: PruneFigures) -> Verdict:
    """Whether to prune now, with the figures in words."""
    if not figures.saved:
        return Verdict(False, "this saves nothing")
    sums = (
        f"saves {figures.saved:,} cached tokens in each of about {figures.requests} requests, "
        f"{figures.rewritten:,} would be written again"
    )
    if figures.cold:
        return Verdict(True, f"the cache has expired; {sums}")
    if figures.gain > 0 and figures.paid >= PATIENCE * figures.price:
        return Verdict(True, f"this pays off ({figures.gain:+,.0f}); {sums}")
    return Verdict(False, f"this doesn't pay off yet ({figures.gain:+,.0f}); {sums}")
