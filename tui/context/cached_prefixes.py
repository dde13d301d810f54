"""The server's prompt cache, as far as requests and their answers tell of it. Pure.

A server keeps the beginning of a request up to each of its marks, and a later request reads the
longest that it begins with, looked for at its own marks and at most 20 blocks before each. So
every `request` record has the keys of what it made the server keep (`cache`), and the usage of its
answer says how many tokens that is. From these follows what the next request will read and write,
and the same from its own usage after it was answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from tui.context.cache_cost import LIFE_S, LONG_LIFE_S
from tui.context.request_trail import CACHE, Prefix, RequestPrefixes
from tui.core.config import model_of
from tui.core.dataclass import dataclass, field
from tui.core.messages import Usage, list_of, object_of, string_of
from tui.session.records import BESIDE, Record, paid_by
from tui.session.request_numbers import REQUEST
from tui.tokens import estimate

_LOOK_BACK: Final = 20
"""Blocks at which a server looks for an earlier prefix, from a mark back."""
_LIKE: Final = 0.05
"""The share by which an estimate of a prefix may be off from what was read of it."""
_TRUST: Final = (300.0**2, 20.0, 100.0**2, 2.0)
"""The trust in the guesses made before anything was counted, as squares of growths."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The input of a request: the tokens of all of it, those that come from the cache, and those
    that are written to it."""

    prompt: int
    read: int
    written: int

    @property
    def fresh(self) -> int:
        """Tokens that are neither read nor kept."""
        return max(0, self.prompt - self.read - self.written)


@dataclass(slots=True)
class CachedPrefix:
    """A prefix that a server keeps, its tokens, and until when (seconds) it can be read. `beside`
    are the keys of the requests that had it; `counted`: the server itself has counted the
    tokens."""

    prefix: Prefix
    tokens: float
    until: float
    beside: frozenset[str] = frozenset()
    counted: bool = False


@dataclass(slots=True)
class TokenFit:
    """A fit of a server's own token counts, one for each growth of the conversation: tokens for a
    unit of weight and for a block, and the same for thinking. Before the first count it is `ratio`
    for a unit of weight, and nothing for a block."""

    ratio: float
    _figures: Sequence[float] = ()
    _sums: list[list[float]] = field(default_factory=list[list[float]])

    def __post_init__(self) -> None:
        self._figures = self.ratio, 0.0, self.ratio, 0.0
        self._sums = [
            [trust * (row == column) for column in range(len(_TRUST))] + [trust * figure]
            for row, (trust, figure) in enumerate(zip(_TRUST, self._figures, strict=True))
        ]

    def learn(self, start: Prefix, end: Prefix, tokens: float) -> None:
        """Take in one growth, and fit again (least squares)."""
        terms = _terms(start, end)
        for row, one in zip(self._sums, terms, strict=True):
            row[:] = [a + one * b for a, b in zip(row, (*terms, tokens), strict=True)]
        figures = _solved(self._sums)
        if estimate.plausible(figures[0]):
            self._figures = figures

    def tokens(self, start: Prefix, end: Prefix) -> float:
        """The tokens between two ends."""
        terms = _terms(start, end)
        return sum(figure * term for figure, term in zip(self._figures, terms, strict=True))


def _terms(start: Prefix, end: Prefix) -> tuple[float, ...]:
    return (
        end.weight - start.weight,
        end.blocks - start.blocks,
        end.thought_weight - start.thought_weight,
        end.thoughts - start.thoughts,
    )


def _solved(equations: Sequence[Sequence[float]]) -> list[float]:
    """Solve equations by elimination; no two are alike, since each figure is trusted a little."""
    rows = [[*row] for row in equations]
    for place, row in enumerate(rows):
        for other in rows:
            if other is not row:
                share = other[place] / row[place]
                other[:] = [a - share * b for a, b in zip(other, row, strict=True)]
    return [row[-1] / row[place] for place, row in enumerate(rows)]


@dataclass(slots=True)
class CachedPrefixes:
    """The prefixes that a server keeps of the requests to one model; `cached_from` are the tokens
    of the smallest one."""

    fit: TokenFit
    cached_from: int = 0
    entries: dict[str, CachedPrefix] = field(default_factory=dict[str, CachedPrefix])
    last: CachedPrefix | None = None
    """What the last answered request made it keep."""
    grown: list[tuple[Prefix, Prefix, float]] = field(
        default_factory=list[tuple[Prefix, Prefix, float]]
    )
    """The growths of the conversation, from one end to the next, with the tokens of each."""
    unnamed_until: float = 0.0
    """Until when the server keeps what the last answered request made it keep, if its record does
    not name that: one of a time before there were names."""

    @classmethod
    def of(
        cls,
        records: Sequence[Record],
        model: str,
        server: str,
        profile: str,
        *,
        ratio: float,
        cached_from: int,
    ) -> CachedPrefixes:
        """Learn from requests and their answers: those of other branches first, then those of the
        branch that goes on. Only those that `profile` paid count: no account reads what another
        one made the server keep. `ratio` is that of the model, until they tell more."""
        found = cls(TokenFit(ratio), cached_from)
        for request, usage in _answered(records, model, server, profile):
            found._take(request, usage)
        return found

    def _take(self, request: Record, usage: Usage) -> None:
        tokens = usage.cache_read_input_tokens + usage.cache_creation_input_tokens
        cache = object_of(request.data.get(CACHE))
        kept = list_of(cache.get("kept"))
        prefixes = [prefix for one in kept if (prefix := Prefix.of_json(one))]
        if not tokens or usage.context_tokens:  # which are sums of rounds
            return
        life = request.data.get("cache_life") or cache.get("life")
        long = usage.ephemeral_1h_input_tokens or life == "1h"
        until = _begun(request) + (LONG_LIFE_S if long else LIFE_S)
        self.unnamed_until = 0.0 if prefixes else until
        if not prefixes:
            return
        end, read = prefixes[-1], usage.cache_read_input_tokens
        keys = frozenset(prefix.key for prefix in prefixes)
        for entry in self.entries.values():
            # as long, but of another beginning: of another branch, or another machine
            if round(entry.tokens) == read and entry.beside & keys:
                entry.until = max(entry.until, until)
        if self.last and self.last.prefix.key in keys:
            growth = self.last.prefix, end, tokens - self.last.tokens
            self.grown.append(growth)
            self.fit.learn(*growth)
        for prefix in prefixes:
            known = self.entries.get(prefix.key)
            if known is None:
                size = tokens - self.fit.tokens(prefix, end)
                known = CachedPrefix(prefix, size, until)
            known.until, known.beside = max(known.until, until), known.beside | keys
            if prefix is end:
                known.tokens, known.counted = tokens, True
            if known.tokens >= self.cached_from:
                self.entries[prefix.key] = known
        self._count(prefixes, read)
        self.last = self.entries.get(end.key)

    def _count(self, prefixes: Sequence[Prefix], read: int) -> None:
        """Take what was read for the length of the prefix that it is, where that was estimated."""
        found = [entry for one in prefixes if (entry := self.entries.get(one.key))]
        if any(entry.counted and round(entry.tokens) == read for entry in found):
            return
        guessed = [entry for entry in found if not entry.counted]
        nearest = min(guessed, key=lambda entry: abs(entry.tokens - read), default=None)
        if nearest and abs(nearest.tokens - read) <= _LIKE * read:
            nearest.tokens, nearest.counted = read, True

    def forecast(self, request: RequestPrefixes, now: float) -> Forecast:
        """Tell what a request that begins `now` will read and write."""
        marks, whole = request.marked(), request.whole
        known = hit = CachedPrefix(Prefix("", 0, 0.0), 0.0, now)
        for key, entry in self.entries.items():
            blocks = entry.prefix.end
            if blocks > whole.end or request.at(blocks).key != key:
                continue
            known = max(known, entry, key=_blocks)
            near = any(0 <= mark.end - blocks < _LOOK_BACK for mark in marks)
            if near and entry.until >= now:
                hit = max(hit, entry, key=_blocks)
        known_off = self._off(request, known.prefix)

        def size(prefix: Prefix) -> float:
            return known.tokens + self.fit.tokens(known.prefix, prefix) + known_off

        end = max(map(size, marks), default=0.0)
        prompt = max(size(whole), hit.tokens)
        written = end - hit.tokens if end >= self.cached_from else 0.0
        return Forecast(round(prompt), round(hit.tokens), max(0, round(written)))

    def _off(self, request: RequestPrefixes, known: Prefix) -> float:
        """The error of the estimate for what follows a known beginning, as far as the same was
        counted before: in the same place, and of the same weight."""
        off, place = 0.0, known.blocks
        for start, end, tokens in sorted(self.grown, key=lambda one: one[1].blocks):
            if start.blocks < place:
                continue
            first, last = request.with_blocks(start.blocks), request.with_blocks(end.blocks)
            if not first or not last:
                continue
            if abs((last.weight - first.weight) - (end.weight - start.weight)) <= 1:
                off, place = off + tokens - self.fit.tokens(start, end), end.blocks
        return off

    def warm(self, now: float) -> bool:
        """True if a request that extends the last one would read it."""
        until = self.unnamed_until or (self.last.until if self.last else 0.0)
        return until >= now


def _blocks(entry: CachedPrefix) -> int:
    return entry.prefix.end


def _answered(
    records: Sequence[Record], model: str, server: str, profile: str
) -> Iterator[tuple[Record, Usage]]:
    """Yield the requests of a profile to a model with the usage of their answers; one beside the
    conversation has both in its own record. Another profile may have fallen back to this one."""
    asked: Record | None = None
    for record in records:
        data, whole = record.data, string_of(record.data.get("model"))
        mine = model_of(whole) == model and paid_by(whole, record.payer) == profile
        same = mine and data.get("server") == server
        if record.type == REQUEST:
            asked = record if same else None
        elif record.type in BESIDE and same:
            yield record, Usage.from_json(data.get("usage"))
        elif record.type == "assistant" and asked is not None and mine:
            yield asked, Usage.from_json(data.get("usage"))
            asked = None


def _begun(request: Record) -> float:
    """The time at which a request was sent; the record of one beside the conversation came with its
    answer."""
    took = request.data.get("seconds") if request.type in BESIDE else 0
    return _seconds(request.time) - (took if isinstance(took, int | float) else 0.0)


def _seconds(time: str) -> float:
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return 0.0
