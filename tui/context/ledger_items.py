"""What the ledger is made of: the items that are shown, and what is kept of each to reckon with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from tui import tokens
from tui.calibration import Sample
from tui.context.overlay import Stand, State
from tui.context.weigh import NOTHING, Weight, of_blocks
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

KINDS: dict[str, Kind] = {
    "user": "user",
    "assistant": "assistant",
    "interrupt": "assistant",
    "tool_result": "result",
}
IN_MESSAGE = Weight(frames=tokens.MESSAGE_TOKENS)
_IN_CALL = Weight(frames=tokens.CALL_TOKENS)


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
class Entry:
    """An item as it is reckoned with. `record` is None for what every request carries."""

    kind: Kind
    record: Record | None
    own: Weight
    """What its content weighs."""
    weight: Weight
    """What it weighs as it stands now."""
    stand: Stand | None = None
    state: State = "full"


def sample_of(weight: Weight, first: float = 0.0) -> Sample:
    """A weight as the calibration takes it; what is known already is no part of it."""
    return Sample(*weight[:-1], first)


def entry_of(record: Record, said: Weight) -> Entry:
    """The entry of a record whose content weighs `said`, as it was recorded."""
    own = said.plus(_frame(KINDS[record.type]))
    state: State = "cut" if record.data.get("receipt") else "full"
    return Entry(KINDS[record.type], record, own, own, None, state)


def fixed_entry(kind: Kind, weight: Weight) -> Entry:
    """The entry of what every request carries."""
    return Entry(kind, None, weight, weight)


def standing(entry: Entry, stand: Stand | None) -> Weight:
    """What an entry weighs if it stands so; None is as recorded."""
    if stand is None:
        return entry.own
    if not stand.blocks:
        return NOTHING
    return of_blocks(stand.blocks).plus(_frame(entry.kind))


def _frame(kind: Kind) -> Weight:
    return _IN_CALL if kind == "result" else IN_MESSAGE


def kept_out(record: Record) -> int:
    """Tokens that the guards kept out of a result, by its receipt."""
    receipt: object = record.data.get("receipt")
    if not isinstance(receipt, dict):
        return 0
    said = cast("dict[str, Any]", receipt)
    total, shown = said.get("tokens_total"), said.get("tokens_shown")
    if not isinstance(total, int) or not isinstance(shown, int):
        return 0
    return max(0, total - shown)
