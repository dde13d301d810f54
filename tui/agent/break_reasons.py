"""Why a request does not extend the last: what was recorded since that changes it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from tui.context.breaks import BREAK, in_turn, turn_start
from tui.context.frame import FRAME
from tui.context.overrides import overlay_in
from tui.session.records import Record

_BY_VIEW = {
    "pruned": "prune",
    "masked": "mask",
    "full": "unmask",
    "imageless": "mask",
    "clamped": "overflow",
}


@dataclass(frozen=True, slots=True)
class BreakReason:
    """Why, and by whom ("person", "program" or "server").

    `start` is the record from which on thinking is left out, "" for all of it; `cause` the
    compaction with whose undoing it is void.
    """

    reason: str
    by: str
    start: str = ""
    cause: str = ""
    recorded: bool = False
    """Whether a record says so already."""

    def to_json(self) -> dict[str, Any]:
        """The fields of a `break` record."""
        data = {"reason": self.reason, "by": self.by}
        data |= {"from": self.start} if self.start else {}
        return data | ({"cause": self.cause} if self.cause else {})


def reason_of(records: Sequence[Record], last: Record | None) -> BreakReason:
    """What happened behind the request `last` that changes what it said.

    Without a reason that is known it is "unexplained"; "" where a compaction was undone, which is
    no break.
    """
    since = next((n for n in range(len(records) - 1, -1, -1) if records[n] is last), -1) + 1
    fresh = records[since:]
    overlays = [overlay for record in fresh if (overlay := overlay_in(record))]
    for record in reversed(fresh):
        match record.type:
            case "uncompaction":
                return BreakReason("", "person")
            case "compaction":
                by = "person" if record.data.get("reason") == "manual" else "program"
                return BreakReason("compaction", by, cause=record.id)
            case "repair" if record.data.get("rung"):
                return BreakReason("repair", str(record.data.get("by") or "person"))
            case _ if record.type == FRAME:
                why = str(record.data.get("reason"))
                return BreakReason("compaction" if why == "compaction" else "reload", "program")
            case _ if record.type == BREAK:
                reason, by = (str(record.data.get(name)) for name in ("reason", "by"))
                return BreakReason(reason, by, recorded=True)
            case _:
                pass
    if not overlays:
        return BreakReason("unexplained", "program")
    changed = next((one for one in reversed(overlays) if one.by != "policy"), overlays[-1])
    by = "person" if changed.by == "person" else "program"
    reason = _BY_VIEW[changed.view] if changed.by != "overflow" else "overflow"
    return BreakReason(reason, by, first_turn(records, {overlay.target for overlay in overlays}))


def first_changed(records: Sequence[Record], last: Record | None) -> int:
    """The number of the first record that is sent in another form since the request `last`.

    0 where that concerns everything.
    """
    since = next((n for n in range(len(records) - 1, -1, -1) if records[n] is last), -1) + 1
    fresh = records[since:]
    whole = {"compaction", "repair", FRAME, BREAK}
    targets = {overlay.target for record in fresh if (overlay := overlay_in(record))}
    if not targets or any(record.type in whole for record in fresh):
        return 0
    return next((n for n, record in enumerate(records) if record.id in targets), 0)


def first_turn(records: Sequence[Record], targets: Collection[str]) -> str:
    """The record with which the first turn begins that a change concerns; "" for all of them.

    While a turn runs all thinking goes: part of a running turn's must not be left out.
    """
    if in_turn(records):
        return ""
    first = next((n for n, record in enumerate(records) if record.id in targets), 0)
    return records[turn_start(records, first)].id
