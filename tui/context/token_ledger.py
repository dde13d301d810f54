"""The ledger: every item of the next request, with its weight and state.

The base is what the server reported with the last answer, or counted itself. Added to it is what
came since, by its weight times the model's ratio; subtracted is what was masked or removed. The
items share that total by their weights, so that they add up to it. Sums are updated as items come
and change: a new record costs only its own size and a changed state only that item's, however long
the session.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
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
from tui.core.dataclass import dataclass, field
from tui.core.messages import Block, text_block
from tui.session.records import Record
from tui.tokens import estimate

__all__ = ["PARTS", "Item", "Kind", "Ledger", "Measure", "Part"]

_TURNS = 6
"""Number of turns that the forecast is based on."""
_UNLIKE_TEXT = THINKING | {"image", "document"}
"""Blocks that cost more or less than a text ratio predicts."""


@dataclass(slots=True)
class _Reckoning:
    """The size of the next request: what the server measured last, and the estimate of what came
    since."""

    measured: int = 0  # tokens
    estimated: float = 0.0  # tokens added since, or all of them if nothing was measured
    since: float = 0.0  # their weight
    comparable: bool = True  # only text was added since, and nothing removed
    stale: bool = False  # a compaction came after what was measured
    drift: float | None = None  # of the estimate, at the last measurement

    @property
    def total(self) -> float:
        return max(0.0, self.measured + self.estimated)

    def add(self, weight: float, ratio: float) -> None:
        """Estimate what came since, by its weight."""
        self.since += weight
        self.estimated += weight * ratio


@dataclass(slots=True)
class Ledger:
    """The items of the next request to one model, which has `ratio`. Owned by one agent."""

    model: str = ""
    ratio: float = estimate.UNKNOWN
    sent: RunningSums = field(default_factory=RunningSums)
    """Weights of the records in their current state, by the numbers of their entries."""
    brought: RunningSums = field(default_factory=RunningSums)
    """Weights, as recorded, of the records that no summary covers."""
    _fixed: dict[str, Entry] = field(default_factory=dict[str, Entry])
    _entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    _weights: dict[Kind, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    _pinned: Collection[str] = ()
    _reckoned: _Reckoning = field(default_factory=_Reckoning)
    _thought: bool = False  # in this turn; a model may forget its thinking afterwards
    _prompt: list[Block] | None = None  # unanswered
    _marks: deque[float] = field(default_factory=lambda: deque(maxlen=_TURNS))
    _saved: int = 0
    _stood: dict[str, RecordState] = field(default_factory=dict[str, RecordState])  # as last set
    _seen: Mapping[str, RecordState] = field(
        default_factory=dict[str, RecordState]
    )  # as last given; empty if a record came after its state
    _stands: Mapping[str, Stand] = field(default_factory=dict[str, Stand])
    _summary: Entry | None = None

    def fixed(self, layers: Iterable[tuple[str, str]], tools: Sequence[Mapping[str, Any]]) -> None:
        """Set what every request has: (name, text) of the system layers, tool schemas."""
        now = fixed_entries(layers, tools)
        share, before = self.share, self._weight()
        for entry in self._fixed.values():
            self._weights[entry.kind] -= entry.weight
        for entry in now.values():
            self._weights[entry.kind] += entry.weight
        change = self._weight() - before
        self._reckoned.add(change, share)
        if self._reckoned.measured and self._fixed.keys() - now.keys():
            self._reckoned.comparable = False
        self._fixed = now

    def resume(self, records: Sequence[Record]) -> None:
        """Add what was recorded earlier. Nothing is learned from it a second time."""
        for record in records:
            self._enter(record, learn=False)

    def add(self, record: Record) -> None:
        """Add a record that the next request will include; others cost nothing.

        An answer with usage is a measurement of everything so far, from which the ratio is learned.
        """
        self._enter(record, learn=True)

    def count(self, tokens: int) -> None:
        """Take the server's own count of the next request, without the prompt. Like an answer's
        usage it is a measurement, and the ratio is learned from it."""
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
        """Set the states of items by id; one that is not named keeps its state. `pinned` is all
        pins.

        `stands` has the stand-ins of those that are not sent as recorded; `summary` is the
        compaction in force. `measured`: they had the same states in the last request, so that the
        server's measurement stays valid.
        """
        self._pinned = pinned
        measured = measured and not self._reckoned.stale
        remeasure = self._sum_up(summary, measured=measured)
        last_states, last_stands = self._stood, self._stands
        # Mostly, both only grew since the last call: then only the new ones are examined.
        if _grown(states, self._seen):
            changed = [*islice(states, len(self._seen), None)]
        else:
            changed = [id_ for id_, state in states.items() if last_states.get(id_) is not state]
        if _grown(stands, last_stands):
            changed += islice(stands, len(last_stands), None)
        else:
            changed += [id_ for id_, stand in stands.items() if last_stands.get(id_) is not stand]
            changed += last_stands.keys() - stands.keys()
        for id_ in changed:
            entry, state = self._entries.get(id_), states.get(id_)
            if entry is None or state is None:
                continue
            last_states[id_] = entry.state = state
            self._count(entry)
            if (stand := stands.get(id_)) != entry.stand:
                entry.stand = stand
                self._restand(entry, measured=measured)
        self._seen, self._stands = states, stands
        if remeasure:
            self._reckon()

    def use(self, model: str, ratio: float) -> None:
        """Switch to another model: a measurement of one says nothing about the other."""
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
        """Tokens of the next request, without the prompt."""
        return round(self._reckoned.total)

    def under(self, ratio: float) -> int:
        """The tokens of the next request to a model with another ratio."""
        return round(self._weight() * ratio)

    def measure(self) -> Measure:
        """The figures for the screen."""
        now, total, share = self._reckoned, self.tokens, self.share
        parts: dict[Part, int] = dict.fromkeys(PARTS.values(), 0)
        weight, shown = 0.0, 0
        for kind, own in self._weights.items():  # rounded so that they add up
            weight += own
            parts[PARTS[kind]] += round(weight * share) - shown
            shown = round(weight * share)
        return Measure(total, now.measured, total - now.measured, parts, now.drift, self._saved)

    def forecast(self, limit: float) -> int | None:
        """The number of turns like the last ones until the context reaches `limit` tokens.

        None if that is unknown, or if the context does not grow; 0 if the limit is reached.
        """
        now = self._reckoned.total
        if now >= limit:
            return 0
        if len(self._marks) < 2:
            return None
        growth = (now - self._marks[0]) / len(self._marks)
        return math.ceil((limit - now) / growth) if growth >= 1 else None

    def would(self, id_: str, stand: Stand | None) -> int:
        """The tokens of a record's item with this stand-in; None is as recorded. Raises
        KeyError."""
        return round(self.share * weight_as(self._entries[id_], stand))

    def compacted(self, ids: Iterable[str], summary: str) -> int:
        """The tokens of the next request if a summary replaces records, by id, and the compaction
        in force: all of it estimated, as after a compaction."""
        weight = self._weight() + in_frame("summary", [text_block(framed_summary(summary))])
        weight -= sum(self._entries[id_].weight for id_ in ids if id_ in self._entries)
        weight -= self._summary.weight if self._summary else 0.0
        return round(max(0.0, self.ratio * weight))

    def items(self, *, images: bool = False) -> list[Item]:
        """List all items in the order of the request; with `images` those of prompts apart."""
        share = self.share
        items = listed(self._fixed, self._summary, self._entries, pinned=self._pinned, ratio=share)
        return with_images(items, self._entries, share) if images else items

    def conversation_sizes(self) -> list[ItemSize]:
        """List the sizes of the summary and the records, in the order of the request: the part of
        `items` that decisions need, without the labels, which take far longer."""
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
        """The entries of records that have one, each once. To be read, not changed."""
        entries = (self._entries.get(id_) for id_ in dict.fromkeys(ids))
        return [entry for entry in entries if entry is not None]

    def state_of(self, id_: str) -> RecordState | None:
        """The state of a record in the next request; None for one that is not in it."""
        entry = self._entries.get(id_)
        return entry.state if entry else None

    def _enter(self, record: Record, *, learn: bool, known: Entry | None = None) -> None:
        now = self._reckoned
        now.stale = now.stale or record.type in {"compaction", "uncompaction"}
        if record.type not in SPEAKING:
            return
        content = content_of(record)
        if record.type == "user":
            if content and content == self._prompt:
                return  # sent again after a failure, but in the request only once
            self._begin_turn(content)
        entry = known or entry_of(record, content)
        entry.weight = entry.own
        unlike = any(str(block.get("type")) in _UNLIKE_TEXT for block in content)
        usage = usage_by(record, self.model)
        if usage is None:
            now.add(entry.weight, self.ratio)
            now.comparable = now.comparable and not unlike
        else:
            if usage.context_tokens:  # the other counts are sums, which teach nothing
                self._reckoned = _Reckoning(usage.context, drift=now.drift)
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
        if entry.stand is not None:  # only if it was already known
            self._restand(entry, measured=False)

    def _measure(self, prompt: int, total: int, *, learn: bool) -> None:
        """Take the server's count of the tokens so far; `total` includes the answer to them."""
        now = self._reckoned
        drift = now.total / max(1, prompt) - 1
        if learn and now.comparable:
            reported = prompt - now.measured
            self.ratio = estimate.smoothed(self.ratio, now.since, reported)
        self._reckoned = _Reckoning(total, drift=drift)

    def _begin_turn(self, content: list[Block]) -> None:
        if self._prompt is None:  # not one of several prompts in a row
            now = self._reckoned
            self._marks.append(now.total)
            now.comparable = now.comparable and not self._thought
            self._thought = False
        self._prompt = content

    def _restand(self, entry: Entry, *, measured: bool) -> None:
        weight, share = weight_as(entry, entry.stand), self.share
        change = weight - entry.weight
        entry.weight = weight
        self._count(entry)
        self._weights[entry.kind] += change
        now = self._reckoned
        if measured and now.measured:
            return
        now.add(change, share)
        now.comparable = now.comparable and not now.measured
        for index in range(len(self._marks)):  # earlier turns were no smaller
            self._marks[index] += change * share

    def _count(self, entry: Entry) -> None:
        self.sent.put(entry.number, entry.weight)
        self.brought.put(entry.number, 0.0 if entry.state == "summarised" else entry.own)

    def _sum_up(self, summary: Record | None, *, measured: bool) -> bool:
        """Count the compaction in force. Returns True if no measurement is valid any more."""
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
        """Estimate everything again, because no measurement is valid any more."""
        self._reckoned = _Reckoning()
        self._reckoned.add(self._weight(), self.ratio)
        self._marks.clear()

    def _weight(self) -> float:
        return sum(self._weights.values())

    @property
    def share(self) -> float:
        """The tokens of a unit of weight, so that the items add up to the total.

        If the server reported a total that no tokenizer would give (it adds a long prompt of its
        own, or omits what it had in its cache), this is the ratio.
        """
        share = self._reckoned.total / max(self._weight(), 1.0)
        return share if estimate.plausible(share) else self.ratio


def _grown(now: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """True if there are only new keys, at the end. Compared as a whole, which is far faster: there
    is one for each record."""
    count = len(before)
    keys, values = [*islice(now, count)], [*islice(now.values(), count)]
    return keys == [*before] and values == [*before.values()]
