"""The hard clamp: no result of more than 51,200 bytes or 2,000 lines reaches the model (O1–O14)."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass

from tui.tools.limits.receipt import Keep
from tui.tools.limits.text import (
    byte_length,
    head_bytes,
    head_lines,
    line_count,
    tail_bytes,
    tail_lines,
)

SUFFIX = (
    "\n\n[tool output truncated: exceeded 50KB or 2000 lines; "
    "request smaller chunks (offset/limit) or specific sections]"
)
PLACEHOLDER = "[tool output truncated]"
CEILING_CHARS = 400_000
FLOOR_CHARS = 2_000

_SUFFIX_LINES = 2
_ENDS_LINES = 5
"""A line of each end, and the notice with the blank lines around it."""


@dataclass(frozen=True, slots=True)
class Room:
    """A budget of bytes and lines."""

    bytes: int = 50 * 1024
    lines: int = 2000

    def holds(self, text: str) -> bool:
        return byte_length(text) <= self.bytes and line_count(text) <= self.lines

    def less(self, *, bytes: int, lines: int) -> Room:  # noqa: A002 - the field's name
        return Room(self.bytes - bytes, self.lines - lines)

    def less_text(self, text: str) -> Room:
        return self.less(bytes=byte_length(text), lines=line_count(text))


def clamp(texts: Sequence[str], room: Room, keep: Keep = "head") -> Sequence[str]:
    """The text blocks of one result within `room`, which they share in order.

    Returns `texts` itself when everything fits, so that applying it twice changes nothing. A cut
    block ends with SUFFIX (for `ends` it stands between head and tail), later blocks become
    PLACEHOLDER. When even those do not fit, one line replaces what is left and the list is
    shorter.
    """
    if _fits(texts, room):
        return texts
    if len(texts) == 1 and keep == "ends" and room.lines >= _ENDS_LINES:
        return [_ends(texts[0], room)]
    kept: list[str] = []
    for index, text in enumerate(texts):
        later = len(texts) - index - 1
        reserved = room.less(
            bytes=len(SUFFIX) + later * len(PLACEHOLDER), lines=_SUFFIX_LINES + later
        )
        if reserved.bytes < 0 or reserved.lines < 1:  # an empty prefix is a line too
            kept.append(f"[tool output truncated: {later + 1} more blocks]")
            return kept
        if later and reserved.holds(text):
            kept.append(text)
            room = room.less_text(text)
            continue
        cut = head_bytes(head_lines(text, reserved.lines), reserved.bytes)
        return [*kept, cut + SUFFIX, *[PLACEHOLDER] * later]
    return kept


def clamp_text(text: str, room: Room, keep: Keep = "head") -> str:
    """One plain text within `room` (O12): a partial update, the message of an error."""
    return clamp([text], room, keep)[0]


def ceiling(texts: Sequence[str], most: int = CEILING_CHARS) -> Sequence[str]:
    """The text blocks of one result within `most` characters in all (O16).

    Each keeps its share of them, in proportion to its length, and at least FLOOR_CHARS. A cut
    block ends with SUFFIX, which counts. Returns `texts` itself where they fit. It binds only
    where the clamp is configured up.
    """
    total = sum(map(len, texts))
    if total <= most:
        return texts
    cut = [_share_of(text, max(FLOOR_CHARS, len(text) * most // total)) for text in texts]
    return texts if all(map(operator.is_, cut, texts)) else cut


def _share_of(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - len(SUFFIX)] + SUFFIX


def _fits(texts: Sequence[str], room: Room) -> bool:
    return room.bytes >= sum(map(byte_length, texts)) and room.lines >= sum(map(line_count, texts))


def _ends(text: str, room: Room) -> str:
    """Head and tail with the notice between them; the tail gets what the head leaves free."""
    bytes_free = room.bytes - len(SUFFIX) - 2
    lines_free = room.lines - _ENDS_LINES + 2
    head = head_bytes(head_lines(text, lines_free // 2), bytes_free // 2)
    tail_room = lines_free - head.count("\n") - 1
    tail = tail_bytes(tail_lines(text, tail_room), bytes_free - byte_length(head))
    return f"{head}{SUFFIX}\n\n{tail}"
