"""The context as the model saw it at a request of a session, and how two of them differ. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tui.context.frame import Frame
from tui.context.overrides import Stand
from tui.context.request_assembly import readable
from tui.context.request_replay import RequestReplay
from tui.context.token_ledger import Item, Ledger
from tui.core.dataclass import dataclass, field

UNTOLD: Final = (
    "This request isn't in the record: another program sent it, or an older version of Holdfast.\n"
    "What you see are the messages before the answer, and their sizes are estimates.\n"
    "The rest of what the server counted is the system prompt, the tools, and what else that\n"
    "program sent and left out of its file. Which of it was cached isn't known either, only how\n"
    "much."
)
_FIXED: Final = ("system", "tools")
_REST: Final = "system:unrecorded"
_NOBODY: Final = "nobody's"
"""A model that gave no answer, so that the count of none of them is taken for these messages."""


@dataclass(frozen=True, slots=True)
class ContextThen:
    """The items of a request, in their order. `stands` are the stand-ins of those that were not
    sent as recorded, by id. `problem` says why there are none, "" otherwise. `estimated`: the
    request isn't in the record, and this is what its messages tell (see `UNTOLD`)."""

    number: int
    items: tuple[Item, ...] = ()
    stands: Mapping[str, Stand] = field(default_factory=dict[str, Stand])
    fixed: Mapping[str, str] = field(default_factory=dict[str, str])
    """The texts of the system layers and the tools, by the ids of their items."""
    problem: str = ""
    estimated: bool = False

    @property
    def tokens(self) -> int:
        return sum(item.tokens for item in self.items)


@dataclass(frozen=True, slots=True)
class ContextDifference:
    """The items that the model sees in one request and not in another. `turned` are the items whose
    state is another one, as they were and as they are; `edited` the fixed parts that have another
    text."""

    added: tuple[Item, ...]
    gone: tuple[Item, ...]
    turned: tuple[tuple[Item, Item], ...]
    edited: tuple[tuple[Item, Item], ...]


def seen_at(replay: RequestReplay, number: int, tokens: int = 0) -> ContextThen:
    """List the items of a request, rebuilt from its record. `tokens` is what the server counted for
    it, which the items then share; 0 if that isn't known."""
    if number not in replay.requests:
        return ContextThen(number, problem="the record doesn't say how it was sent")
    found = replay.seen(number)
    if isinstance(found, str):
        return ContextThen(number, problem=found)
    view, frame, model = found
    ledger = Ledger(model)
    ledger.fixed(frame.layers, frame.tools)
    ledger.resume(replay.branch(number))
    summary = view.summary.record if view.summary else None
    ledger.stand(view.states, view.stands, view.pinned, summary=summary, measured=True)
    if tokens:
        ledger.count(tokens)
    items = tuple(ledger.items(images=True))
    return ContextThen(number, items, view.stands, _texts(frame))


def estimated_at(replay: RequestReplay, answer: str, number: int, tokens: int = 0) -> ContextThen:
    """List what an answer was given to, by the messages before it: for a request without a record,
    as in another program's session. `tokens` is what the server counted for it, 0 if that isn't
    known; what the messages don't explain of it is an item of its own."""
    found = replay.messages_before(answer)
    if found is None:
        return ContextThen(number, problem="the record doesn't say how it was sent")
    view, before, _ = found
    ledger = Ledger(_NOBODY)
    ledger.resume(before)
    summary = view.summary.record if view.summary else None
    ledger.stand(view.states, view.stands, view.pinned, summary=summary)
    items = ledger.items(images=True)
    rest = tokens - sum(item.tokens for item in items)
    if tokens and rest < 0:
        ledger.count(tokens)
        items = ledger.items(images=True)
    if not tokens or rest > 0:
        label = "system prompt and tools: not in the record"
        items.insert(0, Item(_REST, "system", label, max(0, rest), "full"))
    return ContextThen(number, tuple(items), view.stands, {_REST: UNTOLD}, estimated=True)


def context_difference(before: ContextThen, after: ContextThen) -> ContextDifference:
    """Compare what the model sees in two requests."""
    old = {item.id: item for item in before.items}
    new = {item.id: item for item in after.items}
    pairs = [(old[id_], item) for id_, item in new.items() if id_ in old]
    return ContextDifference(
        tuple(item for id_, item in new.items() if id_ not in old),
        tuple(item for id_, item in old.items() if id_ not in new),
        tuple(pair for pair in pairs if pair[0].state != pair[1].state),
        tuple(
            (was, item)
            for was, item in pairs
            if item.kind in _FIXED and before.fixed.get(item.id) != after.fixed.get(item.id)
        ),
    )


def _texts(frame: Frame) -> dict[str, str]:
    layers = {f"system:{name}": text for name, text in frame.layers}
    return layers | {f"tool:{tool.get('name')}": readable(tool) for tool in frame.tools}
