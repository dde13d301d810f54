"""Masking at write: what a record holds, less the keys of known shapes (decision 31). Pure."""

from __future__ import annotations

from typing import Any, cast

from tui.core.redaction import mask_values

_SIGNED = frozenset({"thinking", "redacted_thinking"})


def redacted(data: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """A record's fields with every secret masked, and how many there were.

    Thinking that held one is left out: masked, its signature would not fit it any more (B17).
    """
    masked, count = mask_values(data)
    content: object = data.get("content")
    if not count or not isinstance(content, list):
        return masked, count
    kept = [
        after
        for before, after in zip(cast("list[Any]", content), masked["content"], strict=True)
        if before == after or not _signed(before)
    ]
    return masked | {"content": kept}, count


def _signed(block: object) -> bool:
    return isinstance(block, dict) and cast("dict[str, Any]", block).get("type") in _SIGNED
