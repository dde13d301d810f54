"""Ids and times of spans, made of those of the records: the same wherever they are folded."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final

from tui.core.formatting import moment_of

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def trace_id(record: str) -> str:
    """Return the id of the trace that a record begins."""
    return _digest("trace", record)[:32]


def span_id(kind: str, record: str) -> str:
    """Return the id of the span that a record begins."""
    return _digest(kind, record)[:16]


def time_of(text: str) -> int:
    """Return a record's time in nanoseconds since 1970; 0 where it has none."""
    moment = moment_of(text)
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000 if moment else 0


def _digest(kind: str, id_: str) -> str:
    return sha256(f"{kind} {id_}".encode(errors="replace")).hexdigest()
