"""Another model where the requested one cannot answer.

    Failover(RetryProvider(adapter), fallbacks, …)

These errors switch: rate_limit, overloaded and timeout, once the retries beneath are used up, and
every wait that a person cut short. The models of one profile have one server and one key, so an
error of the network or of the server would recur with each of them: then only models of other
profiles are asked (`@PROFILE/MODEL`). A key that is refused, and an account that can't pay, are for
the person to decide; a request that is invalid or too long is for the caller to change.

`@PROFILE` without a model stands for the requested model, through that profile.

A model that failed rests for as long as the server said, or otherwise by class (`REST_S`), and is
skipped meanwhile; the first request after its rest goes to it again. A rest that no server asked
for only moves a model to the end of the list: when the others fail, too, it is asked again. After
the last model there is no further switch.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from tui.core.clock import Clock, timestamp
from tui.core.config import model_of, profile_of, through
from tui.core.dataclass import dataclass
from tui.core.errors import ErrorClass, ProviderError
from tui.core.facts import ModelSwitched
from tui.core.formatting import wait_time
from tui.provider.base import ModelInfo, Provider, Request, StreamPart
from tui.provider.provider_wrapper import ProviderWrapper

Adapt: TypeAlias = Callable[[Request, ModelInfo], "Request | None"]
"""Adapts a request to another model: its name set, the thinking of others removed, `max_tokens`
within its limits. Returns None if the model cannot take it because its window is too small."""

TRIGGERS: Final[frozenset[ErrorClass]] = frozenset({"rate_limit", "overloaded", "timeout"})
ELSEWHERE: Final[frozenset[ErrorClass]] = frozenset({"network", "server", "stream_broken"})
"""Errors that another model of the same server would meet as well, and another profile may not."""

REST_S: Final[dict[ErrorClass, float]] = {
    "rate_limit": 60.0,
    "overloaded": 60.0,
    "timeout": 120.0,
    "network": 30.0,
    "server": 30.0,
    "stream_broken": 30.0,
    "context_overflow": 0.0,
    "payload_too_large": 0.0,
    "refusal": 0.0,
    "auth": 600.0,
    "billing": 600.0,
    "not_found": 600.0,
    "invalid_request": 600.0,
    "unknown": 60.0,
}
"""Seconds for which a model is skipped after an error, if the server named none. For the model
first asked for, only TRIGGERS, ELSEWHERE and a person's wish count."""

_REASON: Final[dict[ErrorClass, str]] = {
    "rate_limit": "rate limited",
    "overloaded": "overloaded",
    "timeout": "no answer in time",
    "not_found": "not known to the server",
    "context_overflow": "too small for this conversation",
    "auth": "not allowed with this key",
    "network": "out of reach",
    "stream_broken": "cut off",
}


@dataclass(frozen=True, slots=True)
class _Rest:
    """A model's rest. `until` is monotonic, `back_at` the same by the wall clock; `asked`: the
    server asked for it."""

    error: ProviderError
    until: float
    back_at: datetime
    asked: bool


class Failover(ProviderWrapper):
    """A provider that continues with another model. Implements `Provider`.

    `fallbacks` are tried in order when the model of the request fails; without any, nothing
    changes. When all fail, the error of the model first asked for is raised, and its hint names the
    others that were tried. A switch is reported by `ModelSwitched`, once, and so is the switch
    back. Tokens are counted for the model of the request, whichever would answer.
    """

    def __init__(
        self, provider: Provider, fallbacks: Sequence[str], *, clock: Clock, adapt: Adapt
    ) -> None:
        super().__init__(provider)
        self._fallbacks = tuple(dict.fromkeys(fallbacks))
        self._clock = clock
        self._adapt = adapt
        self._rests: dict[str, _Rest] = {}
        self._first: str = ""
        self._current: str = ""

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        first = request.model
        if first != self._first:  # chosen by the person, so not a switch to report
            self._first, self._current = first, first
        error = last = self._error_while_resting(first)
        others: list[str] = []
        for name in self._row(first):
            if not _helps(error, first, name):
                continue
            if (fitting := await self._fitting(request, name)) is None:
                others.append(f"{name} (too small)")
                continue
            if (switch := self._switch_to(name, last)) is not None:
                yield switch
            try:
                async with aclosing(self._provider.stream(fitting)) as parts:
                    async for part in parts:
                        yield part
            except ProviderError as failed:
                last = failed
                if failed.feature or (name == first and not self._switches(failed, first)):
                    raise  # the caller may change the request; the next goes to this model again
                self._rest(name, failed)
                if name == first:
                    error = failed
                else:
                    others.append(f"{name} ({_reason(failed)})")
            else:
                self._rests.pop(name, None)
                return
        assert error is not None  # a model is only skipped if its error is kept
        if others:
            error.hint = f"{error.hint} Tried too: {', '.join(others)}.".strip()
        raise error

    def _row(self, first: str) -> list[str]:
        """The models to ask, in order; none that the server wants left alone, unless all are."""
        rests = {name: self._rests_now(name) for name in self._chain(first)}
        row = [name for name, rest in rests.items() if rest is None]
        row += [name for name, rest in rests.items() if rest is not None and not rest.asked]
        return row or [first]

    async def _fitting(self, request: Request, name: str) -> Request | None:
        """The request as a model takes it; None where its window is too small."""
        if name == request.model:
            return request
        return self._adapt(request, await self._provider.model_info(name))

    def _switches(self, error: ProviderError, first: str) -> bool:
        """True if another model may be asked after an error of the first."""
        usual = error.switch or error.error_class in TRIGGERS
        return usual or any(_helps(error, first, name) for name in self._chain(first)[1:])

    def _chain(self, first: str) -> Sequence[str]:
        """The model of a request, then those that may answer in its place, by their whole names."""
        whole = (
            name if model_of(name) else through(profile_of(name), model_of(first))
            for name in self._fallbacks
        )
        return tuple(dict.fromkeys((first, *whole)))

    def _rests_now(self, name: str) -> _Rest | None:
        """The rest of a model. It is over as soon as one clock says so: a laptop's sleep stops
        one."""
        rest = self._rests.get(name)
        if rest is None or rest.until <= self._clock.monotonic():
            return None
        return rest if rest.back_at > self._clock.now() else None

    def _rest(self, name: str, error: ProviderError) -> None:
        seconds = REST_S[error.error_class] if error.retry_after is None else error.retry_after
        seconds = min(seconds, timedelta(days=366).total_seconds())
        self._rests[name] = _Rest(
            error,
            self._clock.monotonic() + seconds,
            self._clock.now() + timedelta(seconds=seconds),
            asked=error.retry_after is not None,
        )

    def _error_while_resting(self, first: str) -> ProviderError | None:
        """The error for which the first model rests, as of now."""
        rest = self._rests_now(first)
        if rest is None:
            return None
        old, left = rest.error, rest.until - self._clock.monotonic()
        error = ProviderError(
            old.error_class,
            old.message,
            hint=f"Available again in {wait_time(left)}." if rest.asked else old.hint,
            status=old.status,
            retry_after=left if rest.asked else None,
            retryable=old.retryable,
        )
        error.park_until = rest.back_at if rest.asked else None
        error.switch = old.switch
        return error

    def _switch_to(self, name: str, last: ProviderError | None) -> ModelSwitched | None:
        """Report that another model than before is asked, if so; `last` is the last failure."""
        old, self._current = self._current or name, name
        if old == name:
            return None
        rest = self._rests_now(self._first)
        if name == self._first:
            reason = f"{old} failed as well" if rest else f"{name} is available again"
            return ModelSwitched(old, name, reason)
        failed = self._rests_now(old)
        why = failed.error if failed else last
        reason = f"{old}: {_reason(why)}" if why else f"gave up on {old}"
        back_at = timestamp(rest.back_at) if rest else None
        if why is None:
            return ModelSwitched(old, name, reason, back_at)
        return ModelSwitched(
            old, name, reason, back_at, why.error_class, why.status, why.request_id, why.received
        )


def _helps(error: ProviderError | None, first: str, name: str) -> bool:
    """True if a model may be asked after an error of the one first asked for."""
    if error is None or name == first or error.switch or error.error_class in TRIGGERS:
        return True
    return error.error_class in ELSEWHERE and profile_of(name) != profile_of(first)


def _reason(error: ProviderError) -> str:
    return _REASON.get(error.error_class, error.error_class.replace("_", " "))
