"""The rungs of the repair ladder that a record holds, obeyed by the view. Pure.

    strict, drop_thinking    everything that is sent
    text_only, summary_only  what stands before the `repair` record; what follows, as it is. A later
                             compaction that covers all of it puts its summary in their place

See `tui.context.repair_levels` for what the rungs do, `tui.agent.request_repair` for how they are
chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tui.context.compaction_view import Summary, in_force
from tui.context.overrides import SPEAKING, Stand, State
from tui.context.repair_levels import RUNGS, Rung, climb
from tui.context.rules.order import Tail
from tui.context.view import View, Viewer, build
from tui.core.config import Prune
from tui.core.messages import Message, text_block, text_of
from tui.session.records import Finding, Record
from tui.tools.limits.clamp import Room

WHOLE: Final = frozenset[Rung]({"strict", "drop_thinking"})
"""The rungs that hold for everything: they leave calls with their results."""


def rung_in(record: Record) -> Rung | None:
    """The rung that a record climbs to, if it does."""
    if record.type != "repair":
        return None
    rung = record.data.get("rung")
    return rung if rung in RUNGS else None


def front_of(records: Sequence[Record]) -> int:
    """The number of the last record of a rung that concerns what stands before it, or -1."""
    for number in range(len(records) - 1, -1, -1):
        rung = rung_in(records[number])
        if rung is not None and rung not in WHOLE:
            return number
    return -1


class RungViewer:
    """Makes the views of one growing branch, as `Viewer` does, with the rungs in force."""

    def __init__(self, room: Room | None = None, prune: Prune | None = None) -> None:
        """`room` and `prune` are as in `Viewer`."""
        self._room = room
        self._prune = prune
        self._viewer = Viewer(room, prune)
        self._behind: tuple[str, str, list[Message], Viewer] | None = None
        self._start_anew()

    def build(self, records: Sequence[Record], *, model: str, prompt_follows: bool = False) -> View:
        """The view of a branch for a request to `model`; see `tui.context.view.build`."""
        self._follow(records)
        if self._front < 0 or (self._summary is not None and self._summary.end > self._front):
            seen = self._viewer.build(records, model=model, prompt_follows=prompt_follows)
        else:
            seen = self._go_on(records, self._front, model, prompt_follows=prompt_follows)
        if self._whole is None:
            return seen
        tail = _tail(prompt_follows=prompt_follows)
        messages, findings = climb(seen.messages, self._whole, tail=tail)
        return _changed(seen, messages, findings)

    def _start_anew(self) -> None:
        """`_whole` is the highest rung that holds for everything, `_front` the number of the last
        record of another one, or -1, `_summary` the compaction in force that came behind it."""
        self._whole: Rung | None = None
        self._front = -1
        self._summary: Summary | None = None
        self._count = 0
        self._last: Record | None = None

    def _follow(self, records: Sequence[Record]) -> None:
        """Find the rungs in force, from what came since."""
        count = self._count
        if count > len(records) or (count and records[count - 1] is not self._last):
            self._start_anew()
        compacted = False
        for number in range(self._count, len(records)):
            compacted |= records[number].type in {"compaction", "uncompaction"}
            rung = rung_in(records[number])
            if rung is None:
                continue
            if rung not in WHOLE:
                self._front, self._summary, compacted = number, None, False
            elif self._whole is None or RUNGS.index(rung) > RUNGS.index(self._whole):
                self._whole = rung
        if compacted and self._front >= 0:
            self._summary = in_force(records)
        self._count = len(records)
        self._last = records[-1] if records else None

    def _go_on(
        self, records: Sequence[Record], front: int, model: str, *, prompt_follows: bool
    ) -> View:
        """The view where the records up to number `front` stand on a rung of their own."""
        before, rung = records[:front], rung_in(records[front])
        assert rung is not None
        key = records[front].id
        if self._behind is None or self._behind[:2] != (key, model):
            told = build(before, model=model, room=self._room, prompt_follows=True)
            made, _ = climb(told.messages, rung, tail="open")
            self._behind = (key, model, made, Viewer(self._room, self._prune, head=made))
        _, _, head, viewer = self._behind
        seen = viewer.build(records[front + 1 :], model=model, prompt_follows=prompt_follows)
        speaking = [record.id for record in before if record.type in SPEAKING]
        gone = {id_: Stand("summarised", []) for id_ in speaking}
        if speaking:
            text = "\n".join(text_of(message["content"]) for message in head)
            gone[speaking[-1]] = Stand("summarised", [text_block(text or "(nothing)")])
        states: dict[str, State] = dict.fromkeys(speaking, "summarised")
        return replace(seen, states=states | seen.states, stands=gone | seen.stands)


def _changed(seen: View, messages: list[Message], findings: Sequence[Finding]) -> View:
    """A view with other messages.

    Where their number is another, nothing is known any more of where pruning will go on.
    """
    anchors = seen.anchors if len(messages) == len(seen.messages) else ()
    return replace(seen, messages=messages, findings=(*seen.findings, *findings), anchors=anchors)


def _tail(*, prompt_follows: bool) -> Tail:
    return "open" if prompt_follows else "user"
