"""An index of what the records of a growing branch say about other ones: what is masked, pinned,
compacted, and sent without its thinking. No record is read twice. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tui.context.breaks import LostThinking
from tui.context.compaction_in_force import CompactionInForce, Summary
from tui.context.overrides import Overlays, content_of, take_pin
from tui.context.record_index import continues
from tui.core.dataclass import dataclass, field
from tui.core.messages import tool_calls
from tui.session.records import Record


@dataclass(slots=True)
class BranchIndex:
    """Follows one branch. One that was rewound is read again: then `changed` is another list.

    Several views of a branch can share one: each looks for itself what is new in `changed`, the
    places of records that are sent otherwise since, or may be.
    """

    places: dict[str, int] = field(default_factory=dict[str, int])
    """Where each record is, by id; of two with the same id, the last."""
    changed: list[int] = field(default_factory=list[int])
    overlays: Overlays = field(default_factory=Overlays)
    thinking: LostThinking = field(default_factory=LostThinking)
    pinned: frozenset[str] = frozenset()
    """The records that the person pinned. Another object if that has changed."""
    repairs: list[int] = field(default_factory=list[int])
    """The places of the repairs."""
    _compaction: CompactionInForce = field(default_factory=CompactionInForce)
    _callers: dict[str, int] = field(default_factory=dict[str, int])
    _called: int = 0
    """Number of records whose calls are in `_callers`."""
    _count: int = 0
    _last: Record | None = None

    def follow(self, records: Sequence[Record]) -> None:
        """Take in what is new of a branch."""
        if not continues(records, self._count, self._last):
            fresh = BranchIndex()
            for name in BranchIndex.__slots__:
                setattr(self, name, getattr(fresh, name))
        for place in range(self._count, len(records)):
            record = records[place]
            self.places[record.id] = place
            match record.type:
                case "overlay":
                    self._change(self.overlays.take(place, record))
                case "break":
                    self._change(self.overlays.take(place, record))
                    self.changed += self.thinking.take(place, records, self.places)
                case "assistant":
                    self.thinking.take(place, records, self.places)
                case "compaction" | "uncompaction":
                    self._compaction.take(record)
                    self.changed += self.thinking.take(place, records, self.places)
                case "pin":
                    self._pin(record)
                case "repair":
                    self.repairs.append(place)
                case _:
                    pass
        self._count = len(records)
        self._last = records[-1] if records else None

    def summary(self, records: Sequence[Record]) -> Summary | None:
        """The compaction in force on the branch; the same object as long as it is."""
        self.follow(records)
        return self._compaction.in_force(records, self.places)

    def caller(self, call_id: str, records: Sequence[Record]) -> int:
        """The place of the first answer with a call, or -1."""
        for place in range(self._called, self._count):
            if records[place].type == "assistant":
                for call in tool_calls(content_of(records[place])):
                    self._callers.setdefault(str(call.get("id")), place)
        self._called = self._count
        return self._callers.get(call_id, -1)

    def _change(self, targets: Iterable[str]) -> None:
        self.changed += [self.places[target] for target in targets if target in self.places]

    def _pin(self, record: Record) -> None:
        targets = set(self.pinned)
        take_pin(record, targets)
        pinned = frozenset(targets)
        if pinned != self.pinned:
            self.pinned = pinned
