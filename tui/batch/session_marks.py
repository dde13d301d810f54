"""Where a task stands in the session that its group shares (A32). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tui.session.records import Record


def begin_of(records: Sequence[Record], index: int) -> str:
    """The id of the record with which a task's last attempt begins; "" if it is not there."""
    marked = (
        after.id
        for mark, after in pairwise(records)
        if mark.type == "task" and mark.data.get("index") == index
    )
    return next(iter([*marked][::-1]), "")
