"""A25 to A30 and decision 29: which errors switch the model, to which, and when it goes back."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import timedelta
from typing import get_args

import pytest

from tests.provider.conversation import MODEL, a_request, parts_of, provider_for
from tests.support.clock import FakeClock
from tests.support.server import LoopbackServer
from tui.core.clock import timestamp
from tui.core.config import Retry
from tui.core.errors import CredentialsError, ErrorClass, HoldfastError, ProviderError
from tui.core.facts import ModelSwitched, TextDelta
from tui.core.messages import Usage
from tui.provider.base import AttemptStarted, Completed, ModelInfo, Request, StreamPart
from tui.provider.failover import REST_S, TRIGGERS, Failover
from tui.provider.retry import RetryControl, RetryProvider

ONE, TWO, THREE = MODEL, "claude-two", "claude-three"


class _Models:
    """Models that fail as told, each error once, and else answer. `asked` are their names."""

    def __init__(self, **failing: list[HoldfastError]) -> None:
        self.failing = {name.replace("_", "-"): errors for name, errors in failing.items()}
        self.asked: list[str] = []
        self.closed = False

    def fail(self, model: str, *errors: HoldfastError) -> None:
        self.failing.setdefault(model, []).extend(errors)

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        self.asked.append(request.model)
        yield AttemptStarted(1, request.model)
        yield TextDelta("so far")
        if errors := self.failing.get(request.model):
            raise errors.pop(0)
        yield Completed([], request.model, "end_turn", Usage())

    async def count_tokens(self, request: Request) -> int:
        return 7

    async def load(self) -> None:
        pass

    async def model_info(self, model: str) -> ModelInfo:
        return ModelInfo(model, 10 if model == "claude-small" else 1000, 100, "assumed")

    async def aclose(self) -> None:
        self.closed = True


def _adapt(request: Request, info: ModelInfo) -> Request | None:
    return replace(request, model=info.id) if info.window > 10 else None


def _failed(error_class: ErrorClass, retry_after: float | None = None) -> ProviderError:
    return ProviderError(error_class, f"It is {error_class}.", hint="Hm.", retry_after=retry_after)


def _failover(
    models: _Models, *fallbacks: str, clock: FakeClock | None = None
) -> tuple[Failover, FakeClock]:
    clock = clock or FakeClock()
    return Failover(models, fallbacks, clock=clock, adapt=_adapt), clock


async def _switches(failover: Failover, model: str = ONE) -> list[tuple[str, str]]:
    parts = await parts_of(failover.stream(a_request(model=model)))
    assert isinstance(parts[-1], Completed)
    return [(p.old, p.new) for p in parts if isinstance(p, ModelSwitched)]


async def _error(failover: Failover) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await parts_of(failover.stream(a_request()))
    return caught.value


async def test_A25_without_a_fallback_nothing_changes() -> None:
    models = _Models()
    error = _failed("rate_limit", 60.0)
    models.fail(ONE, error)
    failover, _ = _failover(models)
    assert await _error(failover) is error
    assert error.hint == "Hm."
    assert await _switches(failover) == []
    assert models.asked == [ONE, ONE]


@pytest.mark.parametrize("error_class", get_args(ErrorClass))
async def test_A26_only_rate_limit_overload_and_timeout_switch(error_class: ErrorClass) -> None:
    models = _Models()
    models.fail(ONE, _failed(error_class))
    failover, _ = _failover(models, TWO)
    if error_class in {"rate_limit", "overloaded", "timeout"}:
        assert await _switches(failover) == [(ONE, TWO)]
        assert models.asked == [ONE, TWO]
    else:
        assert (await _error(failover)).error_class == error_class
        assert models.asked == [ONE]
        assert await _switches(failover) == []  # nor does the next request switch because of it
        assert models.asked == [ONE, ONE]
    assert set(REST_S) == set(get_args(ErrorClass)) > TRIGGERS


async def test_A26_a_missing_key_is_no_reason_to_switch() -> None:
    models = _Models()
    models.fail(ONE, CredentialsError("No key."))
    failover, _ = _failover(models, TWO)
    with pytest.raises(CredentialsError):
        await parts_of(failover.stream(a_request()))


async def test_A27_a_switch_says_from_to_why_and_the_way_back() -> None:
    models = _Models()
    models.fail(ONE, _failed("rate_limit", 90.0))
    failover, clock = _failover(models, TWO)
    parts = await parts_of(failover.stream(a_request()))
    back_at = timestamp(clock.now() + timedelta(seconds=90))
    switch = ModelSwitched(ONE, TWO, f"{ONE}: rate limited", back_at, "rate_limit")
    assert parts[1:5] == [
        TextDelta("so far"),
        switch,
        AttemptStarted(1, TWO),
        TextDelta("so far"),
    ]


async def test_the_model_rests_as_long_as_the_server_said_and_is_then_asked_again() -> None:
    models = _Models()
    models.fail(ONE, _failed("rate_limit", 90.0))
    failover, clock = _failover(models, TWO)
    assert await _switches(failover) == [(ONE, TWO)]
    clock.elapsed += 89
    assert await _switches(failover) == []
    clock.elapsed += 1
    assert await _switches(failover) == [(TWO, ONE)]
    assert models.asked == [ONE, TWO, TWO, ONE]


@pytest.mark.parametrize("error_class", sorted(TRIGGERS))
async def test_without_a_word_of_the_server_a_model_rests_by_class(
    error_class: ErrorClass,
) -> None:
    models = _Models()
    models.fail(ONE, _failed(error_class))
    failover, clock = _failover(models, TWO)
    await _switches(failover)
    clock.elapsed += REST_S[error_class] - 1
    assert await _switches(failover) == []
    clock.elapsed += 1
    assert await _switches(failover) == [(TWO, ONE)]


async def test_A28_when_the_fallback_fails_too_it_swaps_back() -> None:
    models = _Models()
    models.fail(ONE, _failed("overloaded"))
    failover, _ = _failover(models, TWO)
    await _switches(failover)
    models.fail(TWO, _failed("rate_limit"))
    parts = await parts_of(failover.stream(a_request()))
    switches = [p for p in parts if isinstance(p, ModelSwitched)]
    assert [(p.old, p.new, p.reason) for p in switches] == [(TWO, ONE, f"{TWO} failed as well")]
    assert models.asked == [ONE, TWO, TWO, ONE]


async def test_A28_after_both_failed_the_next_request_starts_with_the_first() -> None:
    models = _Models()
    models.fail(ONE, _failed("overloaded"))
    models.fail(TWO, _failed("overloaded"))
    failover, _ = _failover(models, TWO)
    await _error(failover)
    assert await _switches(failover) == [(TWO, ONE)]
    assert models.asked == [ONE, TWO, ONE]


async def test_A30_nothing_is_switched_to_after_the_last_model_failed() -> None:
    models, first = _Models(), _failed("timeout")
    models.fail(ONE, first)
    models.fail(TWO, _failed("server"))
    models.fail(THREE, _failed("not_found"))
    failover, _ = _failover(models, TWO, THREE)
    switches: list[tuple[str, str]] = []

    async def listen() -> None:
        async for part in failover.stream(a_request()):
            match part:
                case ModelSwitched(old, new):
                    switches.append((old, new))
                case _:
                    pass

    with pytest.raises(ProviderError) as caught:
        await listen()
    assert switches == [(ONE, TWO), (TWO, THREE)]
    assert caught.value is first
    assert first.hint == f"Hm. Tried too: {TWO} (server), {THREE} (not known to the server)."


async def test_O29_an_overflow_of_the_fallback_never_comes_up() -> None:
    models = _Models()
    models.fail(ONE, _failed("overloaded"))
    models.fail(TWO, _failed("context_overflow"))
    failover, _ = _failover(models, TWO)
    assert (await _error(failover)).error_class == "overloaded"


async def test_R15_a_model_that_the_server_wants_left_alone_is_not_asked_sooner() -> None:
    models = _Models()
    models.fail(ONE, _failed("rate_limit", 9000.0))
    failover, clock = _failover(models, TWO)
    await _switches(failover)
    clock.elapsed += 1000
    models.fail(TWO, _failed("overloaded"))
    error = await _error(failover)
    assert (error.error_class, error.retry_after) == ("rate_limit", 8000.0)
    assert error.park_until == clock.now() + timedelta(seconds=8000)
    assert "in 2 h 14 min" in error.hint
    assert f"{TWO} (overloaded)" in error.hint
    assert models.asked == [ONE, TWO, TWO]


async def test_a_model_that_cannot_take_the_conversation_is_passed_over() -> None:
    models = _Models()
    models.fail(ONE, _failed("overloaded"), _failed("overloaded"))
    failover, _ = _failover(models, "claude-small", TWO)
    assert await _switches(failover) == [(ONE, TWO)]
    alone, _ = _failover(models, "claude-small")
    assert (await _error(alone)).hint == "Hm. Tried too: claude-small (too small)."


async def test_a_model_that_the_person_chooses_is_no_switch() -> None:
    models = _Models()
    models.fail(ONE, _failed("overloaded"))
    failover, _ = _failover(models, TWO)
    await _switches(failover)
    assert await _switches(failover, THREE) == []
    assert await _switches(failover, TWO) == []
    assert models.asked == [ONE, TWO, THREE, TWO]


async def test_a_person_who_will_not_wait_gets_the_other_model_whatever_the_error() -> None:
    control, models = RetryControl(), _Models()
    error = _failed("server")
    error.retryable = True
    models.fail(ONE, error)

    class Waiting(FakeClock):
        async def sleep(self, seconds: float) -> None:
            assert control.other_model()
            await super().sleep(seconds)

    clock = Waiting()
    retrying = RetryProvider(models, retry=Retry(), clock=clock, control=control)
    failover = Failover(retrying, [TWO], clock=clock, adapt=_adapt)
    assert await _switches(failover) == [(ONE, TWO)]
    assert not control.other_model()


async def test_closing_closes_the_attempt_and_the_rest_is_passed_on() -> None:
    models = _Models()
    failover, _ = _failover(models, TWO)
    stream = failover.stream(a_request())
    await anext(stream)
    await stream.aclose()
    assert await failover.count_tokens(a_request()) == 7
    assert (await failover.model_info("m")).window == 1000
    await failover.load()
    await failover.aclose()
    assert models.closed


async def test_A26_through_the_sdk_and_the_retries() -> None:
    faults = [{"status": 529}] * 4
    async with LoopbackServer({"turns": [{"text": "here", "faults": faults}]}) as server:
        clock = FakeClock()
        retrying = RetryProvider(provider_for(server), retry=Retry(), clock=clock)
        failover = Failover(retrying, ["claude-haiku-5-5"], clock=clock, adapt=_adapt)
        assert await _switches(failover) == [(ONE, "claude-haiku-5-5")]
        await failover.aclose()
    assert [r.body["model"] for r in server.posts] == [ONE] * 4 + ["claude-haiku-5-5"]
