"""The view: what the model gets to see of the record, and the state of each part. Pure.

    records → a summary replaces what it covers → history, record by record, with stand-ins for
    masked and cut ones → repaired → pruned by age

Overlays and compactions name records, so they apply where records become messages; the repair comes
after them and makes the result valid. One of them, or a break, takes the viewer back to the last
turn before what it changes, or to the summary; other records do not. Pruning by age comes last: its
effect on a turn depends on the turns after it (see `tui.context.prune`), and it changes only the
text of results, so what was valid stays valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from sys import maxsize
from typing import Any, NamedTuple

from tui.context.branch_index import BranchIndex
from tui.context.compaction_in_force import Summary
from tui.context.compaction_view import GONE, ViewStart, begin
from tui.context.history import History, Rendering
from tui.context.overrides import (
    SPEAKING,
    RecordState,
    Stand,
    copy_of,
    stand,
)
from tui.context.prune import Due, Facts, PrunedMessages, Pruner
from tui.context.record_index import continues
from tui.context.repair import CONTINUE, repair
from tui.context.repairs.message_draft import place
from tui.context.rules.blocks import is_paused
from tui.context.rules.media import MANY_IMAGES
from tui.context.validate import (
    begins_turn,
    calls_in,
    media_and_marks,
    moved_findings,
    thinking_for,
)
from tui.core.config import Prune
from tui.core.dataclass import dataclass, field
from tui.core.messages import Message, text_block
from tui.session.records import Finding, Record
from tui.tools.limits.clamp import Room

__all__ = ["RecordState", "Stand", "View", "Viewer", "build", "thinking_for"]


@dataclass(frozen=True, slots=True)
class View:
    """Messages that the API accepts. Read them, don't change them: their blocks are the record's.

    `findings` is the damage in the record; `states` the state of each sent record in the request,
    by id; `thinking` the switch that fits the messages; `stands` the stand-ins of records that are
    not sent as recorded, by id; `pinned` the records that nothing automatic removes. `summary` is
    the compaction in force, `due` what pruning would remove and has not yet.
    """

    messages: list[Message]
    findings: tuple[Finding, ...]
    states: dict[str, RecordState]
    thinking: dict[str, Any] | None = None
    stands: dict[str, Stand] = field(default_factory=dict[str, Stand])
    pinned: frozenset[str] = frozenset()
    summary: Summary | None = None
    due: tuple[Due, ...] = ()


def build(
    records: Sequence[Record],
    *,
    model: str,
    thinking: Mapping[str, Any] | None = None,
    prompt_follows: bool = False,
    room: Room | None = None,
    prune: Prune | None = None,
) -> View:
    """Build the view of a branch for a request to `model`.

    It ends with the user: if the last message is the model's, "(continue)" follows, unless a prompt
    does. That is part of asking, not damage, so it is no finding. `room` is the size allowed for a
    result; None for the limits as written. `prune` is the rule for pruning old results; None for no
    pruning.
    """
    viewer = Viewer(room, prune)
    return viewer.build(records, model=model, thinking=thinking, prompt_follows=prompt_follows)


class _Border(NamedTuple):
    """A place that a viewer can go back to, where a turn begins: the record that begins it, what
    was settled before it, and the calls since the last border."""

    record: int
    over: int
    settled: int
    findings: int
    media: int
    marks: int
    calls: frozenset[str]


def _state(record: Record) -> RecordState:
    """The state of a record that is sent as it is recorded."""
    return "cut" if record.data.get("receipt") else "full"


class Viewer:
    """Builds the views of one growing branch, each equal to the result of `build`.

    Finished turns are processed once: a view costs only what is new, or is sent otherwise since.
    For another branch or another model it starts over.
    """

    def __init__(
        self,
        room: Room | None = None,
        prune: Prune | None = None,
        *,
        head: Sequence[Message] = (),
        rendering: Rendering | None = None,
        index: BranchIndex | None = None,
    ) -> None:
        """`room` and `prune` are the same as for `build`. Every view continues from `head`, a
        valid list. Compactions are ignored then, since they would cover what the head already
        replaces. Viewers of one branch can share its `index`."""
        self._index = index or BranchIndex()
        self._room = room
        self._rendering = rendering or Rendering()
        self._head = head
        self._pruner = Pruner(prune) if prune else None
        self._changed: list[int] = self._index.changed
        self._seen, self._pinned = 0, self._index.pinned
        self._start_from(self._opening(""), [])

    def build(
        self,
        records: Sequence[Record],
        *,
        model: str,
        thinking: Mapping[str, Any] | None = None,
        prompt_follows: bool = False,
    ) -> View:
        """Build the next view; see `build`."""
        pruned, findings = self._build(records, model, thinking, prompt_follows=prompt_follows)
        states, stands = self._before(records)
        standing = {**stands, **self._stands}
        hit = (id_ for id_ in self._hit(findings) if id_ not in standing)
        repaired: dict[str, RecordState] = dict.fromkeys(hit, "repaired")
        replaced: dict[str, RecordState] = {id_: one.state for id_, one in pruned.stands.items()}
        switch = thinking_for(pruned.messages, thinking)
        return View(
            pruned.messages,
            findings,
            {**states, **self._states, **repaired, **replaced},
            switch,
            standing | pruned.stands,
            self._index.pinned,
            self._opened.summary,
            pruned.due,
        )

    def messages(
        self, records: Sequence[Record], *, model: str, prompt_follows: bool = False
    ) -> list[Message]:
        """Build the messages of the next view alone, which takes no time for what is covered."""
        return self._build(records, model, None, prompt_follows=prompt_follows)[0].messages

    def _build(
        self,
        records: Sequence[Record],
        model: str,
        thinking: Mapping[str, Any] | None,
        *,
        prompt_follows: bool,
    ) -> tuple[PrunedMessages, tuple[Finding, ...]]:
        self._follow(records, model)
        branch_messages = self._told.messages
        recent, findings = repair(branch_messages[self._over :], thinking=thinking, tail="open")
        # If the new messages don't depend on the finished turns, only they need a repair.
        if self._fits(recent, findings, thinking):
            sound, before, over = not findings, len(self._settled), self._over
            if sound:
                self._settle(recent, ())
                recent = recent[len(self._settled) - before :]
            pruned = self._prune(self._settled, recent, prompt_follows=prompt_follows)
            all_findings = (*self._findings, *moved_findings(findings, over))
            if not sound:
                self._settle(recent, findings)
            findings = all_findings
        else:
            whole, findings = repair(branch_messages, thinking=thinking, tail="open")
            pruned = self._prune(None, whole, prompt_follows=prompt_follows)
        messages = pruned.messages
        if messages:  # the last message may grow later: this view keeps its own copy
            last = messages[-1]
            messages[-1] = {"role": last["role"], "content": list(last["content"])}
            ended = last["role"] == "assistant" and not is_paused(last["content"])
            if ended and not prompt_follows:
                messages.append({"role": "user", "content": [text_block(CONTINUE)]})
        return pruned, findings

    def _before(self, records: Sequence[Record]) -> tuple[dict[str, RecordState], dict[str, Stand]]:
        """Return the states and the stand-ins of the covered records."""
        opened = self._opened
        if self._covered is None:
            stands = dict.fromkeys(opened.gone(records), GONE) | opened.stands
            states: dict[str, RecordState] = {
                record.id: stands[record.id].state if record.id in stands else _state(record)
                for record in records[: opened.end]
                if record.type in SPEAKING
            }
            self._covered = states, stands
        return self._covered

    def _prune(
        self, settled: Sequence[Message] | None, recent: Sequence[Message], *, prompt_follows: bool
    ) -> PrunedMessages:
        """Prune the messages; without `settled`, as a list that has nothing in common with earlier
        ones."""
        if self._pruner is None:
            return PrunedMessages([*(settled or ()), *recent], {})
        pruner = self._pruner if settled is not None else Pruner(self._pruner.rule)
        return pruner.prune(settled or (), recent, self._facts, prompt_follows=prompt_follows)

    def _facts(self, call_id: str) -> Facts | None:
        """Return the facts about a result; None if it is not known."""
        record = self._results.get(call_id)
        if record is None:
            return None
        own = self._stands.get(record.id) or self._opened.stands.get(record.id)
        index, opened = self._index, self._opened
        exempt = record.id in index.pinned or index.overlays.restores(record.id)
        if index.places[record.id] < opened.end and record.id not in opened.held:
            exempt = True  # it is gone
        return Facts(record.id, copy_of(record), exempt or (own is not None and own.state != "cut"))

    def _opening(self, model: str) -> ViewStart:
        """Begin with the head, or with nothing."""
        opened = ViewStart(History(model, self._index.thinking.ids, self._rendering), self._index)
        opened.history.go_on_from(self._head)
        return opened

    def _start_anew(self, model: str, records: Sequence[Record]) -> None:
        if self._head:  # it replaces the beginning, so no summary of the beginning applies
            self._start_from(self._opening(model), records)
            return
        pinned, rendering = self._index.pinned, self._rendering
        opened = begin(
            records, model, self._index, pinned=pinned, stand=self._stand, rendering=rendering
        )
        self._start_from(opened, records)

    def _start_from(self, opened: ViewStart, records: Sequence[Record]) -> None:
        self._opened, self._told = opened, opened.history
        self._covered: tuple[dict[str, RecordState], dict[str, Stand]] | None = None
        self._stands: dict[str, Stand] = {}
        self._states: dict[str, RecordState] = {}
        self._results: dict[str, Record] = {}
        if self._pruner is not None:
            for record in records[: opened.end]:
                self._note_result(record)
        self._last: Record | None = records[opened.end - 1] if opened.end else None
        self._count = opened.end
        self._borders: list[_Border] = []
        self._over = 0  # number of messages of the history that belong to finished turns
        self._settled: list[Message] = []  # the same messages as in a request
        self._findings: tuple[Finding, ...] = ()
        self._calls: set[str] = set()
        self._media = self._marks = 0

    def _follow(self, records: Sequence[Record], model: str) -> None:
        index = self._index
        index.follow(records)
        changed, pins = index.changed, index.pinned is not self._pinned
        summary = None if self._head else index.summary(records)
        grown = changed is self._changed and continues(records, self._count, self._last)
        first = min(changed[self._seen :], default=self._count) if grown else -1
        restarts = pins or first != self._count
        if (
            first < self._opened.end
            or model != self._told.model
            or summary is not self._opened.summary
            or (pins and summary is not None)
        ):
            self._start_anew(model, records)
            restarts = True
        elif first < self._count:
            self._go_back(first, records)
        if restarts and self._pruner is not None:
            self._pruner.restart()
        self._changed, self._seen, self._pinned = changed, len(changed), index.pinned
        for record in records[self._count :]:
            if record.type not in SPEAKING:
                continue
            stands = self._stand(record)
            self._told.add(record, stands)
            self._note_result(record)
            self._states[record.id] = stands.state if stands else _state(record)
            if stands is not None:
                self._stands[record.id] = stands
        self._count = len(records)
        self._last = records[-1] if records else None

    def _stand(self, record: Record) -> Stand | None:
        return stand(record, self._index.overlays.of(record.id), self._room)

    def _note_result(self, record: Record) -> None:
        if record.type == "tool_result" and self._pruner is not None:
            self._results[str(record.data.get("call_id"))] = record

    def _go_back(self, first: int, records: Sequence[Record]) -> None:
        """Go back to the last border before the first record that is sent otherwise now."""
        while self._borders and self._borders[-1].record > first:
            self._calls -= self._borders.pop().calls
        if not self._borders:
            self._start_anew(self._told.model, records)
            return
        border = self._borders[-1]
        for record in records[border.record : self._count]:
            self._states.pop(record.id, None)
            self._stands.pop(record.id, None)
        self._count, self._last = border.record, records[border.record - 1]
        self._told.go_back(border.over)
        del self._settled[border.settled :]
        self._findings = self._findings[: border.findings]
        self._over, self._media, self._marks = border.over, border.media, border.marks

    def _fits(
        self,
        recent: Sequence[Message],
        findings: Iterable[Finding],
        thinking: Mapping[str, Any] | None,
    ) -> bool:
        """True if the new messages are independent of the settled ones."""
        if not self._settled:
            return True
        media, marks = media_and_marks(recent)
        return (
            (thinking or {}).get("type") != "disabled"  # concerns the last answer, wherever it is
            and all(finding.code not in {"B02", "B39"} for finding in findings)
            and calls_in(recent).isdisjoint(self._calls)
            and media + self._media <= MANY_IMAGES
            and marks + self._marks == 0
        )

    def _settle(self, recent: Sequence[Message], findings: Sequence[Finding]) -> None:
        """Settle the finished turns: up to the last prompt after a finished answer.

        `recent` are the new messages, repaired, and `findings` the changes made by the repair.
        """
        branch_messages = self._told.messages
        end = len(branch_messages) - 1
        while end > self._over and not begins_turn(branch_messages, end):
            end -= 1
        if end <= self._over:
            return
        done, changes = self._up_to(end, recent, findings)
        lost = any(finding.code == "B02" for finding in changes)  # its call may still come
        ended = bool(done) and done[-1]["role"] == "assistant"
        if lost or not ended or not self._fits(done, changes, None):
            return
        media, marks = media_and_marks(done)
        self._settled.extend(done)
        self._findings += moved_findings(changes, self._over)
        calls = frozenset(calls_in(done))
        self._calls |= calls
        self._media += media
        self._marks += marks
        self._over = end
        counts = (len(self._settled), len(self._findings), self._media, self._marks)
        self._borders.append(_Border(self._place_of(end), end, *counts, calls))

    def _place_of(self, message: int) -> int:
        """The place of the first record in a message, or one behind all, if there is more in it
        than records after the summary."""
        sources = self._told.sources[message]
        place = min(self._index.places.get(id_, -1) for id_ in sources)
        return place if place >= self._opened.end else maxsize

    def _up_to(
        self, end: int, recent: Sequence[Message], findings: Sequence[Finding]
    ) -> tuple[Sequence[Message], tuple[Finding, ...]]:
        """Return the new messages up to a prompt, repaired on their own."""
        branch_messages = self._told.messages
        if not findings:
            return branch_messages[self._over : end], ()
        # If the repair left the prompt unchanged, as the same object, it repaired the turns before
        # it without looking further.
        for place_ in range(len(recent) - 1, -1, -1):
            if recent[place_] is branch_messages[end]:
                count = end - self._over
                return recent[:place_], tuple(f for f in findings if place(f.where)[0] < count)
        return repair(branch_messages[self._over : end], tail="open")

    def _hit(self, findings: Iterable[Finding]) -> Iterable[str]:
        """The records that findings are about."""
        for finding in findings:
            message, block = place(finding.where)
            if message >= 0:
                sources = self._told.sources[message]
                yield from filter(None, sources if block < 0 else [sources[block]])
