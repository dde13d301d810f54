"""Why a request does not extend the last: what was recorded since that changes it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tui.context.breaks import BREAK, in_turn, turn_start
from tui.context.compaction_view import in_force
from tui.context.frame import FRAME
from tui.context.overrides import Overlay, overlay_in
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


def reason_of(
    records: Sequence[Record], last: Record | None, pruned: Collection[str] = ()
) -> BreakReason:
    """What happened behind the request `last` that changes what it said.

    A break that is recorded covers what came before it. `pruned` are the records that a rule prunes
    since the last request, or no longer. Without a reason that is known it is "unexplained"; ""
    where a compaction was undone, which is no break.
    """
    since = next((n for n in range(len(records) - 1, -1, -1) if records[n] is last), -1) + 1
    overlays: list[Overlay] = []
    pins: set[str] = set()
    whole: BreakReason | None = None
    undone: BreakReason | None = None
    for record in reversed(records[since:]):
        if overlay := overlay_in(record):
            overlays.append(overlay)
        elif record.type == "pin":
            pins.add(str(record.data.get("target")))
        elif record.type == "uncompaction":
            undone = BreakReason("", "person")
        elif record.type == "compaction" and undone:
            pass
        elif whole := _of_all(record):
            break
    whole = whole or undone
    pins = _beside_summary(records, pins)
    targets = {overlay.target for overlay in overlays} | pins | set(pruned)
    if not targets or (whole is not None and not whole.recorded and whole.reason):
        found = whole or BreakReason("unexplained", "program")
        return replace(found, cause="") if targets else found
    start = first_turn(records, targets)
    if not overlays and pins:
        return BreakReason("pin", "person", start)
    if not overlays:
        return BreakReason("prune", "program", start)
    changed = overlays[0]
    by = "person" if changed.by == "person" else "program"
    reason = _BY_VIEW[changed.view] if changed.by != "overflow" else "overflow"
    return BreakReason(reason, by, start)


def _beside_summary(records: Sequence[Record], pins: set[str]) -> set[str]:
    """Those of the pinned that a summary covers: they are said word for word beside it."""
    summary = in_force(records) if pins else None
    return {r.id for r in records[: summary.end] if r.id in pins} if summary else set()


def _of_all(record: Record) -> BreakReason | None:
    """What a record says of all that was sent, not of single records."""
    match record.type:
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
            return None


def first_turn(records: Sequence[Record], targets: Collection[str]) -> str:
    """The record with which the first turn begins that a change concerns; "" for all of them.

    While a turn runs all thinking goes: part of a running turn's must not be left out.
    """
    if in_turn(records):
        return ""
    first = next((n for n, record in enumerate(records) if record.id in targets), 0)
    return records[turn_start(records, first)].id
