"""Breaks: deliberate changes of what was already sent, and the thinking that they cost. Pure.

A `break` record says why, by whom, and from where on: answers between the record `from` and the
break are sent without their thinking, for good. Without `from`, that applies to every answer before
the break. A break with a `cause` (the id of a compaction) is void once that compaction is undone.
Where a break undoes an earlier one, as an unmask does, it names the answers whose thinking goes out
again (`back`), since everything before them is as it was when they were made.

Undoing a compaction is no break. Thinking from before the compaction returns together with the
messages it was based on; thinking from after it is dropped, since it was based on the summary.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from tui.core.dataclass import dataclass, field
from tui.core.messages import Block, list_of, tool_calls
from tui.session.records import Record

BREAK: Final = "break"
"""The record's type."""
BACK: Final = "back"
"""Its field with the ids of the answers whose thinking goes out again."""


@dataclass(slots=True)
class LostThinking:
    """The answers of a growing branch that are sent without their thinking: `ids`, of records."""

    ids: set[str] = field(default_factory=set[str])
    _kept: list[int] = field(default_factory=list[int])
    """The places of the other answers."""
    _compacted: int | None = None
    _undone: int = -1
    """The last place where a compaction was undone."""

    def take(
        self, place: int, records: Sequence[Record], places: Mapping[str, int]
    ) -> Sequence[int]:
        """Take in the record at a place; return the places of the answers that it concerns.
        `places` are those of the records so far."""
        record = records[place]
        kind = record.type
        if kind == "assistant":
            self._kept.append(place)
        elif kind == "compaction":
            # Only the first of several counts: undoing goes back to before all of them.
            self._compacted = place if self._compacted is None else self._compacted
        elif kind == "uncompaction":
            if self._undone < place:
                return self._tell_again(place, records, places)
            compacted, self._compacted = self._compacted, None
            return [] if compacted is None else self._lose(compacted, place, records)
        elif kind == BREAK and not (record.data.get("cause") and place < self._undone):
            start = record.data.get("from")
            first = places.get(start, 0) if isinstance(start, str) else 0
            lost = self._lose(first, place, records)
            return [*lost, *self._give_back(record, records, places)]
        return ()

    def _lose(self, first: int, end: int, records: Sequence[Record]) -> Sequence[int]:
        start, stop = bisect_left(self._kept, first), bisect_left(self._kept, end)
        lost = self._kept[start:stop]
        del self._kept[start:stop]
        self.ids.update(records[at].id for at in lost)
        return lost

    def _give_back(
        self, record: Record, records: Sequence[Record], places: Mapping[str, int]
    ) -> Iterator[int]:
        for id_ in list_of(record.data.get(BACK)):
            at = places.get(str(id_), -1)
            if at >= 0 and records[at].id in self.ids:
                self.ids.discard(records[at].id)
                insort(self._kept, at)
                yield at

    def _tell_again(
        self, end: int, records: Sequence[Record], places: Mapping[str, int]
    ) -> Sequence[int]:
        """Begin again, as the breaks before `end` that were caused by a compaction are void."""
        before = frozenset(self.ids)
        self.ids.clear()  # views have this set
        self._kept, self._compacted, self._undone = [], None, end
        for place in range(end + 1):
            self.take(place, records, places)
        return sorted(places[id_] for id_ in before ^ self.ids)


def thoughtless(records: Sequence[Record]) -> frozenset[str]:
    """The ids of the answers of a branch that are sent without their thinking."""
    if not any(record.type in {BREAK, "uncompaction"} for record in records):
        return frozenset()
    places = {record.id: place for place, record in enumerate(records)}
    lost = LostThinking()
    for place in range(len(records)):
        lost.take(place, records, places)
    return frozenset(lost.ids)


def renews(record: Record) -> bool:
    """True if a break starts at the first message, so that the cache restarts with it."""
    place = record.data.get("message")
    return record.type == BREAK and (not isinstance(place, int) or place <= 0)


def turn_start(records: Sequence[Record], place: int) -> int:
    """Return the index of the first prompt of the turn that a record belongs to."""
    start = place
    for number in range(place, -1, -1):
        record = records[number]
        if record.type == "user":
            start = number
        elif number < place and ends_turn(record):
            break
    return start


def in_turn(records: Sequence[Record]) -> bool:
    """True if the turn that is about to be requested already has an answer."""
    for record in reversed(records):
        if record.type == "user":
            return False
        if record.type == "assistant":
            return bool(_calls(record))
        if record.type == "interrupt":
            return False
    return False


def ends_turn(record: Record) -> bool:
    """True if a turn ends with this record."""
    return record.type == "interrupt" or (record.type == "assistant" and not _calls(record))


def _calls(record: Record) -> Iterable[Block]:
    content = record.data.get("content")
    return tool_calls(content) if isinstance(content, list) else ()  # pyright: ignore[reportUnknownArgumentType] - JSON
