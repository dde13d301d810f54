"""The parts of the ledger: the items shown, and the numbers behind each of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from tui.context.history import same_model
from tui.context.labels import label_of
from tui.context.overrides import MASKED, RecordState, Stand, content_of
from tui.core.dataclass import dataclass, field, replace
from tui.core.images import facts, names_in, of_block
from tui.core.messages import Block, Usage, object_of, tool_calls
from tui.session.records import Record
from tui.tokens import estimate

Kind: TypeAlias = Literal[
    "system", "tools", "memory", "summary", "user", "image", "assistant", "result"
]
Part: TypeAlias = Literal["system", "tools", "memory", "messages", "results"]

PARTS: dict[Kind, Part] = {
    "system": "system",
    "tools": "tools",
    "memory": "memory",
    "summary": "messages",
    "user": "messages",
    "image": "messages",
    "assistant": "messages",
    "result": "results",
}
"""The part of the meter's bar that each kind of item belongs to."""

AT: Final = "#"
"""The separator between a record's id and the index of an image in it."""

_MEMORIES = frozenset({"memory", "recalled"})
KINDS: dict[str, Kind] = {
    "user": "user",
    "assistant": "assistant",
    "interrupt": "assistant",
    "tool_result": "result",
    "notice": "user",
}


@dataclass(frozen=True, slots=True)
class Item:
    """One item of the next request. `tokens` is its share of the whole in its current state.

    `id` is the id of its record; for fixed parts `system:<layer>` or `tool:<name>`; for an image
    that a person attached `<record>#<index of its block>`.
    """

    id: str
    kind: Kind
    label: str
    tokens: int
    state: RecordState
    pinned: bool = False


class ItemSize(NamedTuple):
    """The tokens of an item in its current state, and as recorded."""

    id: str
    state: RecordState
    tokens: int
    recorded: int


@dataclass(frozen=True, slots=True)
class Measure:
    """The tokens of the next request, without the prompt.

    `tokens` is `measured`, the size of the context after the last answer by the server's own count
    (0 before there is one), plus `estimated`, the change since; negative where items were removed.
    `parts` are the items by part, and add up to `tokens`. `drift` is the share by which the last
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
    """An item with its weights. `record` is None for what every request has."""

    kind: Kind
    record: Record | None
    own: float
    """The weight of its content as recorded."""
    weight: float
    """Its weight in its current state."""
    stand: Stand | None = None
    state: RecordState = "full"
    number: int = 0
    """Its index among the records."""
    label: str = ""
    """Its label, once it has been listed: that takes longer than all else."""


@dataclass(slots=True)
class RunningSums:
    """Prefix sums of a growing list of numbers. After a change, the sums behind it are recomputed
    when they are needed."""

    _numbers: list[float] = field(default_factory=list[float])
    _sums: list[float] = field(default_factory=lambda: [0.0])

    def __len__(self) -> int:
        return len(self._numbers)

    def put(self, place: int, number: float) -> None:
        """Set the number at an index, or append it."""
        if place == len(self._numbers):
            self._numbers.append(number)
        elif number != self._numbers[place]:
            self._numbers[place] = number
            del self._sums[place + 1 :]

    def between(self, start: int, end: int) -> float:
        """Sum the numbers from index `start` up to, but not including, `end`."""
        for place in range(len(self._sums) - 1, max(start, end)):
            self._sums.append(self._sums[place] + self._numbers[place])
        return self._sums[end] - self._sums[start]


def entry_of(record: Record, content: list[Block]) -> Entry:
    """The entry of a record as it was recorded, with this content."""
    own = in_frame(KINDS[record.type], content)
    state: RecordState = "cut" if record.data.get("receipt") else "full"
    return Entry(KINDS[record.type], record, own, own, None, state)


def fixed_entries(
    layers: Iterable[tuple[str, str]], tools: Iterable[Mapping[str, Any]]
) -> dict[str, Entry]:
    """The entries of what every request has: system layers by name, and tool schemas."""
    entries: dict[str, Entry] = {}
    for name, text in layers:
        kind: Kind = "memory" if name.split(" ")[0] in _MEMORIES else "system"
        weight = estimate.weight(text)
        entries[f"system:{name}"] = Entry(kind, None, weight, weight)
    for tool in tools:
        weight = estimate.json_weight(tool)
        entries[f"tool:{tool.get('name')}"] = Entry("tools", None, weight, weight)
    return entries


def listed(
    fixed: Mapping[str, Entry],
    summary: Entry | None,
    entries: Mapping[str, Entry],
    *,
    pinned: Collection[str],
    ratio: float,
) -> list[Item]:
    """List entries as items, `ratio` tokens per unit of weight, in the order of the request."""
    items = [
        Item(id_, entry.kind, id_.partition(":")[2], round(ratio * entry.weight), "full")
        for id_, entry in fixed.items()
    ]
    if summary is not None and summary.record is not None:
        count = summary.record.data.get("messages_removed")
        label, size = f"summary of {count} messages", round(ratio * summary.weight)
        items.append(Item(summary.record.id, "summary", label, size, "full"))
    calls: dict[str, Block] = {}
    for id_, entry in entries.items():
        record = cast("Record", entry.record)
        if entry.kind == "assistant":
            calls.update((str(call.get("id")), call) for call in tool_calls(content_of(record)))
        entry.label = entry.label or label_of(record, calls)
        size = round(ratio * entry.weight)
        items.append(Item(id_, entry.kind, entry.label, size, entry.state, id_ in pinned))
    return items


def with_images(items: Iterable[Item], entries: Mapping[str, Entry], ratio: float) -> list[Item]:
    """Return the items with each prompt's images as items of their own, after the prompt's."""
    listed_items: list[Item] = []
    for item in items:
        entry = entries.get(item.id)
        record = entry.record if entry and entry.kind == "user" else None
        own = list(_images_of(item, entry, record, ratio)) if entry and record else []
        if own:
            whole = item.state in {"masked", "summarised"}
            rest = max(0, item.tokens - sum(image.tokens for image in own))
            item = replace(item, tokens=rest, state=item.state if whole else "full")  # noqa: PLW2901
        listed_items += [item, *own]
    return listed_items


def _images_of(item: Item, entry: Entry, record: Record, ratio: float) -> Iterator[Item]:
    blocks, words = content_of(record), iter(names_in(record.data))
    sent = entry.stand.blocks if entry.stand else blocks
    for place, block in enumerate(blocks):
        if block.get("type") != "image":
            continue
        state: RecordState = "full"
        stands = sent[place] if len(sent) == len(blocks) else None
        if stands is None:
            state = item.state
        elif stands.get("type") != "image":
            state = "masked" if str(stands.get("text")).startswith(MASKED) else "cut"
        size = round(ratio * estimate.block_weight(stands)) if stands else 0
        label = next(words, "")[1:-1] or _described(block)
        yield Item(f"{item.id}{AT}{place}", "image", label, size, state, item.pinned)


def _described(block: Block) -> str:
    """Describe an image without a name, as other programs record them."""
    image = of_block(block, "")
    return f"{image.info.media_type} {facts(image)}" if image else "image"


def usage_by(record: Record, model: str) -> Usage | None:
    """The usage that a model reported with an answer of its own; None for everything else."""
    if record.type != "assistant":
        return None
    author, usage = record.data.get("model"), Usage.from_json(record.data.get("usage"))
    ours = not isinstance(author, str) or same_model(author, model)
    return usage if ours and usage.prompt_tokens else None


def weight_as(entry: Entry, stand: Stand | None) -> float:
    """The weight of an entry with this stand-in; None means as recorded."""
    if stand is None:
        return entry.own
    return in_frame(entry.kind, stand.blocks) if stand.blocks else 0.0


def in_frame(kind: Kind, content: Iterable[Block]) -> float:
    """The weight of content including the frame of its message or result."""
    frame = estimate.CALL_TOKENS if kind == "result" else estimate.MESSAGE_TOKENS
    return estimate.content_weight(content) + frame


def withheld_tokens(record: Record) -> int:
    """The tokens that the guards kept out of a result, by its receipt."""
    receipt = object_of(record.data.get("receipt"))
    total, shown = receipt.get("tokens_total"), receipt.get("tokens_shown")
    if not isinstance(total, int) or not isinstance(shown, int):
        return 0
    return max(0, total - shown)
