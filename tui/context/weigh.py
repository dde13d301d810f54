"""What content weighs: the figures that a model's calibration turns into tokens. Pure and cheap.

A tokeniser is not asked: a 50 KB result takes half a millisecond, nothing has to be loaded, and
what was learned of a model in one session holds for the same figures in the next.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple, cast

from tui import tokens
from tui.messages import Block, blocks_of


class Weight(NamedTuple):
    """Two measures of text: tokens by the kinds of characters (`text`, and for what is not ASCII
    `wide`), and `quarter`, a quarter of the UTF-8 bytes. Besides, all in tokens: `frames` of
    messages, calls and results, `thought` of turns that are over, `known` what no calibration
    changes (images by their rule, answers by their usage)."""

    text: float = 0.0
    wide: float = 0.0
    quarter: float = 0.0
    frames: float = 0.0
    thought: float = 0.0
    known: float = 0.0

    def plus(self, other: Weight, sign: int = 1) -> Weight:
        """The sum; with a `sign` of -1 the difference."""
        a, b, c, d, e, f = self
        u, v, w, x, y, z = other
        return Weight(
            a + sign * u, b + sign * v, c + sign * w, d + sign * x, e + sign * y, f + sign * z
        )


NOTHING = Weight()

_LOWER = bytes(range(ord("a"), ord("z") + 1))
_UPPER = bytes(range(ord("A"), ord("Z") + 1))
_DIGITS = b"0123456789"
_BLANK = b" \t\r"
_ODD = bytes(c for c in range(33, 127) if not chr(c).isalnum())
_LEADS = (bytes(range(0xC0, 0xE0)), bytes(range(0xE0, 0xF0)), bytes(range(0xF0, 0x100)))


def of_text(text: str) -> Weight:
    """The weight of a text.

    Tokens by the kinds of characters: fitted to cl100k_base on prose, code, JSON, logs, tables,
    base64, hexadecimal and several scripts, each within about a fifth. The products tell dense
    text: where capitals, digits and small letters are mixed, words are short.
    """
    raw = text.encode("utf-8", "replace")
    size = len(raw)

    def count(kind: bytes) -> int:
        return size - len(raw.translate(None, kind))

    lower, upper, digits = count(_LOWER), count(_UPPER), count(_DIGITS)
    found = 0.25 * lower + 0.54 * (digits + count(_ODD)) + 0.12 * count(_BLANK)
    found += 0.39 * raw.count(b"\n")
    if size:
        found += (4.8 * upper * digits + 0.6 * upper * upper + 0.32 * digits * lower) / size
    if raw.isascii():
        return Weight(found, 0.0, size / 4)
    two, three, four = map(count, _LEADS)
    return Weight(found, 0.41 * two + 1.05 * three + 2.5 * four, size / 4)


def of_json(value: object) -> Weight:
    """The weight of a JSON value: the input of a call, the schema of a tool."""
    return of_text(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))


def of_blocks(content: Iterable[Block]) -> Weight:
    """The weight of content blocks."""
    total = None
    for block in content:
        total = of_block(block) if total is None else total.plus(of_block(block))
    return total or NOTHING


def roughly(content: Iterable[Block]) -> Weight:
    """The weight of content blocks by the length of their texts alone: a tenth of the work."""
    size = 0
    for block in content:
        match block:
            case {"text": str(text)} | {"thinking": str(text)}:
                size += len(text)
            case {"input": dict()}:
                values = cast("dict[str, object]", block["input"]).values()
                size += 40 + sum(len(value) for value in values if isinstance(value, str))
            case _:
                return of_blocks(content)
    return Weight(size / 4, 0.0, size / 4)


def of_block(block: Block) -> Weight:
    """The weight of one block; unknown ones weigh their JSON."""
    match block:
        case {"type": "text", "text": str(text)} | {"type": "thinking", "thinking": str(text)}:
            return of_text(text)
        case {"type": "redacted_thinking", "data": str(data)}:
            return Weight(len(data) / 4, 0.0, len(data) / 4)
        case {"type": "tool_use", "name": str(name)}:
            arguments = of_json(block.get("input")).plus(of_text(name))
            return arguments._replace(frames=tokens.CALL_TOKENS)
        case {"type": "tool_result", "content": str(text)}:
            return of_text(text)._replace(frames=tokens.CALL_TOKENS)
        case {"type": "tool_result"}:
            inside = of_blocks(blocks_of(block.get("content")))
            return inside.plus(Weight(frames=tokens.CALL_TOKENS))
        case {"type": "image"} | {"type": "document", "source": {"type": "base64"}}:
            return Weight(known=tokens.estimate_block(block))
        case _:
            return of_json(block)
