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
from operator import add, sub
from typing import Final, Generic, TypeAlias, TypeVar

from tui.context.usage.amounts import Amount, TokenRates
from tui.core.messages import Usage

_Owner = TypeVar("_Owner")
_Sums: TypeAlias = list[float]
"""The tokens of each class, the USD for them, and the tokens without a known price."""

_READ, _WRITTEN, _FRESH = range(3)
"""The classes, by their places in `_Sums` and in `TokenRates`."""
_USD: Final = 3
_UNPRICED: Final = 6
_WIDTH: Final = 7


class SharedCosts(Generic[_Owner]):
    """A row of parts, each with a weight and an owner."""

    def __init__(self) -> None:
        self._owners: list[_Owner] = []
        self._ends: list[float] = [0.0]  # sums of weights up to each part
        self._own: dict[int, _Sums] = {}  # what a part had beside the steps
        self._steps: dict[int, _Sums] = {}  # for a unit of weight; their sum is nothing

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

    def keep(self, count: int) -> Sequence[tuple[_Owner, Amount]]:
        """Keep the first parts only; return the owners of the others with what these have cost."""
        left: list[tuple[_Owner, Amount]] = []
        owners, ends, steps = self._owners, self._ends, self._steps
        level = [0.0] * _WIDTH  # from the end, where nothing is left
        for place in range(len(owners) - 1, count - 1, -1):
            if step := steps.pop(place + 1, None):
                level = [*map(sub, level, step)]
            width = ends[place + 1] - ends[place]
            cost = [one * width for one in level]
            if own := self._own.pop(place, None):
                cost = [*map(add, cost, own)]
            read, written, fresh, read_usd, written_usd, fresh_usd, unpriced = cost
            if read + written + fresh > 0:
                amount = Amount(
                    read, written, fresh, 0.0, unpriced, read_usd, written_usd, fresh_usd
                )
                left.append((owners[place], amount))
        del owners[count:], ends[count + 1 :]
        if count in steps or any(level):
            steps[count] = [*map(sub, steps.get(count) or [0.0] * _WIDTH, level)]
        return left

    def charge(self, usage: Usage, rates: TokenRates, before: float) -> None:
        """Share the input of a request among the parts, which begin after `before` tokens of it."""
        weight, whole = self._ends[-1], usage.prompt_tokens
        scale = (whole - before) / weight if weight else 0.0
        if scale <= 0:
            return
        read = usage.cache_read_input_tokens
        kept = read + usage.cache_creation_input_tokens
        first = max(0.0, min(weight, (read - before) / scale))
        second = max(0.0, min(weight, (kept - before) / scale))
        if first > 0:
            self._share(0.0, first, _READ, rates, scale)
        if second > first:
            self._share(first, second, _WRITTEN, rates, scale)
        if weight > second:
            self._share(second, weight, _FRESH, rates, scale)

    def _share(self, start: float, end: float, kind: int, rates: TokenRates, scale: float) -> None:
        """Charge what lies between two places at a rate for each token."""
        ends, many = self._ends, len(self._owners)
        first = min(bisect_right(ends, start) - 1, many - 1)
        last = min(bisect_right(ends, end) - 1, many)
        if start > ends[first]:  # only the rest of this part
            stop = min(end, ends[first + 1])
            _add(self._own, first, kind, (stop - start) * scale, rates)
            first += 1
        if last < many and last >= first and end > ends[last]:  # only the beginning of this one
            _add(self._own, last, kind, (end - ends[last]) * scale, rates)
        if last > first:
            _add(self._steps, first, kind, scale, rates)
            _add(self._steps, last, kind, -scale, rates)


def _add(sums: dict[int, _Sums], place: int, kind: int, tokens: float, rates: TokenRates) -> None:
    """Add tokens of a class to the sums at a place."""
    known = sums.get(place)
    if known is None:
        known = sums[place] = [0.0] * _WIDTH
    known[kind] += tokens
    known[_USD + kind] += tokens * rates[kind]
    known[_UNPRICED] += tokens * rates.unpriced


def split(usage: Usage, start: float, end: float) -> Sequence[float]:
    """The tokens between two places of a request by class: read, written, new."""
    read = usage.cache_read_input_tokens
    places = (0.0, read, read + usage.cache_creation_input_tokens, usage.prompt_tokens)
    return [*_overlaps(places, start, end)]


def _overlaps(places: Sequence[float], start: float, end: float) -> Iterator[float]:
    for low, high in pairwise(places):
        yield max(0.0, min(high, end) - max(low, start))
