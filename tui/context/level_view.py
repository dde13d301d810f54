"""Views at the repair level that the records of a branch ask for. Pure.

    strict, drop_thinking    everything that is sent
    text_only, summary_only  only what is before the `repair` record; what follows is unchanged. A
                             later compaction that covers all of it replaces it by its summary

See `tui.context.repair_levels` for the effects of the levels, and `tui.agent.recovery` for how one
is chosen. In the record, the level is the field `rung`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tui.context.branch_index import BranchIndex
from tui.context.compaction_in_force import Summary
from tui.context.history import Rendering
from tui.context.overrides import SPEAKING, RecordState, Stand
from tui.context.repair_levels import REPAIR_LEVELS, RepairLevel, apply_level
from tui.context.rules.order import Tail
from tui.context.view import View, Viewer, build
from tui.core.config import Prune
from tui.core.messages import Message, text_block, text_of
from tui.session.records import Finding, Record
from tui.tools.limits.clamp import Room

WHOLE: Final = frozenset[RepairLevel]({"strict", "drop_thinking"})
"""The levels that apply to the whole request: they keep calls and results."""


def level_of(record: Record) -> RepairLevel | None:
    """The repair level that a record sets; None if it sets none."""
    if record.type != "repair":
        return None
    level = record.data.get("rung")
    return level if level in REPAIR_LEVELS else None


def last_front_level(records: Sequence[Record]) -> int:
    """The index of the last record whose level applies only to what is before it, or -1."""
    for number in range(len(records) - 1, -1, -1):
        level = level_of(records[number])
        if level is not None and level not in WHOLE:
            return number
    return -1


class LevelViewer:
    """Builds the views of one growing branch, as `Viewer` does, with the repair levels in force."""

    def __init__(
        self,
        room: Room | None = None,
        prune: Prune | None = None,
        rendering: Rendering | None = None,
        index: BranchIndex | None = None,
    ) -> None:
        """`room`, `prune` and `index` are the same as for `Viewer`."""
        self._index = index or BranchIndex()
        self._room = room
        self._prune = prune
        self._rendering = rendering
        self._viewer = Viewer(room, prune, rendering=rendering, index=self._index)
        self._behind: tuple[str, str, list[Message], Viewer] | None = None
        self._whole: RepairLevel | None = None
        self._front = -1
        self._summary: Summary | None = None

    def build(self, records: Sequence[Record], *, model: str, prompt_follows: bool = False) -> View:
        """Build the view of a branch for a request to `model`; see `tui.context.view.build`."""
        self._follow(records)
        if self._covers_front():
            view = self._viewer.build(records, model=model, prompt_follows=prompt_follows)
        else:
            view = self._go_on(records, self._front, model, prompt_follows=prompt_follows)
        if self._whole is None:
            return view
        tail = _tail(prompt_follows=prompt_follows)
        messages, findings = apply_level(view.messages, self._whole, tail=tail)
        return _changed(view, messages, findings)

    def messages(self, records: Sequence[Record], *, model: str) -> list[Message]:
        """Build the messages of a view alone; see `Viewer.messages`."""
        self._follow(records)
        if not self._covers_front():
            return self.build(records, model=model).messages
        messages = self._viewer.messages(records, model=model)
        if self._whole is None:
            return messages
        return apply_level(messages, self._whole, tail="user")[0]

    def _covers_front(self) -> bool:
        """True if no level applies to the beginning, or a summary replaces what it applies to."""
        return self._front < 0 or (self._summary is not None and self._summary.end > self._front)

    def _follow(self, records: Sequence[Record]) -> None:
        """Update the levels in force: the highest for the whole request, the place of the last of
        any other level, or -1, and the compaction in force that came after it."""
        index = self._index
        index.follow(records)
        self._whole, self._front, self._summary = None, -1, None
        for place in index.repairs:
            level = level_of(records[place])
            if level is None:
                continue
            if level not in WHOLE:
                self._front = place
            elif self._whole is None or REPAIR_LEVELS.index(level) > REPAIR_LEVELS.index(
                self._whole
            ):
                self._whole = level
        # A level that follows a compaction is not covered by it, so only later ones count.
        summary = index.summary(records) if self._front >= 0 else None
        if summary is not None and index.places[summary.record.id] > self._front:
            self._summary = summary

    def _go_on(
        self, records: Sequence[Record], front: int, model: str, *, prompt_follows: bool
    ) -> View:
        """Build the view with the records before index `front` at a level of their own."""
        before, level = records[:front], level_of(records[front])
        assert level is not None
        key = records[front].id
        # The messages before the level do not change any more: render them once.
        if self._behind is None or self._behind[:2] != (key, model):
            whole = build(before, model=model, room=self._room, prompt_follows=True)
            made, _ = apply_level(whole.messages, level, tail="open")
            self._behind = (
                key,
                model,
                made,
                Viewer(self._room, self._prune, head=made, rendering=self._rendering),
            )
        _, _, head, viewer = self._behind
        view = viewer.build(records[front + 1 :], model=model, prompt_follows=prompt_follows)
        speaking = [record.id for record in before if record.type in SPEAKING]
        gone = {id_: Stand("summarised", []) for id_ in speaking}
        if speaking:
            text = "\n".join(text_of(message["content"]) for message in head)
            gone[speaking[-1]] = Stand("summarised", [text_block(text or "(nothing)")])
        states: dict[str, RecordState] = dict.fromkeys(speaking, "summarised")
        return replace(view, states=states | view.states, stands=gone | view.stands)


def _changed(view: View, messages: list[Message], findings: Sequence[Finding]) -> View:
    """Return a view with other messages."""
    return replace(view, messages=messages, findings=(*view.findings, *findings))


def _tail(*, prompt_follows: bool) -> Tail:
    return "open" if prompt_follows else "user"
