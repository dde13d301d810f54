"""The token share: no result takes more than 30 % of the model's window."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Sequence

from tui.tokens import tokenizer
from tui.tools.limits.clamp import PLACEHOLDER, byte_length
from tui.tools.limits.receipt import Keep

log = logging.getLogger(__name__)

_KEPT = 0.8
"""How much of the limit a cut result fills; the rest is for the warning."""


def threshold(max_tokens: int = 128_000, max_share: float = 0.3) -> int:
    """The most tokens that one result may have. Raises ValueError for impossible values."""
    if max_tokens <= 0:
        raise ValueError(f"max_tokens must be positive, not {max_tokens}")
    if not 0 < max_share <= 1:
        raise ValueError(f"max_share must be in (0, 1], not {max_share}")
    return int(max_tokens * max_share)


def share(texts: Sequence[str], limit: int, keep: Keep = "head") -> Sequence[str]:
    """The text blocks of one result within `limit` tokens; `texts` itself when they fit.

    A result of at most `limit` bytes is never tokenised. The block that is cut ends with a warning
    (for `ends` it is between head and tail), later blocks become PLACEHOLDER, or one line if they
    are too many. Never raises: if tokens cannot be counted, characters are, and if that fails
    too, nothing is cut.
    """
    if sum(map(byte_length, texts)) <= limit:
        return texts
    try:
        remark = (
            "{total} tokens exceeds limit of {limit}. Showing first {room} tokens. "
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
    """Does the same by tokens. Raises TokenizerError."""

    def count(self, text: str) -> int:
        return tokenizer.default.count(text, strict=True)

    def head(self, text: str, room: int) -> str:
        return tokenizer.default.prefix_within(text, room, strict=True)

    def tail(self, text: str, room: int) -> str:
        """The longest suffix. A token has at most four bytes by the measure of `tokens`."""
        starts = range(max(0, len(text) - room * 4 - 3), len(text))
        dropped = bisect_left(starts, -room, key=lambda at: -self.count(text[at:]))
        return text[starts.start + dropped :]


def _within(
    texts: Sequence[str], limit: int, keep: Keep, measure: _Characters, remark: str
) -> Sequence[str]:
    """The first blocks that fit, the next one cut, and placeholders for the others."""
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
    later = len(texts) - len(kept) - 1
    kept.append(measure.head(texts[len(kept)], room) + warning)
    if not later or later <= placeholders:
        return kept + [PLACEHOLDER] * later
    return [*kept, f"[tool output truncated: {later} more blocks]"]
