"""Attempts of requests that failed: they have no bill, but some may have cost something. Pure."""

from __future__ import annotations

from typing import Final, Literal

from tui.session.records import Record

_FAILED: Final = frozenset({"retry", "failover", "error"})
_LOST: Final = frozenset({"timeout", "network", "stream_broken"})


def attempt_in(record: Record) -> Literal["", "refused", "lost"]:
    """How an attempt failed that a record is of; "" for any other. What the server refused is not
    billed. What was lost, on its way or while it was answered, may be: no record says so."""
    data = record.data
    if record.type not in _FAILED:
        return ""
    name = data.get("class" if record.type == "error" else "error_class")
    answered = bool(data.get("received") or data.get("text"))
    if answered or (data.get("status") is None and name in _LOST):
        return "lost"
    of_request = record.type != "error" or data.get("status") is not None
    return "refused" if of_request else ""
