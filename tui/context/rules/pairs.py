"""Rules about calls and their results: every call has one result, in the next message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tui.context.rules import Violation
from tui.context.rules.blocks import SERVER_RESULTS
from tui.core.messages import Block


class CheckedMessage(NamedTuple):
    """A message in the form that rules use: parts of its content that are no objects are `{}`."""

    where: str
    role: object
    blocks: list[Block]

    def ids(self, kind: str, field: str) -> list[str]:
        """The ids of the blocks of one type, in order."""
        return [str(b.get(field)) for b in self.blocks if b.get("type") == kind]


def pair_violations(seen: Sequence[CheckedMessage]) -> Iterator[Violation]:
    """Yield everything that is wrong between calls and results."""
    yield from _unique_calls(seen)
    yield from _server_pairs(seen)
    calls: list[str] = []
    for index, message in enumerate(seen):
        yield from _results(message, calls)
        calls = message.ids("tool_use", "id") if message.role == "assistant" else []
        after = seen[index + 1] if index + 1 < len(seen) else None
        if calls:
            yield from _answered(message, calls, after)


def _unique_calls(seen: Sequence[CheckedMessage]) -> Iterator[Violation]:
    known: set[str] = set()
    for message in seen:
        for index, block in enumerate(message.blocks):
            if block.get("type") not in ("tool_use", "server_tool_use"):
                continue
            id_ = str(block.get("id"))
            if id_ in known:
                where = f"{message.where}.content.{index}"
                yield Violation("B03", where, f"{where}: `tool_use` ids must be unique")
            known.add(id_)


def _answered(
    message: CheckedMessage, calls: list[str], after: CheckedMessage | None
) -> Iterator[Violation]:
    """Check that every call has its result in the next message, at its front."""
    front: set[str] = set()
    for block in after.blocks if after and after.role == "user" else ():
        if block.get("type") != "tool_result":
            break
        front.add(str(block.get("tool_use_id")))
    missing = [id_ for id_ in calls if id_ not in front]
    if not missing:
        return
    later = set(after.ids("tool_result", "tool_use_id")) if after else set[str]()
    text = (
        f"{message.where}: `tool_use` ids were found without `tool_result` blocks immediately "
        f"after: {', '.join(missing)}. Each `tool_use` block must have a corresponding "
        "`tool_result` block in the next message."
    )
    yield Violation("B05" if later.issuperset(missing) else "B01", message.where, text)


def _results(message: CheckedMessage, calls: list[str]) -> Iterator[Violation]:
    """Check that every result has its call in the previous message, only one, and in order."""
    order = {id_: place for place, id_ in enumerate(calls)}
    given: set[str] = set()
    last = -1
    for index, block in enumerate(message.blocks):
        if block.get("type") != "tool_result":
            continue
        where, id_ = f"{message.where}.content.{index}", str(block.get("tool_use_id"))
        if id_ not in order:
            text = (
                f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {id_}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous "
                "message."
            )
            yield Violation("B02", where, text)
            continue
        if id_ in given:
            words = "each tool_use must have a single result. Found multiple `tool_result` blocks"
            yield Violation("B04", where, f"{where}: {words} with id: {id_}")
        elif order[id_] < last:
            text = f"{where}: `tool_result` blocks must stand in the order of their calls"
            yield Violation("B06", where, text)
        given.add(id_)
        last = max(last, order[id_])


def _server_pairs(seen: Sequence[CheckedMessage]) -> Iterator[Violation]:
    """Check that a server tool's call and result are in one message, in this order.

    If the call waits for the results of other calls next to it, its own comes in the answer to
    those; that of a paused turn comes in the next message.
    """
    open_calls: dict[str, tuple[str, object]] = {}
    for number, message in enumerate(seen):
        kinds = [str(block.get("type")) for block in message.blocks]
        if message.role == "user" and {*kinds} - {"tool_result"}:
            yield from map(_unanswered, open_calls.values())
            open_calls = {}
        if message.role != "assistant":
            continue
        for index, block in enumerate(message.blocks):
            where, kind = f"{message.where}.content.{index}", block.get("type")
            if kind == "server_tool_use":
                open_calls[str(block.get("id"))] = where, block.get("name")
            elif isinstance(kind, str) and kind in SERVER_RESULTS:
                id_ = str(block.get("tool_use_id"))
                if open_calls.pop(id_, None) is None:
                    text = (
                        f"{where}: unexpected `tool_use_id` found in `{kind}` blocks: {id_}. Each "
                        f"`{kind}` block must have a corresponding `server_tool_use` block before "
                        "it."
                    )
                    yield Violation("B25", where, text)
        # A call may stay open only while something else is waited for.
        paused = number == len(seen) - 1 and kinds[-1:] == ["server_tool_use"]
        if not paused and "tool_use" not in kinds:
            yield from map(_unanswered, open_calls.values())
            open_calls = {}


def _unanswered(call: tuple[str, object]) -> Violation:
    where, name = call
    text = (
        f"{where}: `{name}` tool use was found without a corresponding `{name}_tool_result` block"
    )
    return Violation("B25", where, text)
