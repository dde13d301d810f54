"""Estimates of a model's tokens for a request: its weight, times one ratio.

Everything has a weight, calculated from its bytes: about the tokens of a usual tokenizer. The ratio
of a model is the number of tokens that it makes of a unit of weight, smoothed over the usage that
it reports, and kept in the cache folder, one small file for each model. To get a figure for a
request, take the last reported usage and add what came since, weight times ratio
(`tui.context.token_ledger`).

No tokenizer is used: a 50 KB result takes a tenth of a millisecond and nothing has to be loaded.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from tui.core.documents import PAGE_TOKENS, page_count
from tui.core.errors import StorageError, os_error_as
from tui.core.files import read_small, replace_file, safe_name
from tui.core.images import base64_image_info
from tui.core.messages import Block, Message, blocks_of, object_of, string_of

log = logging.getLogger(__name__)

Count: TypeAlias = Callable[[str], float]
"""Counts text: by its weight, or with a tokenizer."""

MESSAGE_TOKENS: Final = 4
"""Tokens for the role and the frame of a message, about."""
CALL_TOKENS: Final = 8
"""Tokens for the frame of a tool call or a tool result, about."""
IMAGE_TOKENS: Final = 1600
"""The most that an image costs: the API scales larger ones down to this. Also for unknown sizes."""
_PIXELS_PER_TOKEN: Final = 750
"""Pixels of an image that cost one token."""

_SMALL: Final = 0.25, bytes(range(ord("a"), ord("z") + 1))
_BLANKS: Final = 0.1, b" \t\r"
_FIRSTS: Final = bytes(range(0xC0, 0x100))
"""The bytes of each kind, with the weight of one: small letters, blanks, and without any weight the
first byte of a character that has several."""
_OTHERS: Final = 0.6
"""The weight of every other byte: capitals, digits, signs, the rest of a character."""

_JSON: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)
"""Made once: making it takes longer than most inputs of calls."""

UNKNOWN: Final = 1.0
"""The ratio of an unknown model."""
BOUNDS: Final = (1 / 3, 3.0)
"""No tokenizer is further off: beyond that, something else was counted."""
_LEAST: Final = 20
"""A smaller weight says nothing about the ratio."""
_INERTIA: Final = 5000
"""A report on this much weight moves the ratio halfway."""


def weight(text: str) -> float:
    """The weight of a text, by the kinds of its bytes.

    Words are few tokens for their length; digits, signs and capitals are many.
    """
    return _bytes_weight(text.encode("utf-8", "replace"))


def _bytes_weight(data: bytes) -> float:
    (each, kind), (blank, blanks) = _SMALL, _BLANKS
    rest = data.translate(None, kind)
    others = rest.translate(None, blanks)
    total = each * (len(data) - len(rest)) + blank * (len(rest) - len(others))
    if not others.isascii():
        others = others.translate(None, _FIRSTS)
    return total + _OTHERS * len(others)


def tokens(text: str) -> int:
    """Estimate the tokens of a text: its weight, and at least a quarter of its bytes."""
    return max(round(weight(text)), len(text.encode("utf-8", "replace")) // 4)


def json_weight(value: object, count: Count = weight) -> float:
    """The weight of a JSON value: the input of a call, the schema of a tool."""
    try:
        if count is weight:
            return _bytes_weight(msgspec.json.encode(value))  # as most are, six times as fast
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError):
        pass
    return count(_JSON.encode(value))


def block_weight(block: Block, count: Count = weight) -> float:
    """The weight of a content block, with its frame. Unknown blocks weigh as much as their JSON."""
    kind = block.get("type")  # most are of these three: without a look at the others
    if kind == "text" and isinstance(said := block.get("text"), str):
        return count(said)
    if kind == "tool_result":
        return content_weight(blocks_of(block.get("content")), count) + CALL_TOKENS
    if kind == "tool_use" and isinstance(name := block.get("name"), str):
        return count(name) + json_weight(block.get("input"), count) + CALL_TOKENS
    match block:
        case {"type": "thinking", "thinking": str(text)}:
            return count(text)
        case {"type": "compaction", "content": str(text)}:  # what it is signed with is no text
            return count(text) + CALL_TOKENS
        case {"type": "redacted_thinking", "data": str(data)}:
            return len(data) / 4
        case {"type": "image"}:
            return _image_tokens(block)
        case {"type": "document", "source": {"type": "base64"}}:
            return page_count(block) * PAGE_TOKENS
        case _:
            return json_weight(block, count)


def content_weight(content: Iterable[Block], count: Count = weight) -> float:
    """The weight of content blocks."""
    return sum([block_weight(block, count) for block in content])


def request_weight(
    system: Iterable[Block],
    tools: Iterable[Mapping[str, Any]],
    messages: Iterable[Message],
    count: Count = weight,
) -> float:
    """The weight of a whole request."""
    return (
        content_weight(system, count)
        + sum(json_weight(tool, count) for tool in tools)
        + sum(content_weight(each["content"], count) + MESSAGE_TOKENS for each in messages)
    )


def smoothed(ratio: float, weight: float, reported: float) -> float:
    """Update the ratio after a model has reported that many tokens for that much weight.

    The more was weighed, the more the report counts. A report beyond the bounds changes nothing.
    """
    if weight < _LEAST or not plausible(reported / weight):
        return ratio
    return ratio + (reported / weight - ratio) * weight / (weight + _INERTIA)


def plausible(ratio: float) -> bool:
    """True if a tokenizer may have this ratio; NaN is never plausible."""
    return BOUNDS[0] <= ratio <= BOUNDS[1]


def load_ratio(folder: Path, model: str) -> float | None:
    """Load the ratio from earlier sessions with a model; None if it cannot be read."""
    path = _path(folder, model)
    try:
        return _decoded(read_small(path, limit=1000)[0])
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        log.warning("%s is not used: %s", path, error)
        return None


def save_ratio(folder: Path, model: str, ratio: float) -> None:
    """Keep a model's ratio for the next session. Blocks. Raises StorageError."""
    path = _path(folder, model)
    with os_error_as(StorageError, f"can't write {path}"):
        replace_file(path, json.dumps({"ratio": ratio}).encode())


def _decoded(content: bytes) -> float:
    try:
        ratio = float(json.loads(content)["ratio"])
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"no ratio in it: {error!r}") from error
    if not plausible(ratio):
        raise ValueError(f"a ratio of {ratio}")
    return ratio


def _path(folder: Path, model: str) -> Path:
    return folder / "calibration" / f"{safe_name(model)}.json"


def _image_tokens(block: Block) -> int:
    """The tokens of an image by the API's rule of thumb: width x height / 750, at most 1,600."""
    info = base64_image_info(string_of(object_of(block.get("source")).get("data")))
    if info is None:
        return IMAGE_TOKENS
    return min(IMAGE_TOKENS, -(-info.width * info.height // _PIXELS_PER_TOKEN))
