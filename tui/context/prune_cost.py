"""Whether pruning pays (decision 26). Pure.

A pruned result is missing from every later request, where it would have been read from the
cache; in turn everything behind it is written to the cache once more. Where the cache has expired
it is written anyway, and pruning is free. How many requests will follow nobody knows, so it is done
as by one who rents until he has paid the price of buying, and since the next pause makes it free,
pays it PATIENCE times over: once reading what is due has cost so much more than writing the rest
again would, and as long as no compaction is about to take all of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

WRITE: Final = 1.25
READ: Final = 0.1
"""What a token written to the cache, or read from it, costs against one that is just sent."""
LIFE_S: Final = 300.0
"""So long the cache holds what nobody reads: the life that our breakpoints ask for."""
PATIENCE: Final = 2.0
"""Found on one scripted session, which it makes cheaper than no pruning; on two others it is about
even: see the context benchmark."""


@dataclass(frozen=True, slots=True)
class Figures:
    """In tokens: `saved` by each request, `rewritten` once, because it stands behind what goes.

    `requests` is how many are expected; `idle_s` how long ago the last was, None for never;
    `paid` what it has cost so far, at the price of plain input, to read again what is due.
    """

    saved: int
    rewritten: int
    requests: int
    idle_s: float | None = None
    paid: float = 0.0

    @property
    def price(self) -> float:
        """What pruning now costs, in tokens at the price of plain input."""
        return self.rewritten * (WRITE - READ)

    @property
    def gain(self) -> float:
        """What pruning now is worth, in tokens at the price of plain input."""
        return self.saved * READ * self.requests - self.price


def expected(answers: int, tokens: int, room: float) -> int:
    """How many requests are to be expected, after so many answers that brought so many tokens.

    As many again, but no more than fill `room`, the tokens up to a compaction.
    """
    if not answers or tokens <= 0:
        return 0
    return max(0, min(answers, int(room / (tokens / answers))))


@dataclass(frozen=True, slots=True)
class Verdict:
    pays: bool
    reason: str


def verdict(figures: Figures) -> Verdict:
    """Whether to prune now, with the figures in words."""
    if not figures.saved:
        return Verdict(False, "nothing would be saved")
    sums = (
        f"saves {figures.saved:,} cached tokens in each of about {figures.requests} requests, "
        f"{figures.rewritten:,} would be written again"
    )
    if figures.idle_s is None or figures.idle_s >= LIFE_S:
        return Verdict(True, f"the cache has expired; {sums}")
    if figures.gain > 0 and figures.paid >= PATIENCE * figures.price:
        return Verdict(True, f"it pays ({figures.gain:+,.0f}); {sums}")
    return Verdict(False, f"it does not pay yet ({figures.gain:+,.0f}); {sums}")
