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

from collections.abc import Iterable, Sequence
from typing import Final

from tui.core.messages import Block, list_of, tool_calls
from tui.session.records import Record

BREAK: Final = "break"
"""The record's type."""
BACK: Final = "back"
"""Its field with the ids of the answers whose thinking goes out again."""


def thoughtless(records: Sequence[Record]) -> frozenset[str]:
    """The ids of the answers of a branch that are sent without their thinking."""
    if not any(record.type in {BREAK, "uncompaction"} for record in records):
        return frozenset()
    places = {record.id: place for place, record in enumerate(records)}
    undone = max((n for n, r in enumerate(records) if r.type == "uncompaction"), default=-1)
    gone: set[int] = set()
    compacted: int | None = None
    for place, record in enumerate(records):
        if record.type == "compaction":
            # Only the first of several compactions counts: undoing goes back to before all of them.
            compacted = place if compacted is None else compacted
        elif record.type == "uncompaction":
            if compacted is not None:
                gone.update(range(compacted, place))
            compacted = None
        elif record.type == BREAK and not (record.data.get("cause") and place < undone):
            start = record.data.get("from")
            first = places.get(start, 0) if isinstance(start, str) else 0
            gone.update(range(first, place))
            gone.difference_update(
                places.get(str(id_), -1) for id_ in list_of(record.data.get(BACK))
            )
    return frozenset(records[n].id for n in gone if records[n].type == "assistant")


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
