"""The ledger: every item of the next request, what it weighs, and how it stands there.

What the server measured with the last answer is the base; to it comes what was added, masked or
taken away since, estimated by what is known of the model. Sums are kept as items come and change,
so a new record costs its own size and a changed state that item's, whatever the length of the
session.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tui.calibration import Calibration, Sample
from tui.context.ledger_items import (
    ADDED,
    IN_MESSAGE,
    PARTS,
    Entry,
    Item,
    Kind,
    Measure,
    Part,
    entry_of,
    fixed_entries,
    kept_out,
    listed,
    sample_of,
    standing,
    usage_by,
    with_images,
)
from tui.context.overlay import SPEAKING, Stand, State, content_of
from tui.context.rules.blocks import THINKING
from tui.context.weigh import NOTHING, Weight, of_blocks, roughly
from tui.messages import Block, Usage
from tui.session.records import Record

__all__ = ["ADDED", "PARTS", "Item", "Kind", "Ledger", "Measure", "Part"]

_MANY = 10_000
_TURNS = 6
"""So many turns make the forecast."""


@dataclass(slots=True)
class Ledger:
    """The items of the next request to one model. Owned by one agent."""

    model: str = ""
    calibration: Calibration = field(default_factory=Calibration)
    _fixed: dict[str, Entry] = field(default_factory=dict[str, Entry])
    _entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    _sums: dict[Kind, Weight] = field(default_factory=lambda: dict.fromkeys(PARTS, NOTHING))
    _pinned: Collection[str] = ()
    _measured: int = 0
    _since: Weight = NOTHING
    _pure: bool = True  # nothing was taken away since
    _thinking: list[tuple[Entry, float]] = field(default_factory=list[tuple["Entry", float]])
    _prompt: list[Block] | None = None  # unanswered
    _marks: deque[float] = field(default_factory=lambda: deque(maxlen=_TURNS))
    _drift: float | None = None
    _saved: int = 0
    _stood: dict[str, State] = field(default_factory=dict[str, State])  # as it was set last
    _stands: Mapping[str, Stand] = field(default_factory=dict[str, Stand])
    _summary: Entry | None = None
    _stale: bool = False  # a compaction came after what was measured

    def fixed(self, layers: Iterable[tuple[str, str]], tools: Sequence[Mapping[str, Any]]) -> None:
        """Set what every request carries: (name, text) of the system layers, tool schemas."""
        now = fixed_entries(layers, tools)
        if self._fixed.keys() - now.keys() and self._measured:
            self._pure = False
        for entry in self._fixed.values():
            self._count(entry.kind, entry.weight, -1)
        for entry in now.values():
            self._count(entry.kind, entry.weight)
        self._fixed = now

    def resume(self, records: Sequence[Record]) -> None:
        """Take in what was recorded earlier. Nothing is learned from it a second time.

        In a very long session, what the last answer measured is told apart by lengths only.
        """
        covered = 0
        if len(records) > _MANY:
            found = (n for n in range(len(records), 0, -1) if usage_by(records[n - 1], self.model))
            covered = next(found, 0)
        for number, record in enumerate(records):
            self._enter(record, learn=False, weigh=roughly if number < covered else of_blocks)

    def add(self, record: Record) -> None:
        """Take in a record that the next request will carry; others cost nothing.

        An answer with usage is a measurement of everything so far, and teaches the calibration.
        """
        self._enter(record, learn=True)

    def stand(
        self,
        states: Mapping[str, State],
        stands: Mapping[str, Stand],
        pinned: Collection[str] = (),
        *,
        summary: Record | None = None,
        measured: bool = False,
    ) -> None:
        """Set how items stand, by id; one that is not named stands as before. `pinned` is all pins.

        `stands` has what is sent of those that are not sent as recorded; `summary` is the
        compaction in force. `measured`: they stood so in the last request already, so that the
        server's measure holds.
        """
        self._pinned = pinned
        measured = measured and not self._stale
        anew = self._sum_up(summary, measured=measured)
        stood, before = self._stood, self._stands
        changed = [id_ for id_, state in states.items() if stood.get(id_) is not state]
        changed += [id_ for id_, stand in stands.items() if before.get(id_) is not stand]
        changed += before.keys() - stands.keys()
        for id_ in changed:
            entry, state = self._entries.get(id_), states.get(id_)
            if entry is None or state is None:
                continue
            stood[id_] = entry.state = state
            if (stand := stands.get(id_)) != entry.stand:
                entry.stand = stand
                self._restand(entry, measured=measured)
        self._stands = stands
        if anew:
            self._reckon()

    def use(self, model: str, calibration: Calibration) -> None:
        """Reckon for another model: what one measured says nothing about the other."""
        self.model, self.calibration = model, calibration
        entries, fixed = self._entries, self._fixed
        self._entries, self._fixed = {}, {}
        self._sums = dict.fromkeys(PARTS, NOTHING)
        self._since, self._pure, self._measured, self._saved = NOTHING, True, 0, 0
        self._prompt, self._drift = None, None
        self._thinking.clear()
        self._marks.clear()
        for entry in fixed.values():
            self._count(entry.kind, entry.weight)
        self._fixed = fixed
        if self._summary is not None:
            self._count("summary", self._summary.weight)
        for entry in entries.values():
            if entry.record is not None:
                self._enter(entry.record, learn=False, known=entry)

    @property
    def tokens(self) -> int:
        """Tokens of the next request, less the prompt."""
        return round(self._total())

    def under(self, calibration: Calibration) -> int:
        """The tokens of the next request as what is known of another model reckons them."""
        own = sum(w.known + calibration.tokens(sample_of(w)) for w in self._sums.values())
        return round(max(0.0, own + calibration.tokens(Sample(first=1.0))))

    def measure(self) -> Measure:
        """The figures for the screen."""
        total = self.tokens
        parts: dict[Part, float] = dict.fromkeys(PARTS.values(), 0.0)
        for kind, weight in self._sums.items():
            parts[PARTS[kind]] += self._tokens(weight)
        parts["system"] += self._added()
        return Measure(
            total,
            self._measured,
            total - self._measured,
            {part: round(size) for part, size in parts.items()},
            self._drift,
            self._saved,
        )

    def forecast(self, limit: float) -> int | None:
        """In how many turns like the last ones the context reaches `limit` tokens.

        None while that is unknown, and where it does not grow; 0 where it is reached.
        """
        now = self._total()
        if now >= limit:
            return 0
        if len(self._marks) < 2:
            return None
        growth = (now - self._marks[0]) / len(self._marks)
        return math.ceil((limit - now) / growth) if growth >= 1 else None

    def would(self, id_: str, stand: Stand | None) -> int:
        """The tokens of a record's item if it stood so; None is as recorded. Raises KeyError."""
        entry = self._entries[id_]
        return round(self._tokens(standing(entry, stand)))

    def items(self, *, images: bool = False) -> list[Item]:
        """All items in the order of the request; with `images` those of prompts apart."""
        items = listed(
            self._fixed,
            self._added(),
            self._summary,
            self._entries,
            pinned=self._pinned,
            tokens_of=self._tokens,
        )
        return with_images(items, self._entries, self._tokens) if images else items

    def _enter(
        self,
        record: Record,
        *,
        learn: bool,
        known: Entry | None = None,
        weigh: Callable[[list[Block]], Weight] = of_blocks,
    ) -> None:
        self._stale = self._stale or record.type in {"compaction", "uncompaction"}
        if record.type not in SPEAKING:
            return
        content = content_of(record)
        if record.type == "user":
            if content and content == self._prompt:
                return  # sent again after a failure: it stands in the request once (B58)
            self._begin_turn(content)
        entry = known or entry_of(record, weigh(content))
        usage = usage_by(record, self.model)
        if usage is not None:
            self._take_measure(usage, learn=learn)
        entry.weight = entry.own
        if usage is not None and usage.output_tokens:
            entry.weight = Weight(known=usage.output_tokens)
        self._sums[entry.kind] = self._sums[entry.kind].plus(entry.weight)
        self._entries[record.id] = entry
        if record.type in {"assistant", "interrupt"}:
            self._prompt = None
        if usage is None:
            self._since = self._since.plus(entry.weight)
        elif any(str(block.get("type")) in THINKING for block in content):
            said = of_blocks(block for block in content if str(block.get("type")) not in THINKING)
            self._thinking.append((entry, max(0.0, usage.output_tokens - self._tokens(said))))
        self._saved += kept_out(record)
        if entry.stand is not None:  # only where it was known before
            self._restand(entry, measured=False)

    def _take_measure(self, usage: Usage, *, learn: bool) -> None:
        expected = self._total()
        self._drift = expected / usage.prompt_tokens - 1
        if learn and self._pure and not self._since.known:
            first = 0.0 if self._measured else 1.0
            self.calibration.learn(
                sample_of(self._since, first), usage.prompt_tokens - self._measured
            )
        self._measured = usage.total
        self._since, self._pure, self._stale = NOTHING, True, False

    def _begin_turn(self, content: list[Block]) -> None:
        if self._prompt is None:  # not one of several prompts in a row
            self._marks.append(self._total())
            for entry, thinking in self._thinking:
                if entry.stand is None:
                    self._change(entry, entry.weight._replace(thought=thinking))
            self._thinking.clear()
        self._prompt = content

    def _restand(self, entry: Entry, *, measured: bool) -> None:
        before = self._total()
        change = self._change(entry, standing(entry, entry.stand))
        if measured and self._measured:
            self._since = self._since.plus(change, -1)
            return
        self._pure = self._pure and not self._measured
        moved = self._total() - before
        for index in range(len(self._marks)):  # what was taken away did not make turns smaller
            self._marks[index] += moved

    def _sum_up(self, summary: Record | None, *, measured: bool) -> bool:
        """Count the compaction in force. Returns whether nothing measured holds any more."""
        before = self._summary
        if (before and before.record) == summary:
            return False
        self._summary, since = None, self._since
        if before is not None:
            self._count("summary", before.weight, -1)
        if summary is not None:
            weight = of_blocks(content_of(summary)).plus(IN_MESSAGE)
            self._summary = Entry("summary", summary, weight, weight)
            self._count("summary", weight)
        if measured:
            self._since = since
        return not measured

    def _reckon(self) -> None:
        """Estimate all of it anew: what was measured holds no more."""
        self._measured, self._pure, self._drift, self._since = 0, True, None, NOTHING
        for weight in self._sums.values():
            self._since = self._since.plus(weight)
        self._thinking.clear()
        self._marks.clear()
        self._stale = False

    def _change(self, entry: Entry, weight: Weight) -> Weight:
        change = weight.plus(entry.weight, -1)
        entry.weight = weight
        self._count(entry.kind, change)
        return change

    def _count(self, kind: Kind, weight: Weight, sign: int = 1) -> None:
        self._sums[kind] = self._sums[kind].plus(weight, sign)
        self._since = self._since.plus(weight, sign)

    def _total(self) -> float:
        since = self._tokens(self._since)
        if not self._measured:
            return max(0.0, since + self._added())
        return max(0.0, self._measured + since)

    def _added(self) -> float:
        return self.calibration.tokens(Sample(first=1.0))

    def _tokens(self, weight: Weight) -> float:
        return weight.known + self.calibration.tokens(sample_of(weight))
