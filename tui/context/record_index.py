"""Indexes of the new records on a growing branch. No record is read twice."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from tui.core.dataclass import dataclass, field
from tui.core.messages import Message
from tui.session.records import Record

_RECENT: Final = 64


def continues(records: Sequence[Record], count: int, last: Record | None) -> bool:
    """True if a branch only grew since it had `count` records, the last of which was `last`."""
    return not count or (count <= len(records) and records[count - 1] is last)


@dataclass(slots=True)
class RecordIndex:
    """Finds the records of `types`; only those that `counts` accepts, if it is given.

    A branch that was rewound is read again.
    """

    types: Collection[str]
    counts: Callable[[Record], bool] | None = None
    _found: list[Record] = field(default_factory=list[Record])
    _count: int = 0
    _last: Record | None = None

    def copy(self) -> RecordIndex:
        """One that knows the same, for a record that goes on in another way."""
        return RecordIndex(self.types, self.counts, [*self._found], self._count, self._last)

    def of(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return the records in order; to be read, not changed."""
        if not continues(records, self._count, self._last):
            self._found, self._count = [], 0
        for place in range(self._count, len(records)):
            record = records[place]
            if record.type in self.types and (self.counts is None or self.counts(record)):
                self._found.append(record)
        self._count = len(records)
        self._last = records[-1] if records else None
        return self._found


@dataclass(slots=True)
class RecordNumbers:
    """The indices of a growing branch's records, by id; of two with the same id, the first.

    A branch that was rewound is indexed again.
    """

    _numbers: dict[str, int] = field(default_factory=dict[str, int])
    _count: int = 0
    _last: Record | None = None

    def of(self, records: Sequence[Record]) -> Mapping[str, int]:
        """Return the indices by id; to be read, not changed."""
        if not continues(records, self._count, self._last):
            self._numbers, self._count = {}, 0
        for number in range(self._count, len(records)):
            self._numbers.setdefault(records[number].id, number)
        self._count = len(records)
        self._last = records[-1] if records else None
        return self._numbers


def replaced(old: Sequence[Message], new: Sequence[Message]) -> Iterator[int]:
    """Yield the indices of the messages that both views of a growing branch have, but as different
    objects in the new one.

    Up to the last few, lists are compared as a whole, which is far faster: a view that was begun
    again has another first message, and in one that was not, equal messages have the same blocks,
    or were made again of the same records.
    """
    limit = min(len(old), len(new))
    start = max(0, limit - _RECENT)
    if start and (old[0] is not new[0] or old[:start] != new[:start]):
        start = 0
    for number in range(start, limit):
        if old[number] is not new[number]:
            yield number
