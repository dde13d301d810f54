"""The reason why a request doesn't extend the last: a recorded change since. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from tui.context.breaks import BACK, BREAK, in_turn, turn_start
from tui.context.compaction_in_force import in_force
from tui.context.frame import FRAME
from tui.context.overrides import overlay_in
from tui.core.dataclass import dataclass, field, replace
from tui.core.facts import Overlay
from tui.session.records import Record
from tui.session.request_numbers import REQUEST

_RENDERED = frozenset({"system_messages", "tool_additions", "turn_effort", "compaction_blocks"})
"""The features of a server that decide how messages are rendered."""

_BY_VIEW = {
    "pruned": "prune",
    "masked": "mask",
    "full": "unmask",
    "imageless": "mask",
    "clamped": "overflow",
}


@dataclass(frozen=True, slots=True)
class BreakReason:
    """The reason of a break, and its author ("person", "program" or "server").

    `start` is the record from which on thinking is left out, "" for all of it; `cause` the
    compaction with whose undoing it is void.
    """

    reason: str
    by: str
    start: str = ""
    cause: str = ""
    recorded: bool = False
    """True if a record says so already."""
    back: tuple[str, ...] = ()
    """The answers whose thinking goes out again."""

    def to_json(self) -> dict[str, Any]:
        """The fields of a `break` record."""
        data = {"reason": self.reason, "by": self.by}
        data |= {"from": self.start} if self.start else {}
        data |= {BACK: list(self.back)} if self.back else {}
        return data | ({"cause": self.cause} if self.cause else {})


def reason_of(
    records: Sequence[Record], last: Record | None, pruned: Collection[str] = ()
) -> BreakReason:
    """Find what happened after the request `last` that changes its content; without it, after the
    first one, which was made to another model.

    A break that is recorded covers what came before it. `pruned` are the records that a rule prunes
    since the last request, or no longer. Without a reason that is known it is "unexplained"; ""
    where a compaction was undone, which is no break.
    """
    known = (n for n, r in enumerate(records) if r is last or (last is None and r.type == REQUEST))
    fresh = _fresh(records, _before_undone(records, next(known, -1) + 1))
    pins = _covered_pins(records, fresh.pins)
    targets = {overlay.target for overlay in fresh.overlays} | pins | set(pruned)
    whole = fresh.whole
    # What changed everything goes before single records, unless a break says it already.
    if not targets or (whole is not None and not whole.recorded and whole.reason):
        found = whole or BreakReason("unexplained", "program")
        return replace(found, cause="") if targets else found
    start = first_turn(records, targets)
    if not fresh.overlays and pins:
        return BreakReason("pin", "person", start)
    if not fresh.overlays:
        return BreakReason("prune", "program", start)
    changed = next((one for one in fresh.overlays if one.by != "policy"), fresh.overlays[0])
    by = "person" if changed.by == "person" else "program"
    reason = _BY_VIEW[changed.view] if changed.by != "overflow" else "overflow"
    return BreakReason(reason, by, start)


@dataclass(slots=True)
class _Fresh:
    """Changes that no break covers yet: `overlays` (the newest first) and `pins` of single records,
    and `whole`, which changes all of it; that is a recorded break where nothing but those is
    left."""

    overlays: list[Overlay] = field(default_factory=list[Overlay])
    pins: set[str] = field(default_factory=set[str])
    whole: BreakReason | None = None


def _fresh(records: Sequence[Record], since: int) -> _Fresh:
    """Collect the changes recorded after number `since` that no break covers.

    A break from a record on covers the changes of it and of what follows. One without covers
    everything, but not for good where it is void with a compaction that was undone.
    """
    fresh = _Fresh()
    places = {record.id: place for place, record in enumerate(records)}
    floor = len(records)
    recorded: BreakReason | None = None
    undone: BreakReason | None = None
    # from the newest back: a break covers what was recorded before it
    for record in reversed(records[since:]):
        data = record.data
        if overlay := overlay_in(record):
            if not overlay.wait and places.get(overlay.target, 0) < floor:
                fresh.overlays.append(overlay)
        elif record.type == "pin":
            if places.get(str(data.get("target")), 0) < floor:
                fresh.pins.add(str(data.get("target")))
        elif record.type == "uncompaction":
            undone = BreakReason("", "person")
        # it was undone, so it changed nothing
        elif record.type == "compaction" and undone:
            pass
        elif record.type == BREAK:
            if undone and data.get("cause"):
                continue
            recorded = recorded or BreakReason(
                str(data.get("reason")), str(data.get("by")), recorded=True
            )
            start = data.get("from")
            # a break without a place covers everything before it
            if not isinstance(start, str):
                break
            floor = min(floor, places.get(start, 0))
        elif whole := _of_all(record):
            fresh.whole = whole
            return fresh
    fresh.whole = recorded or undone
    return fresh


def _before_undone(records: Sequence[Record], since: int) -> int:
    """From where on to look for changes after number `since`.

    The break of a compaction covers what changed just before it. Undone, it covers that no more.
    """
    undone = [n for n, record in enumerate(records) if record.type == "uncompaction"]
    if not undone or undone[-1] < since:
        return since
    begin = undone[-2] if len(undone) > 1 else 0
    summarized = next((n for n in range(begin, undone[-1]) if records[n].type == "compaction"), 0)
    sent = (n for n in range(summarized - 1, -1, -1) if records[n].type == REQUEST)
    return min(since, next(sent, -1) + 1)


def _covered_pins(records: Sequence[Record], pins: set[str]) -> set[str]:
    """The pinned items that a summary covers: they are sent word for word after it."""
    summary = in_force(records) if pins else None
    return {r.id for r in records[: summary.end] if r.id in pins} if summary else set()


def _of_all(record: Record) -> BreakReason | None:
    """Return the reason by which a record changes all that was sent, not single records."""
    match record.type:
        case "compaction":
            by = "person" if record.data.get("reason") == "manual" else "program"
            return BreakReason("compaction", by, cause=record.id)
        case "feature" if record.data.get("feature") in _RENDERED:
            return BreakReason("refused", "server")
        case "repair" if record.data.get("rung"):
            return BreakReason("repair", str(record.data.get("by") or "person"))
        case _ if record.type == FRAME:
            why = str(record.data.get("reason"))
            return BreakReason(why if why in {"compaction", "repair"} else "reload", "program")
        case _:
            return None


def with_pending(
    records: Sequence[Record], why: BreakReason, targets: Collection[str]
) -> BreakReason:
    """A break with which these records change, too, that waited for one."""
    start = first_turn(records, targets) if targets and why.start else why.start
    places = {record.id: place for place, record in enumerate(records)}
    first = min(start, why.start, key=lambda id_: places.get(id_, -1))
    return replace(why, start=first)


def first_changed(records: Sequence[Record], last: Record | None) -> int:
    """The number of the first record that is sent in another form since the request `last`.

    0 where that concerns everything.
    """
    since = next((n for n in range(len(records) - 1, -1, -1) if records[n] is last), -1) + 1
    fresh = records[since:]
    whole = {"compaction", "repair", FRAME, BREAK}
    every = [overlay for record in fresh if (overlay := overlay_in(record))]
    targets = {overlay.target for overlay in every if not overlay.wait}
    if not targets or any(record.type in whole or _of_all(record) for record in fresh):
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
