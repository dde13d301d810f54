"""The hard clamp: no result of more than 51,200 bytes or 2,000 lines reaches the model.

Also the token share (no result takes more than 30 % of the model's window), and the functions that
cut text by bytes and lines without ever splitting a character.
"""

from __future__ import annotations

import logging
import operator
from bisect import bisect_left
from collections.abc import Sequence

from tui.core.dataclass import dataclass
from tui.tokens import tokenizer
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
    """Cut the text blocks of one result to `room`, which they share in order.

    Returns `texts` itself if everything fits, so that applying it twice changes nothing. A cut
    block ends with SUFFIX (for `ends` it is between head and tail), later blocks become
    PLACEHOLDER. If even those do not fit, one line replaces the rest and the list is shorter.
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
    """Cut one plain text to `room`: a partial update, or the message of an error."""
    return clamp([text], room, keep)[0]


def cap_chars(texts: Sequence[str], most: int = CAP_CHARS) -> Sequence[str]:
    """Cut the text blocks of one result to `most` characters in all.

    Each keeps its share of them, in proportion to its length, and at least FLOOR_CHARS. A cut block
    ends with SUFFIX, which counts. Returns `texts` itself if they fit. It has an effect only if the
    clamp is configured to allow more.
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
    """Return head and tail with the notice between them; the tail gets the room that the head
    leaves."""
    bytes_free = room.bytes - len(SUFFIX) - 2
    lines_free = room.lines - _ENDS_LINES + 2
    head = head_bytes(head_lines(text, lines_free // 2), bytes_free // 2)
    tail_room = lines_free - head.count("\n") - 1
    tail = tail_bytes(tail_lines(text, tail_room), bytes_free - byte_length(head))
    return f"{head}{SUFFIX}\n\n{tail}"


def encode(text: str) -> bytes:
    """Encode as UTF-8; lone surrogates become three bytes, so nothing raises."""
    return text.encode("utf-8", "surrogatepass")


def byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(encode(text))


def line_count(text: str) -> int:
    """Return the number of lines; a final newline does not begin another line."""
    return text.count("\n") + (1 if text and not text.endswith("\n") else 0)


def head_bytes(text: str, limit: int) -> str:
    """Return the longest prefix of at most `limit` bytes."""
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
    """Return the longest suffix of at most `limit` bytes."""
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
    """Return the first `limit` lines, without the newline after the last of them if text
    follows."""
    if limit <= 0:
        return ""
    end = -1
    for _ in range(limit):
        end = text.find("\n", end + 1)
        if end < 0:
            return text
    return text if end == len(text) - 1 else text[:end]


def tail_lines(text: str, limit: int) -> str:
    """Return the last `limit` lines."""
    if limit <= 0:
        return ""
    end = len(text) - 1 if text.endswith("\n") else len(text)
    start = end
    for _ in range(limit):
        start = text.rfind("\n", 0, start)
        if start < 0:
            return text
    return text[start + 1 :]


log = logging.getLogger(__name__)

_KEPT = 0.8
"""Share of the limit that a cut result fills; the rest is for the warning."""


def threshold(max_tokens: int = 128_000, max_share: float = 0.3) -> int:
    """Return the most tokens that one result may have. Raises ValueError for impossible values."""
    if max_tokens <= 0:
        raise ValueError(f"max_tokens must be positive, not {max_tokens}")
    if not 0 < max_share <= 1:
        raise ValueError(f"max_share must be in (0, 1], not {max_share}")
    return int(max_tokens * max_share)


def share(texts: Sequence[str], limit: int, keep: Keep = "head") -> Sequence[str]:
    """Cut the text blocks of one result to `limit` tokens; returns `texts` itself if they fit.

    A result of at most `limit` bytes is never tokenised. The block that is cut ends with a warning
    (for `ends` it is between head and tail), later blocks become PLACEHOLDER, or one line if they
    are too many. Never raises: if tokens cannot be counted, characters are, and if that fails too,
    nothing is cut.
    """
    if sum(map(byte_length, texts)) <= limit:
        return texts
    try:
        both = len(texts) == 1 and keep == "ends"
        shown = "{room} tokens of both ends" if both else "first {room} tokens"
        remark = (
            f"{{total}} tokens exceeds limit of {{limit}}. Showing {shown}. "
            "Use pagination or filters to get specific data."
        )
        return _within(texts, limit, keep, _Tokens(), remark)
    except tokenizer.TokenizerError as error:
        log.warning("a result is cut by characters: %s", error)
    try:
        return _within(texts, limit * 4, keep, _Characters(), "~{total} chars exceeds limit.")
    except Exception as error:  # the result must reach the model, whatever went wrong
        log.exception("a result could not be cut")
        return [*texts[:-1], f"{texts[-1]}\n\n⚠️ [Truncation failed: {error}]"]


class _Characters:
    """Measures text, and cuts it at either end, by characters."""

    def count(self, text: str) -> int:
        return len(text)

    def head(self, text: str, room: int) -> str:
        return text[:room]

    def tail(self, text: str, room: int) -> str:
        return text[-room:] if room else ""


class _Tokens(_Characters):
    """Measures and cuts text by tokens. Raises TokenizerError."""

    def count(self, text: str) -> int:
        return tokenizer.default.count(text, strict=True)

    def head(self, text: str, room: int) -> str:
        return tokenizer.default.prefix_within(text, room, strict=True)

    def tail(self, text: str, room: int) -> str:
        """Return the longest suffix. A token has at most four bytes by the measure of `tokens`."""
        starts = range(max(0, len(text) - room * 4 - 3), len(text))
        dropped = bisect_left(starts, -room, key=lambda at: -self.count(text[at:]))
        return text[starts.start + dropped :]


def _within(
    texts: Sequence[str], limit: int, keep: Keep, measure: _Characters, remark: str
) -> Sequence[str]:
    """Return the first blocks that fit, the next one cut, and placeholders for the others."""
    total = sum(map(measure.count, texts))
    if total <= limit:
        return texts
    room = int(limit * _KEPT)
    reason = remark.format(total=total, limit=limit, room=room)
    warning = f"\n\n⚠️ [Output truncated: {reason}]"
    if len(texts) == 1 and keep == "ends":
        head = measure.head(texts[0], room // 2)
        tail = measure.tail(texts[0], room - room // 2)
        return [f"{head}{warning}\n\n{tail}"]
    placeholders = (limit - room - measure.count(warning)) // measure.count(PLACEHOLDER)
    kept: list[str] = []
    for text in texts:
        size = measure.count(text)
        if size > room:
            break
        kept.append(text)
        room -= size
    # The remaining blocks become placeholders, or one line if they are too many.
    later = len(texts) - len(kept) - 1
    kept.append(measure.head(texts[len(kept)], room) + warning)
    if not later or later <= placeholders:
        return kept + [PLACEHOLDER] * later
    return [*kept, f"[tool output truncated: {later} more blocks]"]
