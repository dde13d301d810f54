"""The hard clamp: no result of more than 51,200 bytes or 2,000 lines reaches the model.

Also the functions that cut text by bytes and lines without ever splitting a character.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass

from tui.tools.limits.receipt import Keep

SUFFIX = (
    "\n\n[tool output truncated: exceeded 50KB or 2000 lines; "
    "request smaller chunks (offset/limit) or specific sections]"
)
PLACEHOLDER = "[tool output truncated]"
CAP_CHARS = 400_000
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


def clamp(texts: Sequence[str], room: Room, keep: Keep = "head") -> Sequence[str]:
    """The text blocks of one result within `room`, which they share in order.

    Returns `texts` itself when everything fits, so that applying it twice changes nothing. A cut
    block ends with SUFFIX (for `ends` it is between head and tail), later blocks become
    PLACEHOLDER. When even those do not fit, one line replaces the rest and the list is shorter.
    """
    if _fits(texts, room):
        return texts
    if len(texts) == 1 and keep == "ends" and room.lines >= _ENDS_LINES:
        return [_ends(texts[0], room)]
    kept: list[str] = []
    for index, text in enumerate(texts):
        later = len(texts) - index - 1
        reserved = Room(
            room.bytes - len(SUFFIX) - later * len(PLACEHOLDER), room.lines - _SUFFIX_LINES - later
        )
        if reserved.bytes < 0 or reserved.lines < 1:  # an empty prefix is a line too
            kept.append(f"[tool output truncated: {later + 1} more blocks]")
            return kept
        if later and reserved.holds(text):
            kept.append(text)
            room = Room(room.bytes - byte_length(text), room.lines - line_count(text))
            continue
        cut = head_bytes(head_lines(text, reserved.lines), reserved.bytes)
        return [*kept, cut + SUFFIX, *[PLACEHOLDER] * later]
    return kept


def clamp_text(text: str, room: Room, keep: Keep = "head") -> str:
    """One plain text within `room`: a partial update, the message of an error."""
    return clamp([text], room, keep)[0]


def cap_chars(texts: Sequence[str], most: int = CAP_CHARS) -> Sequence[str]:
    """The text blocks of one result within `most` characters in all.

    Each keeps its share of them, in proportion to its length, and at least FLOOR_CHARS. A cut
    block ends with SUFFIX, which counts. Returns `texts` itself if they fit. It has an effect
    only if the clamp is configured to allow more.
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


def encode(text: str) -> bytes:
    """UTF-8; lone surrogates become three bytes, so nothing raises."""
    return text.encode("utf-8", "surrogatepass")


def byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(encode(text))


def line_count(text: str) -> int:
    """The number of lines; a final newline does not begin another line."""
    return text.count("\n") + (1 if text and not text.endswith("\n") else 0)


def head_bytes(text: str, limit: int) -> str:
    """The longest prefix of at most `limit` bytes."""
    if limit <= 0:
        return ""
    data = encode(text)
    if len(data) <= limit:
        return text
    end = limit
    while end and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end].decode("utf-8", "surrogatepass")


def tail_bytes(text: str, limit: int) -> str:
    """The longest suffix of at most `limit` bytes."""
    if limit <= 0:
        return ""
    data = encode(text)
    if len(data) <= limit:
        return text
    start = len(data) - limit
    while start < len(data) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:].decode("utf-8", "surrogatepass")


def head_lines(text: str, limit: int) -> str:
    """The first `limit` lines, without the newline that ends the last of them when text follows."""
    if limit <= 0:
        return ""
    end = -1
    for _ in range(limit):
        end = text.find("\n", end + 1)
        if end < 0:
            return text
    return text if end == len(text) - 1 else text[:end]


def tail_lines(text: str, limit: int) -> str:
    """The last `limit` lines."""
    if limit <= 0:
        return ""
    end = len(text) - 1 if text.endswith("\n") else len(text)
    start = end
    for _ in range(limit):
        start = text.rfind("\n", 0, start)
        if start < 0:
            return text
    return text[start + 1 :]
