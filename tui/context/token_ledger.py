"""The ledger: every item of the next request, what it weighs, and how it stands there.

What the server reported with the last answer, or counted itself, is the base; to it comes what was
added since, its weight times the model's ratio, and what was masked or taken away goes off. The
items share that total by their weights, so that they sum up to it. Sums are kept as items come and
change: a new record costs its own size and a changed state that item's, whatever the length of the
session.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from tui.context.ledger_items import (
    PARTS,
    Entry,
    Item,
    ItemSize,
    Kind,
    Measure,
    Part,
    RunningSums,
    entry_of,
    fixed_entries,
    in_frame,
    listed,
    usage_by,
    weight_as,
    with_images,
    withheld_tokens,
)
from tui.context.overrides import SPEAKING, RecordState, Stand, content_of, framed_summary
from tui.context.rules.blocks import THINKING
from tui.core.messages import Block, text_block
from tui.session.records import Record
from tui.tokens import estimate

__all__ = ["PARTS", "Item", "Kind", "Ledger", "Measure", "Part"]

_TURNS = 6
"""How many turns make the forecast."""
_UNLIKE_TEXT = THINKING | {"image", "document"}
"""Blocks that cost what no ratio of text says."""


@dataclass(slots=True)
class Ledger:
    """The items of the next request to one model, which has `ratio`. Owned by one agent."""

    model: str = ""
    ratio: float = estimate.UNKNOWN
    sent: RunningSums = field(default_factory=RunningSums)
    """What the records weigh as they stand now, by the numbers of their entries."""
    brought: RunningSums = field(default_factory=RunningSums)
    """What those weigh that no summary covers, as recorded."""
    _fixed: dict[str, Entry] = field(default_factory=dict[str, Entry])
    _entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    _weights: dict[Kind, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    _pinned: Collection[str] = ()
    _measured: int = 0  # tokens
    _estimated: float = 0.0  # tokens that came since, or all where nothing was measured
    _since: float = 0.0  # the weight of the same
    _comparable: bool = True  # nothing but text came since, and nothing went
    _thought: bool = False  # in the turn, which a model may forget when it is over
    _prompt: list[Block] | None = None  # unanswered
    _marks: deque[float] = field(default_factory=lambda: deque(maxlen=_TURNS))
    _drift: float | None = None
    _saved: int = 0
    _stood: dict[str, RecordState] = field(
        default_factory=dict[str, RecordState]
    )  # as it was set last
    _seen: Mapping[str, RecordState] = field(
        default_factory=dict[str, RecordState]
    )  # as given last; none where a record came after its state
    _stands: Mapping[str, Stand] = field(default_factory=dict[str, Stand])
    _summary: Entry | None = None
    _stale: bool = False  # a compaction came after what was measured

    def fixed(self, layers: Iterable[tuple[str, str]], tools: Sequence[Mapping[str, Any]]) -> None:
        """Set what every request carries: (name, text) of the system layers, tool schemas."""
        now = fixed_entries(layers, tools)
        share, before = self.share, self._weight()
        for entry in self._fixed.values():
            self._weights[entry.kind] -= entry.weight
        for entry in now.values():
            self._weights[entry.kind] += entry.weight
        change = self._weight() - before
        self._estimated += change * share
        self._since += change
        if self._measured and self._fixed.keys() - now.keys():
            self._comparable = False
        self._fixed = now

    def resume(self, records: Sequence[Record]) -> None:
        """Take in what was recorded earlier. Nothing is learned from it a second time."""
        for record in records:
            self._enter(record, learn=False)

    def add(self, record: Record) -> None:
        """Take in a record that the next request will carry; others cost nothing.

        An answer with usage is a measurement of everything so far, from which the ratio is learned.
        """
        self._enter(record, learn=True)

    def count(self, tokens: int) -> None:
        """Take the server's own count of the next request, less the prompt: it measures as an
        answer's usage does, and the ratio is learned from it."""
        self._measure(tokens, tokens, learn=True)

    def stand(
        self,
        states: Mapping[str, RecordState],
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
        if _grown(states, self._seen):
            changed = [*islice(states, len(self._seen), None)]
        else:
            changed = [id_ for id_, state in states.items() if stood.get(id_) is not state]
        if _grown(stands, before):
            changed += islice(stands, len(before), None)
        else:
            changed += [id_ for id_, stand in stands.items() if before.get(id_) is not stand]
            changed += before.keys() - stands.keys()
        for id_ in changed:
            entry, state = self._entries.get(id_), states.get(id_)
            if entry is None or state is None:
                continue
            stood[id_] = entry.state = state
            self._count(entry)
            if (stand := stands.get(id_)) != entry.stand:
                entry.stand = stand
                self._restand(entry, measured=measured)
        self._seen, self._stands = states, stands
        if anew:
            self._reckon()

    def use(self, model: str, ratio: float) -> None:
        """Reckon for another model: what one measured says nothing about the other."""
        self.model, self.ratio = model, ratio
        entries, self._entries = self._entries, {}
        self._weights = dict.fromkeys(PARTS, 0.0)
        for entry in self._fixed.values():
            self._weights[entry.kind] += entry.weight
        if self._summary is not None:
            self._weights["summary"] += self._summary.weight
        self._saved, self._prompt, self._thought = 0, None, False
        self._reckon()
        for entry in entries.values():
            if entry.record is not None:
                self._enter(entry.record, learn=False, known=entry)

    @property
    def tokens(self) -> int:
        """Tokens of the next request, less the prompt."""
        return round(self._total())

    def under(self, ratio: float) -> int:
        """The tokens of the next request to a model with another ratio."""
        return round(self._weight() * ratio)

    def measure(self) -> Measure:
        """The figures for the screen."""
        total, share = self.tokens, self.share
        parts: dict[Part, int] = dict.fromkeys(PARTS.values(), 0)
        weight, shown = 0.0, 0
        for kind, own in self._weights.items():  # rounded so that they sum up
            weight += own
            parts[PARTS[kind]] += round(weight * share) - shown
            shown = round(weight * share)
        return Measure(
            total, self._measured, total - self._measured, parts, self._drift, self._saved
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
        return round(self.share * weight_as(self._entries[id_], stand))

    def compacted(self, ids: Iterable[str], summary: str) -> int:
        """The tokens of the next request with a summary in the place of records, by id, and of the
        compaction in force: all of it estimated, as after a compaction."""
        weight = self._weight() + in_frame("summary", [text_block(framed_summary(summary))])
        weight -= sum(self._entries[id_].weight for id_ in ids if id_ in self._entries)
        weight -= self._summary.weight if self._summary else 0.0
        return round(max(0.0, self.ratio * weight))

    def items(self, *, images: bool = False) -> list[Item]:
        """All items in the order of the request; with `images` those of prompts apart."""
        share = self.share
        items = listed(self._fixed, self._summary, self._entries, pinned=self._pinned, ratio=share)
        return with_images(items, self._entries, share) if images else items

    def conversation_sizes(self) -> list[ItemSize]:
        """The sizes of the summary and the records, in the order of the request: what decisions
        need of `items`, without the labels, which take far longer."""
        share = self.share
        sizes = [
            ItemSize(id_, entry.state, round(share * entry.weight), round(share * entry.own))
            for id_, entry in self._entries.items()
        ]
        if self._summary is not None and self._summary.record is not None:
            tokens = round(share * self._summary.weight)
            sizes.insert(0, ItemSize(self._summary.record.id, "full", tokens, 0))
        return sizes

    def entries_of(self, ids: Iterable[str]) -> list[Entry]:
        """The entries of records, each once; of those that have one. To be read, not changed."""
        found = (self._entries.get(id_) for id_ in dict.fromkeys(ids))
        return [entry for entry in found if entry is not None]

    def state_of(self, id_: str) -> RecordState | None:
        """How a record stands in the next request; None for one that is not in it."""
        entry = self._entries.get(id_)
        return entry.state if entry else None

    def _enter(self, record: Record, *, learn: bool, known: Entry | None = None) -> None:
        self._stale = self._stale or record.type in {"compaction", "uncompaction"}
        if record.type not in SPEAKING:
            return
        content = content_of(record)
        if record.type == "user":
            if content and content == self._prompt:
                return  # sent again after a failure: it is in the request once
            self._begin_turn(content)
        entry = known or entry_of(record, content)
        entry.weight = entry.own
        unlike = any(str(block.get("type")) in _UNLIKE_TEXT for block in content)
        usage = usage_by(record, self.model)
        if usage is None:
            self._since += entry.weight
            self._estimated += entry.weight * self.ratio
            self._comparable = self._comparable and not unlike
        else:
            if usage.context_tokens:  # the other counts are sums, of which nothing is learned
                self._take(usage.context)
            else:
                self._measure(usage.prompt_tokens, usage.total, learn=learn)
            self._thought = self._thought or unlike
            if usage.output_tokens and not usage.context_tokens:
                entry.weight = usage.output_tokens / self.ratio
        self._weights[entry.kind] += entry.weight
        before = self._entries.get(record.id)
        entry.number = before.number if before else len(self._entries)
        self._entries[record.id] = entry
        self._count(entry)
        if record.id in self._seen:
            self._seen = {}
        if record.type in {"assistant", "interrupt"}:
            self._prompt = None
        self._saved += withheld_tokens(record)
        if entry.stand is not None:  # only where it was known before
            self._restand(entry, measured=False)

    def _measure(self, prompt: int, total: int, *, learn: bool) -> None:
        """Take the tokens that the server found so far; `total` is with the answer to them."""
        self._drift = self._total() / max(1, prompt) - 1
        if learn and self._comparable:
            reported = prompt - self._measured
            self.ratio = estimate.smoothed(self.ratio, self._since, reported)
        self._take(total)

    def _take(self, total: int) -> None:
        """So much is in the context, as the server found."""
        self._measured, self._estimated, self._since = total, 0.0, 0.0
        self._comparable, self._stale = True, False

    def _begin_turn(self, content: list[Block]) -> None:
        if self._prompt is None:  # not one of several prompts in a row
            self._marks.append(self._total())
            self._comparable = self._comparable and not self._thought
            self._thought = False
        self._prompt = content

    def _restand(self, entry: Entry, *, measured: bool) -> None:
        weight, share = weight_as(entry, entry.stand), self.share
        change = weight - entry.weight
        entry.weight = weight
        self._count(entry)
        self._weights[entry.kind] += change
        if measured and self._measured:
            return
        self._since += change
        self._estimated += change * share
        self._comparable = self._comparable and not self._measured
        for index in range(len(self._marks)):  # what was taken away did not make turns smaller
            self._marks[index] += change * share

    def _count(self, entry: Entry) -> None:
        self.sent.put(entry.number, entry.weight)
        self.brought.put(entry.number, 0.0 if entry.state == "summarised" else entry.own)

    def _sum_up(self, summary: Record | None, *, measured: bool) -> bool:
        """Count the compaction in force. Returns whether nothing measured holds any more."""
        before = self._summary
        if (before and before.record) == summary:
            return False
        self._summary = None
        if before is not None:
            self._weights["summary"] -= before.weight
        if summary is not None:
            weight = in_frame("summary", content_of(summary))
            self._summary = Entry("summary", summary, weight, weight)
            self._weights["summary"] += weight
        return not measured

    def _reckon(self) -> None:
        """Estimate all of it again: what was measured holds no more."""
        self._measured, self._since = 0, self._weight()
        self._estimated = self._since * self.ratio
        self._comparable, self._stale, self._drift = True, False, None
        self._marks.clear()

    def _weight(self) -> float:
        return sum(self._weights.values())

    def _total(self) -> float:
        return max(0.0, self._measured + self._estimated)

    @property
    def share(self) -> float:
        """The tokens of a unit of weight, so that the items sum up to the total.

        Where the server reported what no tokeniser makes of them (it adds a long prompt of its
        own, or leaves out what it had in its cache), it is the ratio.
        """
        share = self._total() / max(self._weight(), 1.0)
        return share if estimate.plausible(share) else self.ratio


def _grown(now: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Whether there is nothing but new keys, at the end. Compared as wholes, which is far faster:
    there is one for each record."""
    count = len(before)
    keys, values = [*islice(now, count)], [*islice(now.values(), count)]
    return keys == [*before] and values == [*before.values()]
