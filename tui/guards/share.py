"""The token share: no result takes more than 30 % of the model's window (K1–K24)."""

from __future__ import annotations

from collections.abc import Sequence

from tui import tokens
from tui.guards.clamp import PLACEHOLDER
from tui.guards.receipt import Keep
from tui.guards.text import byte_length


def threshold(max_tokens: int = 128_000, max_share: float = 0.3) -> int:
    """The most tokens of one result (K1). Raises ValueError for senseless values (K3)."""
    if max_tokens <= 0:
        raise ValueError(f"max_tokens must be positive, not {max_tokens}")
    if not 0 < max_share <= 1:
        raise ValueError(f"max_share must be in (0, 1], not {max_share}")
    return int(max_tokens * max_share)


def share(texts: Sequence[str], limit: int, keep: Keep = "head") -> Sequence[str]:
    """The text blocks of one result within `limit` tokens; `texts` itself when they fit.

    A result of at most `limit` bytes is never tokenised (K19). The warning is K6's literal text;
    for `ends` it stands between head and tail.
    """
    if sum(map(byte_length, texts)) <= limit:
        return texts
    counts = [tokens.count(text) for text in texts]
    total = sum(counts)
    if total <= limit:
        return texts
    room = int(limit * 0.8)
    warning = (
        f"\n\n⚠️ [Output truncated: {total} tokens exceeds limit of {limit}. "
        f"Showing first {room} tokens. Use pagination or filters to get specific data.]"
    )
    if len(texts) == 1 and keep == "ends":
        text = texts[0]
        head = tokens.prefix_within(text, room // 2)
        tail = tokens.prefix_within(text[::-1], room - room // 2)[::-1]
        return [f"{head}{warning}\n\n{tail}"]
    kept: list[str] = []
    for text, size in zip(texts, counts, strict=True):
        if room <= 0:
            kept.append(PLACEHOLDER)
        elif size <= room:
            kept.append(text)
            room -= size
        else:
            kept.append(tokens.prefix_within(text, room) + warning)
            room = 0
    return kept
