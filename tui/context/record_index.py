"""The records of some types on a growing branch. What was looked at once is not looked at again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from tui.session.records import Record


@dataclass(slots=True)
class RecordIndex:
    """Finds the records of `types`. A branch that was rewound is read anew."""

    types: Collection[str]
    _found: list[Record] = field(default_factory=list[Record])
    _count: int = 0
    _last: Record | None = None

    def of(self, records: Sequence[Record]) -> Sequence[Record]:
        """The records in their order; to be read, not changed."""
        count = self._count
        if count > len(records) or (count and records[count - 1] is not self._last):
            self._found, self._count = [], 0
        for place in range(self._count, len(records)):
            if records[place].type in self.types:
                self._found.append(records[place])
        self._count = len(records)
        self._last = records[-1] if records else None
        return self._found
