"""Retrying one request: visible, bounded, never sooner than the server asked for."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Final

from tui.core.clock import Clock
from tui.core.config import Retry
from tui.core.errors import ProviderError
from tui.core.facts import RetryScheduled
from tui.core.formatting import wait_time
from tui.provider.base import AttemptStarted, Provider, Request, StreamPart, characters
from tui.provider.provider_wrapper import ProviderWrapper

_log = logging.getLogger(__name__)

JITTER: Final = 0.25

STEP_S: Final = 5.0
"""Seconds between two looks at the wall clock during a long wait."""

UNREADABLE_HINT: Final = (
    "It came twice, so Holdfast stopped asking. Another model or server may do better: /model, "
    "/login."
)

LONGEST_PARK_S: Final = 366 * 86_400.0
"""The longest time that a server's request to wait is respected; a figure beyond it is no real
time."""


class RetryControl:
    """A person's control over waits: the keys and commands of the retry banner.

    The methods return True if anything was waiting.
    """

    def __init__(self) -> None:
        self._woken: set[asyncio.Event] = set()
        """The events that wake the waits: sub-agents wait at the same time."""
        self._switch = False

    def retry_now(self) -> bool:
        """Send the request again at once."""
        for woken in self._woken:
            woken.set()
        return bool(self._woken)

    def other_model(self) -> bool:
        """Give up this model: the error is raised with `switch`, for the failover to act on."""
        self._switch = self.retry_now()
        return self._switch

    async def wait(self, clock: Clock, seconds: float) -> bool:
        """Wait. Returns True if another model was asked for; only for `RetryProvider`."""
        await self._pause(clock, seconds)
        return self._switch

    async def wait_until(self, clock: Clock, moment: datetime) -> None:
        """Wait for a moment of the wall clock, or until the person ends the wait.

        The clock is checked every few seconds: a laptop may sleep, and a clock may be set.
        """
        while (left := (moment - clock.now()).total_seconds()) > 0:
            if await self._pause(clock, min(left, STEP_S)):
                return

    async def _pause(self, clock: Clock, seconds: float) -> bool:
        """Wait. Returns True if the person ended the wait."""
        woken = asyncio.Event()
        if not self._woken:
            self._switch = False
        self._woken.add(woken)
        waits: list[asyncio.Task[object]] = [
            asyncio.create_task(wait) for wait in (clock.sleep(seconds), woken.wait())
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._woken.discard(woken)
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        return woken.is_set()


class RetryProvider(ProviderWrapper):
    """A provider whose failed requests are sent again. Implements `Provider`.

    Errors marked as retryable are retried, `retry.max_attempts` times at most, an answer that
    cannot be read once: it is paid for each time. Then the last error is raised as it came, with
    `received`. If the server says when to send the request again, that
    is respected to the second, as long as its waits for one request add up to `max_wait_s` at most,
    or, without that, as long as none is above `retry.max_delay_ms`. Longer waits are not made: the
    error, with `retry_after`, `park_until` and a hint that says when, is raised at once, even by
    the last attempt. Everything streamed before a failure is void; a `RetryScheduled` and the next
    `AttemptStarted` say so.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        retry: Retry,
        clock: Clock,
        max_wait_s: float | None = None,
        control: RetryControl | None = None,
        rng: random.Random | None = None,
    ) -> None:
        super().__init__(provider)
        self._retry = retry
        self._clock = clock
        self._max_wait_s = max_wait_s
        self._control = control or RetryControl()
        self._rng = rng or random.Random()  # noqa: S311 (spreads load, guards nothing)

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        failures, waited, unreadable = 0, 0.0, False
        while True:
            received = 0
            try:
                async with aclosing(self._provider.stream(request)) as parts:
                    async for part in parts:
                        received += characters(part)
                        if isinstance(part, AttemptStarted):
                            yield AttemptStarted(failures + 1, part.model)
                        else:
                            yield part
                return  # noqa: TRY300 (leaves the loop)
            except ProviderError as error:
                error.received = received
                if error.unreadable and unreadable:
                    error.hint = UNREADABLE_HINT
                    raise
                unreadable = error.unreadable
                failed, wait = error, self._wait(error, failures, waited)
            failures += 1
            waited += wait if failed.retry_after is not None else 0.0
            # The next attempt starts from nothing, so whoever shows the parts must know what is
            # void.
            yield RetryScheduled(
                attempt=failures,
                max_attempts=self._retry.max_attempts,
                delay_s=wait,
                reason=failed.message,
                status=failed.status,
                error_class=failed.error_class,
                request_id=failed.request_id,
                received=received,
            )
            if await self._control.wait(self._clock, wait):
                failed.switch = True
                raise failed

    async def count_tokens(self, request: Request) -> int:
        """Count tokens as the provider does; failures are retried in the same way, without a
        message."""
        failures, waited = 0, 0.0
        while True:
            try:
                return await self._provider.count_tokens(request)
            except ProviderError as error:
                wait = self._wait(error, failures, waited)
                failures += 1
                waited += wait if error.retry_after is not None else 0.0
                _log.info("counting tokens again in %.1f s: %s", wait, error.message)
            await self._clock.sleep(wait)

    def _wait(self, error: ProviderError, failures: int, waited: float) -> float:
        return wait_before_retry(
            error,
            failures,
            waited,
            retry=self._retry,
            clock=self._clock,
            rng=self._rng,
            max_wait_s=self._max_wait_s,
        )


def wait_before_retry(
    error: ProviderError,
    failures: int,
    waited: float,
    *,
    retry: Retry,
    clock: Clock,
    rng: random.Random,
    max_wait_s: float | None = None,
) -> float:
    """Return the seconds until the next attempt of a failed request. Raises `error` if there is
    none.

    `waited` is the total that the server has asked for before.
    """
    if not error.retryable:
        raise error
    patience = retry.max_delay_ms / 1000
    if max_wait_s is not None:
        patience = max_wait_s - waited
    # The server's wait is longer than anybody here waits: hand the decision to the caller.
    if error.retry_after is not None and error.retry_after > patience:
        error.park_until = clock.now() + timedelta(seconds=min(error.retry_after, LONGEST_PARK_S))
        other = "now with another model (/model)"
        if max_wait_s is not None:
            other = "wait longer with --max-wait"
        error.hint = f"Available again in {wait_time(error.retry_after)}, or {other}."
        raise error
    if failures >= retry.max_attempts:
        raise error
    if error.retry_after is None:
        return backoff_s(retry, failures, rng)
    return error.retry_after


def backoff_s(retry: Retry, failures: int, rng: random.Random) -> float:
    """The wait after `failures` + 1 failed attempts: doubling, ±25 %, then capped."""
    base = retry.initial_delay_ms * 2 ** min(failures, 30)
    return min(base * rng.uniform(1 - JITTER, 1 + JITTER), retry.max_delay_ms) / 1000
