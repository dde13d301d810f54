"""Retrying one request: visible, bounded, never sooner than the server asked for (R14 to R19)."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from tui.clock import Clock
from tui.config import Retry
from tui.errors import ProviderError
from tui.provider.base import (
    AttemptStarted,
    ModelInfo,
    Provider,
    Request,
    RetryScheduled,
    StreamPart,
)

JITTER: Final = 0.25


class Retrying:
    """A provider whose failed requests are sent again. Implements `Provider`.

    Retried is what the error itself calls retryable, `retry.max_attempts` times at most; then
    the last error is raised as it came. A server that says when it wants to see the request
    again is obeyed as long as its waits for one request add up to `max_wait_s` seconds at most,
    without that as long as none is above `retry.max_delay_ms`. Longer ones are not waited for:
    the error, with `retry_after` and a hint that says when, is raised at once. What was streamed
    before a failure is void; the parts say so by a `RetryScheduled` and the next
    `AttemptStarted`.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        retry: Retry,
        clock: Clock,
        max_wait_s: float | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._provider = provider
        self._retry = retry
        self._clock = clock
        self._max_wait_s = max_wait_s
        self._rng = rng or random.Random()  # noqa: S311 (spreads load, guards nothing)

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        failures, waited = 0, 0.0
        while True:
            try:
                async with aclosing(self._provider.stream(request)) as parts:
                    async for part in parts:
                        if isinstance(part, AttemptStarted):
                            yield AttemptStarted(failures + 1, part.model)
                        else:
                            yield part
                return  # noqa: TRY300 (the way out of the loop)
            except ProviderError as error:
                if not error.retryable or failures >= self._retry.max_attempts:
                    raise
                wait = self._wait(error, failures, waited)
                waited += wait if error.retry_after is not None else 0.0
                failures += 1
                coming = RetryScheduled(
                    attempt=failures,
                    max_attempts=self._retry.max_attempts,
                    delay_s=wait,
                    reason=error.message,
                    status=error.status,
                    error_class=error.error_class,
                )
            yield coming
            await self._clock.sleep(wait)

    async def load(self) -> None:
        await self._provider.load()

    async def model_info(self, model: str) -> ModelInfo:
        return await self._provider.model_info(model)

    async def aclose(self) -> None:
        await self._provider.aclose()

    def _wait(self, error: ProviderError, failures: int, waited: float) -> float:
        """Seconds until the next attempt. Raises `error` when the server asks for too many.

        `waited` is what the server has asked for before.
        """
        if error.retry_after is None:
            return backoff_s(self._retry, failures, self._rng)
        if self._max_wait_s is None:
            left = self._retry.max_delay_ms / 1000
        else:
            left = self._max_wait_s - waited
        if error.retry_after > left:
            wait = _duration(error.retry_after)
            other = "now with another model (/model)"
            if self._max_wait_s is not None:
                other = "waited for with a larger --max-wait"
            error.hint = f"It can be tried again in {wait}, or {other}."
            raise error
        return error.retry_after


def backoff_s(retry: Retry, failures: int, rng: random.Random) -> float:
    """The wait after `failures` + 1 failed attempts: doubling, ±25 %, then capped (decision 8)."""
    base = retry.initial_delay_ms * 2 ** min(failures, 30)
    return min(base * rng.uniform(1 - JITTER, 1 + JITTER), retry.max_delay_ms) / 1000


def _duration(seconds: float) -> str:
    """A duration in the largest units that matter, rounded up: `90 s`, `5 min`, `3 h 20 min`."""
    whole = int(-(-seconds // 1))
    if whole < 120:
        return f"{whole} s"
    minutes = -(-whole // 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    return f"{-(-hours // 24)} days"
