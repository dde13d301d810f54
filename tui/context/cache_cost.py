"""The decision whether pruning a cached conversation pays off. Pure.

A pruned result is missing from every later request, where it would have been read from the cache;
in return, everything after it is written to the cache once more. If the cache has expired, that
happens anyway and pruning is free. How many requests will follow is not known. So pruning waits
until reading the old results has cost PATIENCE times as much as rewriting the rest would, and is
skipped if a compaction is about to remove them anyway.
"""

from __future__ import annotations

from typing import Final

from tui.core.dataclass import dataclass

WRITE: Final = 1.25
READ: Final = 0.1
"""Prices of a token written to and read from the cache, where a token that is simply sent costs 1.
Assumed where no price is known."""
LIFE_S: Final = 300.0
LONG_LIFE_S: Final = 3600.0
"""Seconds that the cache keeps unread content, by the life that was asked for."""
PATIENCE: Final = 2.0
"""Chosen on one scripted session, where it is cheaper than no pruning; on two others it is about
even: see the context benchmark."""


@dataclass(frozen=True, slots=True)
class PruneFigures:
    """The figures that decide about pruning, in tokens.

    `saved` is saved by each request; `rewritten` is written once more because it comes after what
    is pruned. `requests` is the expected number of requests. `idle_s` is the time since the last
    one, None if there was none. `paid` is the cost so far, at the price of plain input, of
    rereading what is due. `write` and `read` are prices relative to plain input; `life_s` is how
    long the cache lives.
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
        """True if the cache has expired, so that everything is written again anyway."""
        return self.idle_s is None or self.idle_s >= self.life_s

    @property
    def price(self) -> float:
        """The cost of pruning now, in tokens at the price of plain input."""
        return self.rewritten * (self.write - self.read)

    @property
    def gain(self) -> float:
        """The net gain of pruning now, in tokens at the price of plain input."""
        return self.saved * self.read * self.requests - self.price


def expected(answers: int, tokens: int, room: float) -> int:
    """Estimate how many requests are still to come, given the answers so far and their tokens.

    The estimate is as many again, but no more than fit into `room`, the tokens left before a
    compaction.
    """
    if not answers or tokens <= 0:
        return 0
    return max(0, min(answers, int(room / (tokens / answers))))


@dataclass(frozen=True, slots=True)
class Verdict:
    pays: bool
    reason: str


def verdict(figures: PruneFigures) -> Verdict:
    """Decide whether to prune now, and put the figures into words."""
    if not figures.saved:
        return Verdict(False, "this saves nothing")
    sums = (
        f"saves {figures.saved:,} cached tokens in each of about {figures.requests} requests, "
        f"{figures.rewritten:,} would be cached again"
    )
    if figures.cold:
        return Verdict(True, f"the cache has expired; {sums}")
    if figures.gain > 0 and figures.paid >= PATIENCE * figures.price:
        return Verdict(True, f"this pays off ({figures.gain:+,.0f}); {sums}")
    return Verdict(False, f"this doesn't pay off yet ({figures.gain:+,.0f}); {sums}")
