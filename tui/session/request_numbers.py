"""Numbers of requests that mean one each within a session, on whatever branch it was sent. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tui.session.records import Record

REQUEST = "request"
"""The type of the record."""


def number_after(last: int, record: Record) -> int:
    """The number of the request that comes after number `last` in the file.

    It is the recorded one where that continues counting. A record that counted its own branch only,
    or is damaged, gets the next number.
    """
    recorded = record.data.get("n")
    return recorded if isinstance(recorded, int) and recorded > last else last + 1


def numbered(records: Iterable[Record]) -> Iterator[tuple[int, Record]]:
    """The requests among all records of a session, in the order of the file."""
    last = 0
    for record in records:
        if record.type == REQUEST:
            last = number_after(last, record)
            yield last, record
