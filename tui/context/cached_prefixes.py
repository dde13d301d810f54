"""The server's prompt cache, as far as requests and their answers tell of it. Pure.

A server keeps the beginning of a request up to each of its marks, and a later request reads the
longest that it begins with, looked for at its own marks and at most 20 blocks before each. So
every `request` record has the keys of what it made the server keep (`kept`), and the usage of its
answer says how many tokens that is. From these follows what the next request will read and write,
and the same from its own usage after it was answered.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

from tui.context.cache_cost import LIFE_S, LONG_LIFE_S
from tui.context.request_assembly import Mark
from tui.context.request_trail import Candidate, Part, RequestTrail
from tui.core.messages import Block, Usage, list_of
from tui.provider.base import Request
from tui.session.records import Record
from tui.session.request_numbers import REQUEST
from tui.tokens import estimate

KEPT: Final = "kept"
"""The field of a `request` record: the prefixes at its marks, as `Prefix.to_json`."""

_LOOK_BACK: Final = 20
"""Blocks at which a server looks for an earlier prefix, from a mark back."""
_KEY: Final = 16
_LIKE: Final = 0.05
"""The share by which an estimate of a prefix may be off from what was read of it."""
_LEAST: Final = 400
"""A smaller weight says too little about the tokens of a conversation."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """The beginning of a request up to a block: the `key` that it has at the server, the number of
    its blocks, and its estimated weight."""

    key: str
    blocks: int
    weight: float

    def to_json(self) -> list[Any]:
        return [self.key, self.blocks, round(self.weight)]

    @classmethod
    def of_json(cls, value: object) -> Prefix | None:
        match value:
            case [str(key), int(blocks), int() | float() as weight]:
                return cls(key, blocks, weight)
            case _:
                return None


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


class RequestPrefixes:
    """The beginnings of one request, in the order in which a server reads it: tools, system
    prompt, messages. `marks` are its cache marks in the messages."""

    def __init__(
        self, request: Request, marks: Sequence[Mark], trail: RequestTrail, candidate: Candidate
    ) -> None:
        self._request, self._marks = request, marks
        self._trail, self._candidate = trail, candidate
        self._last = trail.part(candidate, len(request.messages))
        head = [request.thinking, request.effort, self._last.images]
        self._head = json.dumps(head, sort_keys=True).encode()
        self._parts: Sequence[Part] = ()

    @property
    def whole(self) -> Prefix:
        return Prefix("", self._last.total, self._last.weight)

    def at(self, blocks: int) -> Prefix:
        """The beginning with that many blocks."""
        if blocks <= self._candidate.frame.total:
            return self._in_frame(blocks)
        self._parts = self._parts or self._trail.parts(self._candidate)
        number = bisect_left(self._parts, blocks, key=lambda part: part.total)
        return self._in_message(self._parts[number - 1], self._parts[number], blocks)

    def marked(self) -> list[Prefix]:
        """The beginnings that end with a mark, the shortest first."""
        frame = enumerate([*self._request.tools, *self._request.system], 1)
        found = [self._in_frame(n) for n, block in frame if "cache_control" in block]
        for number, place in sorted(self._marks):
            before = self._trail.part(self._candidate, number)
            part = self._trail.part(self._candidate, number + 1)
            found.append(self._in_message(before, part, before.total + place + 1))
        return found

    def _in_message(self, before: Part, part: Part, blocks: int) -> Prefix:
        inner, weight = blocks - before.total, part.weight
        if inner < len(part.digests):
            content = part.message["content"][:inner]
            weight = before.weight + estimate.content_weight(content) + estimate.MESSAGE_TOKENS
        return Prefix(_key(self._head, before.after, *part.digests[:inner]), blocks, weight)

    def _in_frame(self, blocks: int) -> Prefix:
        """The beginning that ends in the tools or the system prompt."""
        many, part = len(self._request.system), self._candidate.frame
        digests = [*part.digests[many:], *part.digests[:many]][:blocks]
        if blocks == part.total:
            return Prefix(_key(*digests), blocks, part.weight)
        shown = [*self._request.tools, *self._request.system][:blocks]
        return Prefix(_key(*digests), blocks, sum(map(estimate.block_weight, map(_bare, shown))))


@dataclass(slots=True)
class Entry:
    """A prefix that a server keeps: its blocks and weight, its tokens by the server's own count,
    and until when (seconds) it can be read."""

    blocks: int
    weight: float
    tokens: float
    until: float


@dataclass(slots=True)
class CachedPrefixes:
    """What a server keeps of the requests to one model.

    `ratio` is the number of tokens of a unit of weight in the conversation, `cached_from` the
    tokens of the smallest prefix that is kept.
    """

    ratio: float
    cached_from: int = 0
    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    last: Entry | None = None
    """What the last answered request made it keep."""
    _prompt: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def of(
        cls, records: Sequence[Record], model: str, server: str, ratio: float, cached_from: int
    ) -> CachedPrefixes:
        """What the requests of a branch, and their answers, tell."""
        found = cls(ratio, cached_from)
        for request, usage in _answered(records, model, server):
            found._take(request, usage)
        return found

    def _take(self, request: Record, usage: Usage) -> None:
        tokens = usage.cache_read_input_tokens + usage.cache_creation_input_tokens
        prefixes = [p for one in list_of(request.data.get(KEPT)) if (p := Prefix.of_json(one))]
        if not tokens or not prefixes or usage.context_tokens:  # the last are sums of rounds
            return
        long = usage.ephemeral_1h_input_tokens or request.data.get("cache_life") == "1h"
        until = _seconds(request.time) + (LONG_LIFE_S if long else LIFE_S)
        end, read = prefixes[-1], usage.cache_read_input_tokens
        for entry in self.entries.values():
            if round(entry.tokens) == read:
                entry.until = max(entry.until, until)
        for prefix in prefixes:
            known = self.entries.get(prefix.key)
            size = known.tokens if known else tokens - (end.weight - prefix.weight) * self.ratio
            if prefix is end:
                size = tokens
            elif known is None and abs(size - read) <= _LIKE * read:
                size = read
            if size >= self.cached_from:
                self.entries[prefix.key] = Entry(prefix.blocks, prefix.weight, size, until)
        self.last = self.entries.get(end.key)
        first = self.entries.get(prefixes[0].key)
        if first and end.weight - first.weight > _LEAST:
            ratio = (tokens - first.tokens) / (end.weight - first.weight)
            self.ratio = ratio if estimate.plausible(ratio) else self.ratio

    def forecast(self, request: RequestPrefixes, now: float) -> Forecast:
        """Tell what a request that begins `now` will read and write."""
        marks, whole = request.marked(), request.whole
        known, hit = Entry(0, 0.0, 0.0, now), Entry(0, 0.0, 0.0, now)
        for key, entry in self.entries.items():
            if entry.blocks > whole.blocks or (entry.blocks <= known.blocks and entry.until < now):
                continue
            if request.at(entry.blocks).key != key:
                continue
            if entry.blocks > known.blocks:
                known = entry
            near = any(0 <= mark.blocks - entry.blocks < _LOOK_BACK for mark in marks)
            if near and entry.until >= now and entry.blocks > hit.blocks:
                hit = entry

        def size(prefix: Prefix) -> float:
            return known.tokens + (prefix.weight - known.weight) * self.ratio

        end = max((size(mark) for mark in marks), default=0.0)
        prompt = max(size(whole), hit.tokens)
        written = end - hit.tokens if end >= self.cached_from else 0.0
        return Forecast(round(prompt), round(hit.tokens), max(0, round(written)))

    def warm(self, now: float) -> int:
        """The tokens that a request which extends the last one would read."""
        return round(self.last.tokens) if self.last and self.last.until >= now else 0


def _answered(records: Sequence[Record], model: str, server: str) -> Iterator[tuple[Record, Usage]]:
    """Yield the requests to a model with the usage of their answers."""
    asked: Record | None = None
    for record in records:
        data = record.data
        if record.type == REQUEST:
            same = data.get("model") == model and data.get("server") == server
            asked = record if same else None
        elif record.type == "assistant" and asked is not None and data.get("model") == model:
            yield asked, Usage.from_json(data.get("usage"))
            asked = None


def _seconds(time: str) -> float:
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return 0.0


def _key(*parts: bytes) -> str:
    return sha256(b"".join(parts)).hexdigest()[:_KEY]


def _bare(block: Mapping[str, Any]) -> Block:
    return {name: value for name, value in block.items() if name != "cache_control"}
