"""Token counts: an estimate, made offline, of what a model's own tokeniser would say.

The measure (K15) is the larger of tiktoken's cl100k_base count and a quarter of the UTF-8 bytes.
Where tiktoken cannot be used, the quarter alone is the count: decided once a process, with one
logged warning (K8, K18).

Loading takes a tenth of a second, so a screen awaits `load()` in the background. `count` and
`prefix_within` load what is missing; the estimates of blocks and messages never do and use the
quarter until then. All of it is CPU work of a few milliseconds per 50 KB; texts of megabytes
belong in a thread.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import threading
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterable
from typing import Any, cast

from tui import cl100k
from tui.cl100k import Encoding, build_cl100k
from tui.errors import HoldfastError
from tui.images.images import picture_of
from tui.messages import Block, Message

log = logging.getLogger(__name__)

MESSAGE_TOKENS = 4
"""What the role and the frame of a message cost, about."""
CALL_TOKENS = 8
"""What the frame of a tool call or a tool result costs, about."""
IMAGE_TOKENS = 1600
"""The most that an image costs: the API scales larger ones down to this. Also for unknown sizes."""
_PIXELS_PER_TOKEN = 750

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class TokenizerError(HoldfastError):
    """The tokeniser failed on a text. Raised to those that asked to be told (`strict`)."""


class Tokenizer:
    """Counts tokens with an encoding that is built at first use, or does without it.

    Safe to use from several threads. Once building or counting has failed, it is not tried again.
    """

    def __init__(self, build: Callable[[], Encoding] = build_cl100k) -> None:
        self._build = build
        self._lock = threading.Lock()
        self._encoding: Encoding | None = None
        self._failed = False

    @property
    def ready(self) -> bool:
        """Whether counting will not have to build anything first."""
        return self._failed or self._encoding is not None

    def load(self) -> None:
        """Build the encoding, unless that was done or failed before."""
        with self._lock:
            if self.ready:
                return
            try:
                self._encoding = self._build()
            except BaseException as error:  # noqa: BLE001  see _give_up
                self._give_up(error)

    def count(self, text: str, *, strict: bool = False) -> int:
        """The tokens of a text, by the measure of this module. Above 2 MB an extrapolation.

        With `strict`, the failure that makes the tokeniser unusable is raised as TokenizerError;
        later calls count without it.
        """
        text, quarter = _plain(text)
        encoding = self._use()
        if encoding is None:
            return quarter
        try:
            return max(cl100k.count(encoding, text), quarter)
        except BaseException as error:  # noqa: BLE001  see _give_up
            self._give_up(error, strict=strict)
            return quarter

    def estimate(self, text: str) -> int:
        """Like `count`, but never builds: until the encoding is there, a quarter of the bytes."""
        return self.count(text) if self.ready else _plain(text)[1]

    def prefix_within(self, text: str, tokens: int, *, strict: bool = False) -> str:
        """The longest prefix of a text that counts at most `tokens`; no character is split.

        Without an encoding it is `tokens * 4` bytes long (K8). `strict` is as for `count`.
        """
        if tokens <= 0:
            return ""
        plain, quarter = _plain(text)
        encoding = self._use()
        if encoding is None:
            return text if quarter <= tokens else text[: cl100k.chars_within(plain, tokens * 4)]
        try:
            return text[: cl100k.longest_within(encoding, plain, tokens)]
        except BaseException as error:  # noqa: BLE001  see _give_up
            self._give_up(error, strict=strict)
            return text[: cl100k.chars_within(plain, tokens * 4)]

    def _use(self) -> Encoding | None:
        if not self.ready:
            self.load()
        return None if self._failed else self._encoding

    def _give_up(self, error: BaseException, *, strict: bool = False) -> None:
        """Go on without the encoding. A panic in its Rust code is no Exception, but is caught."""
        if isinstance(
            error, (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError)
        ):
            raise error
        first, self._failed = not self._failed, True
        if first:
            log.warning("tokens are estimated from bytes: tiktoken cannot be used: %r", error)
        if strict:
            raise TokenizerError(f"Counting tokens failed: {error}.") from error


default = Tokenizer()
"""The process's tokeniser: what the functions below use."""


async def load() -> None:
    """Make counting exact from here on, without blocking the event loop. Never fails."""
    if not default.ready:
        await asyncio.to_thread(default.load)


def count(text: str) -> int:
    """The tokens of a text; see `Tokenizer.count`."""
    return default.count(text)


def count_fast(text: str) -> int:
    """The tokens of a text, without waiting for the encoding; see `Tokenizer.estimate`."""
    return default.estimate(text)


def prefix_within(text: str, tokens: int) -> str:
    """The longest prefix of at most that many tokens; see `Tokenizer.prefix_within`."""
    return default.prefix_within(text, tokens)


def estimate_json(value: object) -> int:
    """The tokens of a JSON value: the input of a call, the schema of a tool."""
    return count_fast(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))


def estimate_content(content: str | Iterable[Block]) -> int:
    """The tokens of a content list, or of a bare string."""
    if isinstance(content, str):
        return count_fast(content)
    return sum(estimate_block(block) for block in content)


def estimate_block(block: Block) -> int:
    """The tokens of one content block. Unknown blocks count as their JSON."""
    match block:
        case {"type": "text", "text": str(text)}:
            return count_fast(text)
        case {"type": "thinking", "thinking": str(text)}:
            return count_fast(text)
        case {"type": "redacted_thinking", "data": str(data)}:
            return len(data) // 4
        case {"type": "tool_use", "name": str(name)}:
            return count_fast(name) + estimate_json(block.get("input")) + CALL_TOKENS
        case {"type": "tool_result"}:
            content = cast("str | list[Block]", block.get("content") or "")
            return estimate_content(content) + CALL_TOKENS
        case {"type": "image"}:
            return _image_tokens(block)
        case {"type": "document", "source": {"type": "base64"}}:
            return IMAGE_TOKENS
        case _:
            return estimate_json(block)


def estimate_message(message: Message) -> int:
    """The tokens of one message, its frame included."""
    return estimate_content(message["content"]) + MESSAGE_TOKENS


def estimate_request(
    system: Iterable[Block], tools: Iterable[dict[str, Any]], messages: Iterable[Message]
) -> int:
    """The input tokens of a whole request."""
    return (
        estimate_content(system)
        + sum(estimate_json(tool) for tool in tools)
        + sum(estimate_message(message) for message in messages)
    )


def _plain(text: str) -> tuple[str, int]:
    """The text without lone surrogates (same length, same bytes) and a quarter of its bytes."""
    if text.isascii():
        return text, len(text) // 4
    try:
        return text, len(text.encode()) // 4
    except UnicodeEncodeError:
        text = _LONE_SURROGATE.sub("\ufffd", text)
        return text, len(text.encode()) // 4


def _image_tokens(block: Block) -> int:
    """What an image costs by the API's rule of thumb: width x height / 750, at most 1,600."""
    source = block.get("source")
    data = cast("dict[str, Any]", source).get("data") if isinstance(source, dict) else None
    size = _image_size(data) if isinstance(data, str) else None
    if size is None:
        return IMAGE_TOKENS
    width, height = size
    return min(IMAGE_TOKENS, -(-width * height // _PIXELS_PER_TOKEN))


_HEADER_CHARS = 65_536


def _image_size(data: str) -> tuple[int, int] | None:
    """Width and height of a base64 image from its first bytes."""
    try:
        head = b64decode(data[:_HEADER_CHARS])
    except (Base64Error, ValueError):
        return None
    picture = picture_of(head)
    return (picture.width, picture.height) if picture else None
