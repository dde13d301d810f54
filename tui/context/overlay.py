"""How single records stand in the request, other than as they were recorded. Pure.

The record stays as it is; an `overlay` record says how another one is shown to the model. The
last one for a target wins, so undoing is one more record.

    full      as recorded
    clamped   a result within 50 KB and 2,000 lines, then within 400,000 characters (O16)
    masked    a short text that says what stood there, how large it was, and how to get it back

Whatever is asked for, a result above the clamp's limits is never sent whole (O17). Ids, calls,
errors' marks and thinking stay, so that pairs stay pairs and signatures stay true.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from tui.context.rules.blocks import SERVER_RESULTS, THINKING, is_blank
from tui.guards.clamp import Room, ceiling, clamp
from tui.guards.receipt import Keep
from tui.messages import Block, blocks_of, text_block
from tui.session.records import Record

State: TypeAlias = Literal["full", "cut", "pruned", "masked", "summarised", "repaired"]
Look: TypeAlias = Literal["full", "clamped", "masked"]
LOOKS: Final[tuple[Look, ...]] = ("full", "clamped", "masked")

SPEAKING = frozenset({"user", "assistant", "tool_result", "interrupt"})
"""The types of record that become part of a message."""

_KEPT = THINKING | SERVER_RESULTS | {"tool_use", "server_tool_use"}
_END_MATTERS = frozenset({"run_command", "command_status"})


@dataclass(frozen=True, slots=True)
class Overlay:
    """How the record `target` is to stand. `by` is "person" or a part of the program."""

    target: str
    view: Look
    by: str = "person"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Stand:
    """What stands in a request for a record that is not sent as recorded.

    `blocks` are in the place of the record's own content: of a result those inside it.
    """

    state: State
    blocks: list[Block]


def overlay_in(record: Record) -> Overlay | None:
    """The overlay that a record is; None for other records, and for one that makes no sense."""
    data = record.data
    target, view = data.get("target"), data.get("view")
    if record.type != "overlay" or not isinstance(target, str) or view not in LOOKS:
        return None
    by, reason = data.get("by"), data.get("reason")
    return Overlay(target, view, _text(by) or "person", _text(reason))


def overlays_of(records: Iterable[Record]) -> dict[str, Overlay]:
    """The overlay in force for each target; targets that stand as recorded have none."""
    found: dict[str, Overlay] = {}
    for record in records:
        if overlay := overlay_in(record):
            found[overlay.target] = overlay
    return {target: each for target, each in found.items() if each.view != "full"}


def pins_of(records: Iterable[Record]) -> frozenset[str]:
    """The records that the person wants to keep: nothing automatic takes them away."""
    pinned: dict[str, bool] = {}
    for record in records:
        target = record.data.get("target")
        if record.type == "pin" and isinstance(target, str):
            pinned[target] = record.data.get("pinned") is True
    return frozenset(target for target, on in pinned.items() if on)


def stand(record: Record, overlay: Overlay | None, room: Room | None = None) -> Stand | None:
    """What is sent in the place of a record's content; None where it is sent as it is."""
    if overlay is not None and overlay.view == "masked":
        return _masked(record, overlay)
    return _clamped(record, room or Room()) if record.type == "tool_result" else None


def content_of(record: Record) -> list[Block]:
    """What a record says, as blocks; of a result the blocks inside it."""
    if record.type == "interrupt":
        said = record.data.get("text")
        return [text_block(said)] if isinstance(said, str) and said.strip() else []
    return blocks_of(record.data.get("content")) if record.type in SPEAKING else []


def chars(blocks: Iterable[Block]) -> int:
    """Characters of text in blocks."""
    return sum(len(_text(block.get("text"))) for block in blocks if block.get("type") == "text")


def placeholder(record: Record, by: str = "person") -> str:
    """The text that stands for a masked record."""
    data, blocks = record.data, content_of(record)
    size = f"{chars(blocks):,} chars"
    others = sum(block.get("type") not in _KEPT | {"text", "tool_result"} for block in blocks)
    size += f" and {others} other blocks" if others > 1 else " and an image" * others
    who = "by the person" if by == "person" else f"by {by}"
    if record.type != "tool_result":
        what = "a message of the person" if record.type == "user" else "an earlier answer"
        return f"[Masked {who}: {what}, {size}. Ask the person if you need it.]"
    kind = "error" if data.get("is_error") else "result"
    receipt: object = data.get("receipt")
    path = cast("dict[str, Any]", receipt).get("path") if isinstance(receipt, dict) else None
    back = "Call the tool again, or ask the person, if you need it."
    if isinstance(path, str) and path:
        back = f"Full copy: {path}. Use read_file to view it."
    return f"[Masked {who}: {_text(data.get('name')) or 'tool'} {kind}, {size}. {back}]"


def _masked(record: Record, overlay: Overlay) -> Stand | None:
    blocks = content_of(record)
    said = text_block(placeholder(record, overlay.by))
    if record.type == "tool_result":
        return Stand("masked", [said]) if blocks else None
    masked: list[Block] = []
    hidden = False
    for block in blocks:
        if block.get("type") in _KEPT or block.get("type") == "tool_result":
            masked.append(block)
        elif block.get("type") != "text" or not is_blank(block.get("text")):
            masked += [] if hidden else [said]
            hidden = True
    return Stand("masked", masked) if hidden else None


def _clamped(record: Record, room: Room) -> Stand | None:
    blocks = content_of(record)
    texts = [_text(block.get("text")) for block in blocks if block.get("type") == "text"]
    within = ceiling(clamp(texts, room, _keep(record)))
    if within is texts:
        return None
    left = iter(within)
    cut: list[Block] = []
    for block in blocks:
        if block.get("type") != "text":
            cut.append(block)
        elif (text := next(left, None)) is not None:
            cut.append({**block, "text": text})
    return Stand("cut", cut)


def _keep(record: Record) -> Keep:
    """Which part of a result matters: what its receipt says, else what its tool is known for."""
    receipt: object = record.data.get("receipt")
    kept = cast("dict[str, Any]", receipt).get("kept") if isinstance(receipt, dict) else None
    ends = record.data.get("name") in _END_MATTERS if kept is None else kept == "ends"
    return "ends" if ends else "head"


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
