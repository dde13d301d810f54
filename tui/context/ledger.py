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
from typing import Any, Literal, TypeAlias, cast

from tui import tokens
from tui.calibration import Calibration, Sample
from tui.context.history import same_model
from tui.context.labels import label_of
from tui.context.overlay import SPEAKING, Stand, State, content_of
from tui.context.rules.blocks import THINKING
from tui.context.weigh import NOTHING, Weight, of_blocks, of_json, of_text, roughly
from tui.messages import Block, Usage, tool_calls
from tui.session.records import Record

Kind: TypeAlias = Literal["system", "tools", "memory", "summary", "user", "assistant", "result"]
Part: TypeAlias = Literal["system", "tools", "memory", "messages", "results"]

PARTS: dict[Kind, Part] = {
    "system": "system",
    "tools": "tools",
    "memory": "memory",
    "summary": "messages",
    "user": "messages",
    "assistant": "messages",
    "result": "results",
}
"""The part of the meter's bar that each kind of item belongs to."""

ADDED = "system:server"
"""The item for what the server adds to a request, known once the model has answered."""

_KINDS: dict[str, Kind] = {
    "user": "user",
    "assistant": "assistant",
    "interrupt": "assistant",
    "tool_result": "result",
}
_MEMORIES = frozenset({"memory", "recalled"})
_IN_MESSAGE = Weight(frames=tokens.MESSAGE_TOKENS)
_IN_CALL = Weight(frames=tokens.CALL_TOKENS)
_MANY = 10_000
_TURNS = 6
"""So many turns make the forecast."""


@dataclass(frozen=True, slots=True)
class Item:
    """One item of the next request. `tokens` is an estimate of how it stands there.

    `id` is that of its record; of fixed parts `system:<layer>` or `tool:<name>`.
    """

    id: str
    kind: Kind
    label: str
    tokens: int
    state: State
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class Measure:
    """Tokens of the next request, less the prompt.

    `tokens` is `measured`, what the context held after the last answer by the server's own count
    (0 before there is one), and `estimated`, what changed since; less than 0 where items were
    taken away. `parts` are the items summed by part. `drift` is the share by which the last
    request was estimated too large (or, below 0, too small), None before there was an answer;
    `saved` the tokens that the guards kept out of the results in the context.
    """

    tokens: int
    measured: int
    estimated: int
    parts: dict[Part, int]
    drift: float | None
    saved: int


@dataclass(slots=True)
class _Entry:
    kind: Kind
    record: Record | None
    own: Weight
    """What its content weighs."""
    weight: Weight
    """What it weighs as it stands now."""
    stand: Stand | None = None
    state: State = "full"


@dataclass(slots=True)
class Ledger:
    """The items of the next request to one model. Owned by one agent."""

    model: str = ""
    calibration: Calibration = field(default_factory=Calibration)
    _fixed: dict[str, _Entry] = field(default_factory=dict[str, _Entry])
    _entries: dict[str, _Entry] = field(default_factory=dict[str, _Entry])
    _sums: dict[Kind, Weight] = field(default_factory=lambda: dict.fromkeys(PARTS, NOTHING))
    _pinned: Collection[str] = ()
    _measured: int = 0
    _since: Weight = NOTHING
    _pure: bool = True  # nothing was taken away since
    _thinking: list[tuple[_Entry, float]] = field(default_factory=list[tuple["_Entry", float]])
    _prompt: list[Block] | None = None  # unanswered
    _marks: deque[float] = field(default_factory=lambda: deque(maxlen=_TURNS))
    _drift: float | None = None
    _saved: int = 0

    def fixed(self, layers: Iterable[tuple[str, str]], tools: Sequence[Mapping[str, Any]]) -> None:
        """Set what every request carries: (name, text) of the system layers, tool schemas."""
        now: dict[str, _Entry] = {}
        for name, text in layers:
            kind: Kind = "memory" if name.split(" ")[0] in _MEMORIES else "system"
            now[f"system:{name}"] = _fixed_entry(kind, of_text(text))
        for tool in tools:
            now[f"tool:{tool.get('name')}"] = _fixed_entry("tools", of_json(tool))
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
            found = (n for n in range(len(records), 0, -1) if self._usage(records[n - 1]))
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
        measured: bool = False,
    ) -> None:
        """Set how items stand, by id; one that is not named stands as before. `pinned` is all pins.

        `stands` has what is sent of those that are not sent as recorded. `measured`: they stood
        so in the last request already, so that the server's measure holds.
        """
        self._pinned = pinned
        for id_, state in states.items():
            entry = self._entries.get(id_)
            if entry is None:
                continue
            entry.state = state
            if (stand := stands.get(id_)) != entry.stand:
                entry.stand = stand
                self._restand(entry, measured=measured)

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
        for entry in entries.values():
            if entry.record is not None:
                self._enter(entry.record, learn=False, known=entry)

    @property
    def tokens(self) -> int:
        """Tokens of the next request, less the prompt."""
        return round(self._total())

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
        return round(self._tokens(_standing(entry, stand)))

    def items(self) -> list[Item]:
        """All items in the order of the request."""
        found = [
            Item(id_, entry.kind, id_.partition(":")[2], round(self._tokens(entry.weight)), "full")
            for id_, entry in self._fixed.items()
        ]
        if added := round(self._added()):
            found.append(Item(ADDED, "system", "added by the server", added, "full"))
        calls: dict[str, Block] = {}
        for id_, entry in self._entries.items():
            record = cast("Record", entry.record)
            if entry.kind == "assistant":
                calls.update((str(call.get("id")), call) for call in tool_calls(content_of(record)))
            tokens_ = round(self._tokens(entry.weight))
            label = label_of(record, calls)
            pinned = id_ in self._pinned
            found.append(Item(id_, entry.kind, label, tokens_, entry.state, pinned))
        return found

    def _enter(
        self,
        record: Record,
        *,
        learn: bool,
        known: _Entry | None = None,
        weigh: Callable[[list[Block]], Weight] = of_blocks,
    ) -> None:
        if record.type not in SPEAKING:
            return
        content = content_of(record)
        if record.type == "user":
            if content and content == self._prompt:
                return  # sent again after a failure: it stands in the request once (B58)
            self._begin_turn(content)
        entry = known or _entry(record, weigh(content))
        usage = self._usage(record)
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
        elif any(block.get("type") in THINKING for block in content):
            said = of_blocks(block for block in content if block.get("type") not in THINKING)
            self._thinking.append((entry, max(0.0, usage.output_tokens - self._tokens(said))))
        self._saved += _kept_out(record)
        if entry.stand is not None:  # only where it was known before
            self._restand(entry, measured=False)

    def _usage(self, record: Record) -> Usage | None:
        """What the model asked now reported with an answer; None for everything else."""
        if record.type != "assistant":
            return None
        said, usage = record.data.get("model"), Usage.from_json(record.data.get("usage"))
        ours = not isinstance(said, str) or same_model(said, self.model)
        return usage if ours and usage.prompt_tokens else None

    def _take_measure(self, usage: Usage, *, learn: bool) -> None:
        expected = self._total()
        self._drift = expected / usage.prompt_tokens - 1
        if learn and self._pure and not self._since.known:
            first = 0.0 if self._measured else 1.0
            self.calibration.learn(
                _sample(self._since, first), usage.prompt_tokens - self._measured
            )
        self._measured = usage.total
        self._since, self._pure = NOTHING, True

    def _begin_turn(self, content: list[Block]) -> None:
        if self._prompt is None:  # not one of several prompts in a row
            self._marks.append(self._total())
            for entry, thinking in self._thinking:
                if entry.stand is None:
                    self._change(entry, entry.weight._replace(thought=thinking))
            self._thinking.clear()
        self._prompt = content

    def _restand(self, entry: _Entry, *, measured: bool) -> None:
        before = self._total()
        change = self._change(entry, _standing(entry, entry.stand))
        if measured and self._measured:
            self._since = self._since.plus(change, -1)
            return
        self._pure = self._pure and not self._measured
        moved = self._total() - before
        for index in range(len(self._marks)):  # what was taken away did not make turns smaller
            self._marks[index] += moved

    def _change(self, entry: _Entry, weight: Weight) -> Weight:
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
        return weight.known + self.calibration.tokens(_sample(weight))


def _sample(weight: Weight, first: float = 0.0) -> Sample:
    return Sample(*weight[:-1], first)


def _entry(record: Record, said: Weight) -> _Entry:
    own = said.plus(_frame(_KINDS[record.type]))
    state: State = "cut" if record.data.get("receipt") else "full"
    return _Entry(_KINDS[record.type], record, own, own, None, state)


def _fixed_entry(kind: Kind, weight: Weight) -> _Entry:
    return _Entry(kind, None, weight, weight)


def _standing(entry: _Entry, stand: Stand | None) -> Weight:
    if stand is None:
        return entry.own
    return of_blocks(stand.blocks).plus(_frame(entry.kind))


def _frame(kind: Kind) -> Weight:
    return _IN_CALL if kind == "result" else _IN_MESSAGE


def _kept_out(record: Record) -> int:
    """Tokens that the guards kept out of a result, by its receipt."""
    receipt: object = record.data.get("receipt")
    if not isinstance(receipt, dict):
        return 0
    said = cast("dict[str, Any]", receipt)
    total, shown = said.get("tokens_total"), said.get("tokens_shown")
    if not isinstance(total, int) or not isinstance(shown, int):
        return 0
    return max(0, total - shown)
