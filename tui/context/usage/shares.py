"""The shares that parts of a request have of its bill, for a list of parts that mostly grows. Pure.

The tokens of a request are, in its order, read from the cache, then written to it, then new. Each
part takes the tokens from its place on, in proportion to its weight. What the requests have cost is
kept as steps in the row of parts, so that one more request costs the same however long the row is;
it is told when a part leaves, or at the end.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Generic, TypeVar

from tui.context.usage.amounts import Amount, TokenRates
from tui.core.messages import Usage

_Owner = TypeVar("_Owner")


class SharedCosts(Generic[_Owner]):
    """A row of parts, each with a weight and an owner."""

    def __init__(self) -> None:
        self._owners: list[_Owner] = []
        self._ends: list[float] = [0.0]  # sums of weights up to each part
        self._own: list[Amount] = []  # what a part had beside the steps
        self._steps: list[Amount] = [Amount()]  # for a unit of weight; their sum is nothing

    def __len__(self) -> int:
        return len(self._owners)

    @property
    def weight(self) -> float:
        """The weight of all parts."""
        return self._ends[-1]

    def append(self, owner: _Owner, weight: float) -> None:
        """Add a part at the end, which takes part in the requests that follow."""
        self._owners.append(owner)
        self._ends.append(self._ends[-1] + weight)
        self._own.append(Amount())
        self._steps.append(Amount())

    def keep(self, count: int) -> Sequence[tuple[_Owner, Amount]]:
        """Keep the first parts only; return the owners of the others with what these have cost."""
        left: list[tuple[_Owner, Amount]] = []
        level = Amount()  # from the end, where nothing is left
        for place in range(len(self._owners) - 1, count - 1, -1):
            level.add(self._steps[place + 1], -1.0)
            cost = self._own[place]
            cost.add(level, self._ends[place + 1] - self._ends[place])
            if cost.tokens > 0:
                left.append((self._owners[place], cost))
        del self._owners[count:], self._ends[count + 1 :], self._own[count:]
        del self._steps[count + 1 :]
        self._steps[count].add(level, -1.0)
        return left

    def charge(self, usage: Usage, rates: TokenRates, before: float) -> None:
        """Share the input of a request among the parts, which begin after `before` tokens of it."""
        scale = (usage.prompt_tokens - before) / self.weight if self.weight else 0.0
        if scale <= 0:
            return
        read = usage.cache_read_input_tokens
        ends = (read, read + usage.cache_creation_input_tokens, usage.prompt_tokens)
        places = [0.0, *(max(0.0, min(self.weight, (end - before) / scale)) for end in ends)]
        places[-1] = self.weight
        for (start, end), rate in zip(
            pairwise(places), (rates.read, rates.written, rates.fresh), strict=True
        ):
            if end > start:
                self._share(start, end, rate, scale)

    def _share(self, start: float, end: float, rate: Amount, scale: float) -> None:
        """Charge what lies between two places at a rate for each token."""
        ends, many = self._ends, len(self._owners)
        first = min(bisect_right(ends, start) - 1, many - 1)
        last = min(bisect_right(ends, end) - 1, many)
        if start > ends[first]:  # only the rest of this part
            stop = min(end, ends[first + 1])
            self._own[first].add(rate, (stop - start) * scale)
            first += 1
        if last < many and last >= first and end > ends[last]:  # only the beginning of this one
            self._own[last].add(rate, (end - ends[last]) * scale)
        if last > first:
            self._steps[first].add(rate, scale)
            self._steps[last].add(rate, -scale)


def split(usage: Usage, start: float, end: float) -> Sequence[float]:
    """The tokens between two places of a request by class: read, written, new."""
    read = usage.cache_read_input_tokens
    places = (0.0, read, read + usage.cache_creation_input_tokens, usage.prompt_tokens)
    return [*_overlaps(places, start, end)]


def _overlaps(places: Sequence[float], start: float, end: float) -> Iterator[float]:
    for low, high in pairwise(places):
        yield max(0.0, min(high, end) - max(low, start))
