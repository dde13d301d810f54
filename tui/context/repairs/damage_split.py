"""Where a list of messages can be taken apart, so that only what is damaged is repaired."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from tui.context.repairs.message_draft import place
from tui.context.rules import Violation
from tui.context.rules.blocks import is_object

_FAR = frozenset({"B02", "B03", "B06", "B08", "B21", "B25", "B26", "B30", "B34"})
"""What may concern messages anywhere: a result's call, an id that is taken, sums over all."""

Piece = tuple[int, int, bool]
"""The first message, the one behind the last, and whether anything in between is damaged."""


def pieces_of(messages: Sequence[object], broken: Iterable[Violation]) -> Iterator[Piece] | None:
    """The list as pieces that can be repaired one by one; None where it has to be done at once."""
    hit: set[int] = set()
    for violation in broken:
        index, _ = place(violation.where)
        if index < 0 or violation.code in _FAR:
            return None
        hit |= {index, index - 1} if violation.code == "B39" else {index}
    return _pieces(messages, hit)


def _pieces(messages: Sequence[object], hit: set[int]) -> Iterator[Piece]:
    start, end = 0, len(messages)
    for index in sorted(hit):
        if index < start:
            continue  # in the piece before
        first = index
        while first > start and not _parts(messages, first, hit):
            first -= 1
        last = index + 1
        while last < end and not _parts(messages, last, hit):
            last += 1
        if first > start:
            yield start, first, False
        yield first, last, True
        start = last
    if start < end:
        yield start, end, False


def _parts(messages: Sequence[object], index: int, hit: set[int]) -> bool:
    """Whether a sound prompt stands here, behind a sound answer without calls."""
    if index in hit or index - 1 in hit:
        return False
    return _holds(messages[index], "user", "tool_result") and _holds(
        messages[index - 1], "assistant", "tool_use"
    )


def _holds(message: object, role: str, without: str) -> bool:
    """Whether this is a message of the role, without a block of the type."""
    if not is_object(message) or message.get("role") != role:
        return False
    content: object = message.get("content")
    if isinstance(content, str):
        return True
    blocks = cast("list[object]", content) if isinstance(content, list) else []
    return not any(is_object(block) and block.get("type") == without for block in blocks)
