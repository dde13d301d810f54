"""R14 to R19: which failures are sent again, when, and how it is said."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.provider.conversation import a_request, ask, parts_of, provider_for
from tests.support.clock import FakeClock, ManualClock
from tests.support.server import LoopbackServer
from tests.support.server_script import Json
from tui.core.config import Retry
from tui.core.errors import CredentialsError, HoldfastError, ProviderError
from tui.core.facts import RetryScheduled, TextDelta
from tui.core.messages import Usage
from tui.provider.base import AttemptStarted, Completed, ModelInfo, Provider, Request, StreamPart
from tui.provider.retry import RetryControl, RetryProvider, backoff_s

_DONE = Completed([{"type": "text", "text": "yes"}], "m", "end_turn", Usage())


class _Flaky:
    """Fails with the given errors in turn, each after a piece of text; then answers."""

    def __init__(self, *errors: HoldfastError) -> None:
        self.errors = list(errors)
        self.attempts = 0
        self.closed = 0

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        self.attempts += 1
        try:
            yield AttemptStarted(1, request.model)
            yield TextDelta(f"try {self.attempts}")
            if self.errors:
                raise self.errors.pop(0)
            yield _DONE
        finally:
            self.closed += 1

    async def count_tokens(self, request: Request) -> int:
        self.attempts += 1
        if self.errors:
            raise self.errors.pop(0)
        return len(request.messages)

    async def load(self) -> None:
        pass

    async def model_info(self, model: str) -> ModelInfo:
        return ModelInfo(model, 1000, 100, "assumed")

    async def aclose(self) -> None:
        self.closed = -1


class _Middle(random.Random):
    """No jitter."""

    def uniform(self, a: float, b: float) -> float:
        return (a + b) / 2


def _error(**options: Any) -> ProviderError:
    given: dict[str, Any] = {"status": 529, "retryable": True, "request_id": "req_1"}
    return ProviderError("overloaded", "Busy.", **given | options)


def _retrying(provider: Provider, clock: FakeClock, **retry: int) -> RetryProvider:
    return RetryProvider(provider, retry=Retry(**retry), clock=clock, rng=_Middle())


def _waits(parts: list[StreamPart]) -> list[float]:
    return [p.delay_s for p in parts if isinstance(p, RetryScheduled)]


async def test_R14_waits_double_and_are_said_before_they_begin() -> None:
    clock, flaky = FakeClock(), _Flaky(*[_error() for _ in range(3)])
    parts = await parts_of(_retrying(flaky, clock).stream(a_request()))
    kinds = [type(p) for p in parts]
    assert kinds == [AttemptStarted, TextDelta, RetryScheduled] * 3 + [
        AttemptStarted,
        TextDelta,
        Completed,
    ]
    assert [p.attempt for p in parts if isinstance(p, AttemptStarted)] == [1, 2, 3, 4]
    assert [p for p in parts if isinstance(p, RetryScheduled)] == [
        RetryScheduled(n, 3, delay, "Busy.", 529, "overloaded", "req_1", received=len("try n"))
        for n, delay in ((1, 1.0), (2, 2.0), (3, 4.0))
    ]
    assert clock.slept == [1.0, 2.0, 4.0]


async def test_R14_the_fourth_wait_is_eight_seconds_and_thirty_is_the_cap() -> None:
    clock, flaky = FakeClock(), _Flaky(*[_error() for _ in range(7)])
    await parts_of(_retrying(flaky, clock, max_attempts=7).stream(a_request()))
    assert clock.slept == [1, 2, 4, 8, 16, 30, 30]


async def test_R16_after_the_last_retry_the_original_error_is_raised() -> None:
    errors = [_error(status=500 + n) for n in range(4)]
    flaky = _Flaky(*errors)
    with pytest.raises(ProviderError) as caught:
        await parts_of(_retrying(flaky, FakeClock()).stream(a_request()))
    assert caught.value is errors[3]
    assert flaky.attempts == 4


async def test_an_answer_that_cannot_be_read_is_paid_for_twice_at_most() -> None:
    errors = [_error(unreadable=True) for _ in range(4)]
    flaky = _Flaky(*errors)
    with pytest.raises(ProviderError) as caught:
        await parts_of(_retrying(flaky, FakeClock()).stream(a_request()))
    assert caught.value is errors[1]
    assert "Holdfast stopped asking" in caught.value.hint
    assert flaky.attempts == 2


async def test_another_failure_between_two_such_answers_does_not_count() -> None:
    flaky = _Flaky(_error(unreadable=True), _error(), _error(unreadable=True))
    await parts_of(_retrying(flaky, FakeClock()).stream(a_request()))
    assert flaky.attempts == 4


async def test_R19_no_retries_still_sends_once() -> None:
    clock, flaky = FakeClock(), _Flaky(_error())
    with pytest.raises(ProviderError):
        await parts_of(_retrying(flaky, clock, max_attempts=0).stream(a_request()))
    assert (flaky.attempts, clock.slept) == (1, [])


@pytest.mark.parametrize("error", [_error(retryable=False), CredentialsError("No key.")])
async def test_R17_what_is_not_retryable_is_raised_at_once(error: HoldfastError) -> None:
    clock, flaky = FakeClock(), _Flaky(error)
    with pytest.raises(type(error)) as caught:
        await parts_of(_retrying(flaky, clock).stream(a_request()))
    assert caught.value is error
    assert (flaky.attempts, clock.slept) == (1, [])


@pytest.mark.parametrize("seconds", [0.0, 0.25, 7.0, 30.0])
async def test_R15_retry_after_wins_exactly(seconds: float) -> None:
    clock, flaky = FakeClock(), _Flaky(_error(retry_after=seconds))
    retrying = RetryProvider(flaky, retry=Retry(), clock=clock, rng=random.Random(1))
    parts = await parts_of(retrying.stream(a_request()))
    assert _waits(parts) == clock.slept == [seconds]


@pytest.mark.parametrize(
    ("seconds", "when"),
    [
        (30.5, "31 s"),
        (119.0, "119 s"),
        (600.0, "10 min"),
        (601.0, "11 min"),
        (7200.0, "2 h"),
        (12_060.0, "3 h 21 min"),
        (4_233_600.0, "49 days"),
    ],
)
async def test_R15_a_longer_retry_after_is_not_waited_for(seconds: float, when: str) -> None:
    clock, flaky = FakeClock(), _Flaky(_error(retry_after=seconds))
    with pytest.raises(ProviderError) as caught:
        await parts_of(_retrying(flaky, clock).stream(a_request()))
    assert caught.value.retry_after == seconds
    assert caught.value.hint.startswith(f"Available again in {when}, ")
    assert (flaky.attempts, clock.slept) == (1, [])


async def test_R15_a_parked_request_says_until_when_by_the_wall_clock() -> None:
    clock = FakeClock()
    flaky = _Flaky(*[_error() for _ in range(3)], _error(retry_after=3600.0))
    with pytest.raises(ProviderError) as caught:
        await parts_of(_retrying(flaky, clock).stream(a_request()))
    assert caught.value.park_until == clock.now() + timedelta(seconds=3600)
    assert clock.slept == [1.0, 2.0, 4.0]  # said by the last attempt, too


async def test_R15_an_absurd_figure_is_parked_for_a_year_at_most() -> None:
    clock, flaky = FakeClock(), _Flaky(_error(retry_after=1e15))
    with pytest.raises(ProviderError) as caught:
        await parts_of(_retrying(flaky, clock).stream(a_request()))
    assert caught.value.park_until == clock.now() + timedelta(days=366)


async def test_R15_what_is_not_parked_says_no_time() -> None:
    flaky = _Flaky(*[_error(retry_after=1.0) for _ in range(4)])
    with pytest.raises(ProviderError) as caught:
        await parts_of(_retrying(flaky, FakeClock()).stream(a_request()))
    assert caught.value.park_until is None


async def test_R15_with_a_bound_of_ones_own_the_server_is_waited_for_up_to_it() -> None:
    clock, flaky = FakeClock(), _Flaky(_error(retry_after=120.0), _error(), _error(retry_after=400))
    retrying = RetryProvider(flaky, retry=Retry(), clock=clock, max_wait_s=520.0, rng=_Middle())
    parts = await parts_of(retrying.stream(a_request()))
    assert _waits(parts) == clock.slept == [120.0, 2.0, 400.0]


@pytest.mark.parametrize(("bound", "waits"), [(519.0, [120.0]), (119.0, []), (0.0, [])])
async def test_R15_waits_of_one_request_are_added_up(bound: float, waits: list[float]) -> None:
    clock, flaky = FakeClock(), _Flaky(_error(retry_after=120.0), _error(retry_after=400.0))
    retrying = RetryProvider(flaky, retry=Retry(), clock=clock, max_wait_s=bound)
    with pytest.raises(ProviderError, match="Busy") as caught:
        await parts_of(retrying.stream(a_request()))
    assert caught.value.hint.startswith("Available again in ")
    assert clock.slept == waits


async def test_R16_the_raised_error_says_what_its_attempt_had_received() -> None:
    flaky = _Flaky(*[_error() for _ in range(4)])
    with pytest.raises(ProviderError) as caught:
        await parts_of(_retrying(flaky, FakeClock()).stream(a_request()))
    assert caught.value.received == len("try 4")


async def test_R14_counting_is_retried_as_sending_is() -> None:
    clock, flaky = FakeClock(), _Flaky(_error(), _error(retry_after=7.0), _error())
    assert await _retrying(flaky, clock).count_tokens(a_request()) == 1
    assert clock.slept == [1.0, 7.0, 4.0]
    assert flaky.attempts == 4


@pytest.mark.parametrize(
    "errors", [[_error() for _ in range(4)], [_error(retryable=False)], [_error(retry_after=99)]]
)
async def test_R14_R16_counting_gives_up_as_sending_does(errors: list[HoldfastError]) -> None:
    flaky = _Flaky(*errors)
    with pytest.raises(ProviderError):
        await _retrying(flaky, FakeClock()).count_tokens(a_request())
    assert flaky.attempts == len(errors)


async def test_R14_counting_over_http_is_retried() -> None:
    clock = FakeClock()
    script: Json = {"count_faults": [{"status": 429, "retry_after": 2}, {"status": 529}]}
    async with LoopbackServer(script) as server:
        retrying = _retrying(provider_for(server), clock)
        assert await retrying.count_tokens(a_request()) > 0
        await retrying.aclose()
    assert clock.slept == [2.0, 2.0]


async def test_a_person_may_retry_now_or_take_another_model() -> None:
    clock, control = ManualClock(), RetryControl()
    errors = [_error(retry_after=20), _error(retry_after=20)]
    flaky = _Flaky(*errors)
    retrying = RetryProvider(flaky, retry=Retry(), clock=clock, control=control)
    assert not control.retry_now()
    task = asyncio.create_task(parts_of(retrying.stream(a_request())))
    while not control.retry_now():  # noqa: ASYNC110 - nothing tells when it waits
        await asyncio.sleep(0)
    while not control.other_model() or flaky.attempts < 2:  # noqa: ASYNC110
        await asyncio.sleep(0)
    with pytest.raises(ProviderError) as caught:
        await task
    assert caught.value is errors[1]
    assert caught.value.switch
    assert flaky.attempts == 2


@given(
    failures=st.integers(0, 5000),
    initial=st.integers(1, 300_000),
    most=st.integers(1, 300_000),
    seed=st.integers(),
)
def test_R14_jitter_is_a_quarter_and_never_passes_the_cap(
    failures: int, initial: int, most: int, seed: int
) -> None:
    initial, most = sorted((initial, most))
    retry = Retry(initial_delay_ms=initial, max_delay_ms=most)
    wait = backoff_s(retry, failures, random.Random(seed)) * 1000
    base = min(initial * 2**failures, 2 * most)
    assert min(base * 0.75, most) - 1e-6 <= wait <= min(base * 1.25, most) + 1e-6


def test_R14_jitter_really_spreads() -> None:
    waits = [backoff_s(Retry(), 0, random.Random(seed)) for seed in range(50)]
    assert min(waits) < 0.85 < 1.15 < max(waits)


async def test_cancelling_the_wait_ends_everything() -> None:
    asleep = asyncio.Event()

    class Stuck(FakeClock):
        async def sleep(self, seconds: float) -> None:
            asleep.set()
            await asyncio.Event().wait()

    clock, flaky = Stuck(), _Flaky(_error())
    task = asyncio.create_task(parts_of(_retrying(flaky, clock).stream(a_request())))
    await asleep.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (flaky.attempts, flaky.closed) == (1, 1)


async def test_closing_closes_the_attempt() -> None:
    flaky = _Flaky()
    stream = _retrying(flaky, FakeClock()).stream(a_request())
    await anext(stream)
    await stream.aclose()
    assert flaky.closed == 1


async def test_the_rest_is_passed_on() -> None:
    flaky = _Flaky()
    retrying = _retrying(flaky, FakeClock())
    assert (await retrying.model_info("m")).window == 1000
    await retrying.aclose()
    assert flaky.closed == -1


async def test_R18_a_partial_answer_is_void_and_the_retry_is_whole() -> None:
    faults: list[Json] = [
        {"cut_after": 5},
        {"error_event": {"type": "overloaded_error", "message": "Overloaded"}, "after": 4},
        {"status": 429, "retry_after": 2},
    ]
    clock = FakeClock()
    async with LoopbackServer(
        {"turns": [{"text": "a complete answer", "faults": faults}]}
    ) as server:
        provider = _retrying(provider_for(server), clock)
        parts = await parts_of(provider.stream(a_request()))
        await provider.aclose()
    last_start = max(i for i, p in enumerate(parts) if isinstance(p, AttemptStarted))
    text = "".join(p.text for p in parts[last_start:] if isinstance(p, TextDelta))
    assert text == "a complete answer"
    assert [p.error_class for p in parts if isinstance(p, RetryScheduled)] == [
        "stream_broken",
        "overloaded",
        "rate_limit",
    ]
    assert clock.slept == [1.0, 2.0, 2.0]
    assert len({r.raw for r in server.posts}) == 1


async def test_R17_through_the_adapter_a_bad_request_is_sent_once() -> None:
    async with LoopbackServer({"turns": [{"faults": [{"status": 400}]}]}) as server:
        provider = _retrying(provider_for(server), FakeClock())
        with pytest.raises(ProviderError):
            await ask(provider)
        await provider.aclose()
    assert len(server.posts) == 1
