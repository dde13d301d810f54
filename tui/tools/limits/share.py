"""The token share: no result takes more than 30 % of the model's window."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

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
        return _by_tokens(texts, limit, keep)
    except tokenizer.TokenizerError as error:
        log.warning("a result is cut by characters: %s", error)
    try:
        return _by_characters(texts, limit * 4, keep)
    except Exception as error:  # the result must reach the model, whatever went wrong
        log.exception("a result could not be cut")
        return [*texts[:-1], f"{texts[-1]}\n\n⚠️ [Truncation failed: {error}]"]


def _by_tokens(texts: Sequence[str], limit: int, keep: Keep) -> Sequence[str]:
    def count(text: str) -> int:
        return tokenizer.default.count(text, strict=True)

    def head(text: str, room: int) -> str:
        return tokenizer.default.prefix_within(text, room, strict=True)

    def tail(text: str, room: int) -> str:
        """The longest suffix. A token has at most four bytes by the measure of `tokens`."""
        low, high = max(0, len(text) - room * 4 - 3), len(text)
        while low < high:
            middle = (low + high) // 2
            if count(text[middle:]) <= room:
                high = middle
            else:
                low = middle + 1
        return text[low:]

    total = sum(map(count, texts))
    if total <= limit:
        return texts
    room = int(limit * _KEPT)
    warning = (
        f"\n\n⚠️ [Output truncated: {total} tokens exceeds limit of {limit}. "
        f"Showing first {room} tokens. Use pagination or filters to get specific data.]"
    )
    if len(texts) == 1 and keep == "ends":
        return [_both(texts[0], warning, head, tail, room)]
    spare = limit - room - count(warning)
    return _first(texts, count, head, room, warning, placeholders=spare // count(PLACEHOLDER))


def _by_characters(texts: Sequence[str], limit: int, keep: Keep) -> Sequence[str]:
    total = sum(map(len, texts))
    if total <= limit:
        return texts
    room = int(limit * _KEPT)
    warning = f"\n\n⚠️ [Output truncated: ~{total} chars exceeds limit.]"
    if len(texts) == 1 and keep == "ends":
        return [_both(texts[0], warning, _head_chars, _tail_chars, room)]
    spare = limit - room - len(warning)
    placeholders = spare // len(PLACEHOLDER)
    return _first(texts, len, _head_chars, room, warning, placeholders=placeholders)


_Cut = Callable[[str, int], str]


def _both(text: str, warning: str, head: _Cut, tail: _Cut, room: int) -> str:
    return f"{head(text, room // 2)}{warning}\n\n{tail(text, room - room // 2)}"


def _first(
    texts: Sequence[str],
    count: Callable[[str], int],
    head: _Cut,
    room: int,
    warning: str,
    *,
    placeholders: int,
) -> list[str]:
    """The first blocks that fit, the next one cut, and placeholders for the others."""
    kept: list[str] = []
    for text in texts:
        size = count(text)
        if size > room:
            break
        kept.append(text)
        room -= size
    later = len(texts) - len(kept) - 1
    kept.append(head(texts[len(kept)], room) + warning)
    if not later or later <= placeholders:
        return kept + [PLACEHOLDER] * later
    return [*kept, f"[tool output truncated: {later} more blocks]"]


def _head_chars(text: str, room: int) -> str:
    return text[:room]


def _tail_chars(text: str, room: int) -> str:
    return text[-room:] if room else ""
