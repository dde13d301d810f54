"""The shares that parts of a request have of its bill, for a list of parts that mostly grows. Pure.

The tokens of a request are, in its order, read from the cache, then written to it, then new. Each
part takes the tokens from its place on, in proportion to its weight. What the requests have cost is
kept as steps in the row of parts, so that one more request costs the same however long the row is;
it is told when a part leaves, or at the end.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import add, sub
from typing import Final, Generic, TypeAlias, TypeVar

from tui.context.usage.amounts import Amount, TokenRates
from tui.core.messages import Usage

_Key = TypeVar("_Key")
_Sums: TypeAlias = list[float]
"""The tokens of each class, the USD for them, and the tokens without a known price."""

_Rate: TypeAlias = tuple[int, float, float]
"""A class with the USD for a token of it, and 1 where no price is known."""

_READ, _WRITTEN, _FRESH = range(3)
"""The classes, by their places in `_Sums` and in `TokenRates`."""
_USD: Final = 3
_UNPRICED: Final = 6
_WIDTH: Final = 7


class SharedCosts(Generic[_Key]):
    """A row of parts, each with a weight, and with the keys that its costs are summed up for."""

    def __init__(self) -> None:
        self._keys: list[Collection[_Key]] = []
        self._ends: list[float] = [0.0]  # sums of weights up to each part
        self._own: dict[int, _Sums] = {}  # what a part had beside the steps
        self._steps: dict[int, _Sums] = {}  # for a unit of weight; their sum is nothing
        self._begun: dict[_Key, float] = {}  # the weights of the first parts, by key
        self._begun_count = 0

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def weight(self) -> float:
        """The weight of all parts."""
        return self._ends[-1]

    def extend(self, parts: Iterable[tuple[Collection[_Key], float]]) -> None:
        """Add parts at the end, which take part in the requests that follow."""
        end = self._ends[-1]
        for keys, weight in parts:
            self._keys.append(keys)
            self._ends.append(end := end + weight)

    def keep(self, count: int) -> Iterable[tuple[_Key, Amount]]:
        """Keep the first parts only; return what the others have cost, by their keys."""
        left, level = self._take_out(count)
        del self._keys[count:], self._ends[count + 1 :]
        if count < self._begun_count:
            self._begun, self._begun_count = {}, 0
        if any(level):
            known = self._steps.get(count)
            self._steps[count] = [*map(sub, known, level)] if known else [-one for one in level]
        return left

    def settle(self) -> Iterable[tuple[_Key, Amount]]:
        """Return what all parts have cost, by their keys. The parts stay; their costs are zero."""
        sums, _ = self._take_out(0)
        self._steps.clear()
        return sums

    def _take_out(self, count: int) -> tuple[Iterable[tuple[_Key, Amount]], _Sums]:
        """Take out what the parts from `count` on have cost, by key. Also returns what a unit of
        weight has cost in the first of them: the parts before it have that from there."""
        every, steps, own = self._keys, self._steps, self._own
        sums: dict[_Key, _Sums] = {}
        for place in range(count, len(every)):
            if more := own.pop(place, None):
                for key in every[place]:
                    _take_in(sums, key, more)
        level, end = [0.0] * _WIDTH, len(every)  # from the end, where nothing is left
        for start in (*[n for n in range(end, count, -1) if n in steps], count):
            if any(level):
                weights = self._weights(start, end)  # between two steps, all cost the same
                for key, weight in weights.items():
                    _take_in(sums, key, [one * weight for one in level])
            end = start
            if start > count:
                level = [*map(sub, level, steps.pop(start))]
        return _amounts(sums), level

    def _weights(self, start: int, end: int) -> Mapping[_Key, float]:
        """The weights of the parts between two places, by key. Those of the first ones are asked
        for at the end of each day, and kept."""
        weights: dict[_Key, float] = {}
        if not start:
            if end < self._begun_count:
                self._begun, self._begun_count = {}, 0
            weights, start, self._begun_count = self._begun, self._begun_count, end
        low = self._ends[start]
        for keys, high in zip(self._keys[start:end], self._ends[start + 1 : end + 1], strict=True):
            width, low = high - low, high
            for key in keys:
                weights[key] = weights.get(key, 0.0) + width
        return weights

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
        place = 0
        if first > 0:
            place = self._share(place, 0.0, first, _rate(_READ, rates), scale)
        if second > first:
            place = self._share(place, first, second, _rate(_WRITTEN, rates), scale)
        if weight > second:
            self._share(place, second, weight, _rate(_FRESH, rates), scale)

    def _share(self, place: int, start: float, end: float, rate: _Rate, scale: float) -> int:
        """Charge what lies between two ends at a rate. The first is in the part at `place`; returns
        the place of the part with the second, or of the one after it."""
        ends, own, steps = self._ends, self._own, self._steps
        last = bisect_right(ends, end, place) - 1
        if start > ends[place]:  # only the rest of this part
            stop = min(end, ends[place + 1])
            _add(own, place, (stop - start) * scale, rate)
            if last == place:
                return last
            place += 1
        if end > ends[last]:  # only the beginning of this one
            _add(own, last, (end - ends[last]) * scale, rate)
        if last > place:
            _add(steps, place, scale, rate)
            _add(steps, last, -scale, rate)
        return last


def _take_in(sums: dict[_Key, _Sums], key: _Key, more: _Sums) -> None:
    """Add to what a key has."""
    known = sums.get(key)
    sums[key] = [*map(add, known, more)] if known else more


def _amounts(sums: Mapping[_Key, _Sums]) -> Iterator[tuple[_Key, Amount]]:
    """Yield the keys that anything was paid for."""
    for key, (read, written, fresh, read_usd, written_usd, fresh_usd, unpriced) in sums.items():
        if read + written + fresh > 0:
            yield key, Amount(read, written, fresh, 0.0, unpriced, read_usd, written_usd, fresh_usd)


def _rate(kind: int, rates: TokenRates) -> _Rate:
    return kind, rates[kind], rates.unpriced


def _add(sums: dict[int, _Sums], place: int, tokens: float, rate: _Rate) -> None:
    """Add tokens to the sums at a place."""
    known = sums.get(place)
    if known is None:
        known = sums[place] = [0.0] * _WIDTH
    kind, usd, unpriced = rate
    known[kind] += tokens
    known[_USD + kind] += tokens * usd
    known[_UNPRICED] += tokens * unpriced


def split(usage: Usage, start: float, end: float) -> Sequence[float]:
    """The tokens between two places of a request by class: read, written, new."""
    read = usage.cache_read_input_tokens
    places = (0.0, read, read + usage.cache_creation_input_tokens, usage.prompt_tokens)
    return [max(0.0, min(high, end) - max(low, start)) for low, high in pairwise(places)]
