"""The view: what the model gets to see of the record, and the state of each part. Pure.

    records → a summary replaces what it covers → history, record by record, with stand-ins for
    masked and cut ones → repaired → pruned by age

Overlays and compactions name records, so they apply where records become messages; the repair comes
after them and makes the result valid. Each of them, and a break, restarts the viewer, since it may
concern any turn; other records do not. Pruning by age comes last: its effect on a turn depends on
the turns after it (see `tui.context.prune`), and it changes only the text of results, so what was
valid stays valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tui.context.breaks import BREAK, thoughtless
from tui.context.compaction_view import Summary, ViewStart, begin
from tui.context.history import History, Rendering
from tui.context.overrides import (
    SPEAKING,
    RecordState,
    Stand,
    copy_of,
    overlay_in,
    overlays_of,
    pins_of,
    restored,
    stand,
)
from tui.context.prune import Due, Facts, PrunedMessages, Pruner
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


class Viewer:
    """Builds the views of one growing branch, each equal to the result of `build`.

    Finished turns are processed once: a view costs only what is new. For another branch or another
    model it starts over.
    """

    def __init__(
        self,
        room: Room | None = None,
        prune: Prune | None = None,
        *,
        head: Sequence[Message] = (),
        rendering: Rendering | None = None,
    ) -> None:
        """`room` and `prune` are the same as for `build`. Every view continues from `head`, a
        valid list. Compactions are ignored then, since they would cover what the head already
        replaces."""
        self._room = room
        self._rendering = rendering or Rendering()
        self._head = head
        self._pruner = Pruner(prune) if prune else None
        self._start_anew("", [])

    def build(
        self,
        records: Sequence[Record],
        *,
        model: str,
        thinking: Mapping[str, Any] | None = None,
        prompt_follows: bool = False,
    ) -> View:
        """Build the next view; see `build`."""
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
        hit = (id_ for id_ in self._hit(findings) if id_ not in self._stands)
        repaired: dict[str, RecordState] = dict.fromkeys(hit, "repaired")
        replaced: dict[str, RecordState] = {id_: one.state for id_, one in pruned.stands.items()}
        states: dict[str, RecordState] = {**self._states, **repaired, **replaced}
        stands = self._stands | pruned.stands
        switch = thinking_for(messages, thinking)
        return View(
            messages,
            findings,
            states,
            switch,
            stands,
            self._pinned,
            self._summary,
            pruned.due,
        )

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
        own = self._stands.get(record.id)
        exempt = record.id in self._pinned or record.id in self._restored
        return Facts(record.id, copy_of(record), exempt or (own is not None and own.state != "cut"))

    def _start_anew(self, model: str, records: Sequence[Record]) -> None:
        self._overlays, self._restored = overlays_of(records), restored(records)
        self._pinned = pins_of(records)
        concerned = self._pinned | self._overlays.keys()
        given = {
            record.id: one
            for record in records
            if record.id in concerned and (one := self._stand(record))
        }
        # A head is a replacement for the beginning, so no summary of the beginning applies.
        if self._head:
            opened = ViewStart(History(model, thoughtless(records), self._rendering))
            opened.history.go_on_from(self._head)
        else:
            opened = begin(
                records, model, pinned=self._pinned, stands=given, rendering=self._rendering
            )
        self._told, self._summary = opened.history, opened.summary
        self._stands: dict[str, Stand] = opened.stands
        self._states: dict[str, RecordState] = {}
        self._results: dict[str, Record] = {}
        self._last: Record | None = records[opened.end - 1] if opened.end else None
        self._count = opened.end
        for record in records[: opened.end]:
            self._note(record)
        self._states.update((id_, one.state) for id_, one in self._stands.items())
        if self._pruner is not None:
            self._pruner.restart()
        self._over = 0  # number of messages of the history that belong to finished turns
        self._settled: list[Message] = []  # the same messages as in a request
        self._findings: tuple[Finding, ...] = ()
        self._calls: set[str] = set()
        self._media = self._marks = 0

    def _follow(self, records: Sequence[Record], model: str) -> None:
        grown = len(records) >= self._count and (
            not self._count or records[self._count - 1] is self._last
        )
        fresh = records[self._count :] if grown else records
        if not grown or model != self._told.model or any(map(self._concerns_all, fresh)):
            self._start_anew(model, records)
        elif any(record.type == "pin" for record in fresh):
            self._pinned = pins_of(records)
            if self._pruner is not None:
                self._pruner.restart()
        for record in records[self._count :]:
            if record.type not in SPEAKING:
                continue
            stands = self._stand(record)
            self._told.add(record, stands)
            self._note(record)
            if stands is not None:
                self._stands[record.id] = stands
                self._states[record.id] = stands.state
        self._count = len(records)
        self._last = records[-1] if records else None

    def _concerns_all(self, record: Record) -> bool:
        """True if a record may change the state of any other."""
        if record.type in {"compaction", "uncompaction", BREAK}:
            return True
        if record.type == "pin":
            return self._summary is not None
        overlay = overlay_in(record)
        return overlay is not None and not overlay.wait

    def _stand(self, record: Record) -> Stand | None:
        return stand(record, self._overlays.get(record.id), self._room)

    def _note(self, record: Record) -> None:
        if record.type not in SPEAKING:
            return
        self._states[record.id] = "cut" if record.data.get("receipt") else "full"
        if record.type == "tool_result":
            self._results[str(record.data.get("call_id"))] = record

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
        self._calls |= calls_in(done)
        self._media += media
        self._marks += marks
        self._over = end

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
