"""Token counts of text, made offline: they decide where a result is cut.

The count is the larger of tiktoken's cl100k_base count and a quarter of the UTF-8 bytes. If
tiktoken cannot be used, the quarter alone is the count: decided once per process, with one logged
warning. The fill level of the context is estimated without it (`tui.tokens.estimate`).

Missing parts are loaded at first use, which takes a tenth of a second; `load()` does it in the
background. Counting is CPU work of a few milliseconds per 50 KB; texts of megabytes belong in a
thread.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

from tui.core.errors import HoldfastError
from tui.core.gc_pause import gc_pause
from tui.core.late_pattern import late_pattern
from tui.tokens import cl100k
from tui.tokens.cl100k import Encoding, build_cl100k

log = logging.getLogger(__name__)

_LONE_SURROGATE = late_pattern("[\ud800-\udfff]")


class TokenizerError(HoldfastError):
    """The tokenizer failed on a text. Raised only on request, by `strict`."""


class Tokenizer:
    """Counts tokens with an encoding that is built at first use, or without one.

    Safe to use from several threads. Once building or counting has failed, it is not tried again.
    """

    def __init__(self, build: Callable[[], Encoding] = build_cl100k) -> None:
        self._build = build
        self._lock = threading.Lock()
        self._encoding: Encoding | None = None
        self._failed = False

    @property
    def ready(self) -> bool:
        """True if counting will not have to build anything first."""
        return self._failed or self._encoding is not None

    def load(self) -> None:
        """Build the encoding, unless that was done or failed before."""
        with self._lock:
            if self.ready:
                return
            try:
                with gc_pause():
                    self._encoding = self._build()
            except BaseException as error:  # noqa: BLE001  see _give_up
                self._give_up(error)

    def count(self, text: str, *, strict: bool = False) -> int:
        """Count the tokens of a text, by the measure of this module. Extrapolated above 2 MB.

        With `strict`, the failure that makes the tokenizer unusable is raised as TokenizerError;
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

    def prefix_within(self, text: str, tokens: int, *, strict: bool = False) -> str:
        """The longest prefix of a text that counts at most `tokens`; no character is split.

        Without an encoding it is `tokens * 4` bytes long. `strict` is the same as for `count`.
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
        """Continue without the encoding. A panic in its Rust code is no Exception, but is
        caught."""
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
"""The process's tokenizer, used by the functions below."""


async def load() -> None:
    """Make counting exact from here on, without blocking the event loop. Never fails."""
    if not default.ready:
        await asyncio.to_thread(default.load)


def count(text: str) -> int:
    """Count the tokens of a text; see `Tokenizer.count`."""
    return default.count(text)


def prefix_within(text: str, tokens: int) -> str:
    """The longest prefix of at most that many tokens; see `Tokenizer.prefix_within`."""
    return default.prefix_within(text, tokens)


def _plain(text: str) -> tuple[str, int]:
    """The text without lone surrogates (same length, same bytes) and a quarter of its bytes."""
    if text.isascii():
        return text, len(text) // 4
    try:
        return text, len(text.encode()) // 4
    except UnicodeEncodeError:
        text = _LONE_SURROGATE.sub("\ufffd", text)
        return text, len(text.encode()) // 4
