"""The compaction in force on a branch: the last one, if it was not undone, and if what it covers is
what its summary was written for. Pure.

That is told by a hash of all it covers. On a growing branch nothing is hashed twice: a hash goes on
from where the last compaction's ended.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from tui.context.overrides import SPEAKING
from tui.core.dataclass import dataclass, field
from tui.session.records import Record, encode


@dataclass(frozen=True, slots=True)
class Summary:
    """A compaction in force. `end` is the number of records of the branch that it covers."""

    record: Record
    end: int


def prefix_sha256(records: Iterable[Record]) -> str:
    """The hash of what records say, in order: type, id and data of those that are sent."""
    digest = sha256()
    _hash(records, digest)
    return digest.hexdigest()


@dataclass(slots=True)
class CompactionInForce:
    """Tells which compaction is in force on a growing branch."""

    _last: Record | None = None
    """The last compaction, if it was not undone."""
    _summary: Summary | None = None
    _looked: Record | None = None
    """The compaction that `_summary` tells of."""
    _ends: list[int] = field(default_factory=list[int])
    _digests: list[Any] = field(default_factory=list[Any])
    """What was hashed up to each of the ends."""

    def take(self, record: Record) -> None:
        """Take in the next record."""
        if record.type == "compaction":
            self._last = record
        elif record.type == "uncompaction":
            self._last = None

    def in_force(self, records: Sequence[Record], places: Mapping[str, int]) -> Summary | None:
        """The compaction in force; `records` are all that were taken in, at their `places`."""
        if self._last is not self._looked:
            self._looked = self._last
            self._summary = self._summary_of(self._last, records, places) if self._last else None
        return self._summary

    def _summary_of(
        self, record: Record, records: Sequence[Record], places: Mapping[str, int]
    ) -> Summary | None:
        data = record.data
        covers, hashed = data.get("covers"), data.get("prefix_sha256")
        last = places.get(covers, -1) if isinstance(covers, str) else -1
        if not isinstance(data.get("summary"), str) or not isinstance(hashed, str):
            return None
        if not 0 <= last < places[record.id] or self._prefix_sha256(records, last + 1) != hashed:
            return None
        return Summary(record, last + 1)

    def _prefix_sha256(self, records: Sequence[Record], end: int) -> str:
        at = bisect_right(self._ends, end)
        start = self._ends[at - 1] if at else 0
        digest = self._digests[at - 1].copy() if at else sha256()
        if start < end:
            _hash((records[place] for place in range(start, end)), digest)
            self._ends.insert(at, end)
            self._digests.insert(at, digest)
        return digest.hexdigest()


def in_force(records: Sequence[Record]) -> Summary | None:
    """The compaction in force on a branch."""
    standing = CompactionInForce()
    for record in records:
        standing.take(record)
    return standing.in_force(records, {record.id: place for place, record in enumerate(records)})


def _hash(records: Iterable[Record], digest: Any) -> None:
    for record in records:
        if record.type in SPEAKING:
            digest.update(encode({"type": record.type, "id": record.id, "data": record.data}))
