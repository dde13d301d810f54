"""Faults: what goes wrong between a program and a model's server, played offline.

A fault is put on one attempt. It raises what the adapter of the real server raises, so that
everything above meets the same errors; only the text says that it was a practice fault.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated

import msgspec

from tui.clock import Clock
from tui.errors import ErrorClass, ProviderError, UsageError
from tui.provider.base import (
    AttemptStarted,
    Completed,
    ModelInfo,
    Provider,
    Request,
    StreamPart,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)
from tui.provider.practice.answer import WINDOW, count_input, overflow

Chars = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One fault: exactly one of the first seven fields is set.

    `status` is an HTTP answer (with `retry_after` seconds); `cut_after` and `eof_after` end the
    stream after so many characters, by a lost connection and without the closing event;
    `stall_s` is a silence that ends in a timeout, `slow_s` one that ends well; `overflow` says
    that the prompt is too long; `bad_json` breaks the input of the last tool call. `after` lets
    a status, a stall or an overflow come after so many characters, in mid-stream.
    """

    status: Annotated[int, msgspec.Meta(ge=400, le=599)] | None = None
    cut_after: Chars | None = None
    eof_after: Chars | None = None
    stall_s: Seconds | None = None
    slow_s: Seconds | None = None
    overflow: bool = False
    bad_json: bool = False
    retry_after: Seconds | None = None
    after: Chars = 0

    def __post_init__(self) -> None:
        timed = (self.status, self.cut_after, self.eof_after, self.stall_s, self.slow_s)
        kinds = sum(value is not None for value in timed) + self.overflow + self.bad_json
        if kinds != 1:
            raise ValueError(
                "a fault is exactly one of status, cut_after, eof_after, stall_s, slow_s, "
                "overflow, bad_json"
            )
        if self.retry_after is not None and self.status is None:
            raise ValueError("retry_after goes with status")


DRILL: dict[str, Fault] = {
    "429": Fault(status=429, retry_after=2),
    "529": Fault(status=529),
    "cut": Fault(cut_after=40),
    "eof": Fault(eof_after=40),
    "stall": Fault(stall_s=8, after=20),
    "overflow": Fault(overflow=True),
    "badjson": Fault(bad_json=True),
    "auth": Fault(status=401),
    "slow": Fault(slow_s=8),
}
"""The faults of `holdfast drill`, by name."""

_STATUS: dict[int, tuple[ErrorClass, str]] = {
    400: ("invalid_request", "The server found the request invalid"),
    401: ("auth", "The server refused the key"),
    402: ("billing", "The account has no credit left"),
    403: ("auth", "The key may not do this"),
    404: ("not_found", "The server does not know the model"),
    408: ("timeout", "The server gave up waiting for the request"),
    409: ("server", "The request collided with another"),
    413: ("payload_too_large", "The request has too many bytes"),
    422: ("invalid_request", "The server could not process the request"),
    429: ("rate_limit", "The rate limit is reached"),
    504: ("timeout", "A gateway gave up waiting for the server"),
    529: ("overloaded", "The server is overloaded"),
}
_HINT = "Nothing is wrong: the practice model plays this fault. Send the prompt again."
_RETRYABLE = {408, 409, 429, 500, 502, 503, 504, 529}
"""R17."""


def faulty(model: Provider, names: Sequence[str], clock: Clock) -> Faulty:
    """A model whose next attempts fail as the drill's names say, one each, and then no more.

    Raises UsageError for a name that is not in DRILL.
    """
    for name in names:
        if name not in DRILL:
            raise UsageError(
                f"There is no fault named {name!r}.", hint=f"The faults are: {', '.join(DRILL)}."
            )
    return Faulty(model, [DRILL[name] for name in names], clock)


class Faulty:
    """A provider that puts one fault on each attempt until none is left."""

    def __init__(self, model: Provider, faults: Sequence[Fault], clock: Clock) -> None:
        self._model = model
        self._left = deque(faults)
        self._clock = clock

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        parts = self._model.stream(request)
        if self._left:
            window = (await self._model.model_info(request.model)).window
            parts = inject(self._left.popleft(), parts, request, self._clock, window=window)
        async with aclosing(parts):
            async for part in parts:
                yield part

    async def load(self) -> None:
        await self._model.load()

    async def model_info(self, model: str) -> ModelInfo:
        return await self._model.model_info(model)

    async def aclose(self) -> None:
        await self._model.aclose()


async def inject(
    fault: Fault,
    parts: AsyncGenerator[StreamPart],
    request: Request,
    clock: Clock,
    *,
    window: int = WINDOW,
) -> AsyncGenerator[StreamPart]:
    """The parts of a stream until the fault strikes, which ends it with a ProviderError.

    `slow_s` and `bad_json` (where there is a call to break) do not end it.
    """
    async with aclosing(parts):
        if fault.slow_s is not None:
            async for part in parts:
                yield part
                if isinstance(part, AttemptStarted):
                    await clock.sleep(fault.slow_s)
            return
        passed = _broken_call(parts) if fault.bad_json else _until(parts, _chars(fault))
        async with aclosing(passed):
            async for part in passed:
                yield part
                if isinstance(part, Completed):
                    return
    if fault.stall_s is not None:
        await clock.sleep(fault.stall_s)
    raise await _error(fault, request, window)


def _chars(fault: Fault) -> int:
    return fault.cut_after or fault.eof_after or fault.after


async def _until(parts: AsyncGenerator[StreamPart], chars: int) -> AsyncGenerator[StreamPart]:
    """The parts up to so many characters; never the Completed."""
    async for part in parts:
        match part:
            case Completed():
                return
            case TextDelta(text) | ThinkingDelta(text) | ToolInputDelta(json=text):
                yield _shortened(part, chars)
                chars -= len(text)
            case _:
                yield part
        if chars <= 0:
            return


def _shortened(part: TextDelta | ThinkingDelta | ToolInputDelta, chars: int) -> StreamPart:
    match part:
        case ToolInputDelta():
            return replace(part, json=part.json[:chars])
        case _:
            return replace(part, text=part.text[:chars])


async def _broken_call(parts: AsyncGenerator[StreamPart]) -> AsyncGenerator[StreamPart]:
    """The parts with the end of the last call's JSON lost; no Completed where there is no call."""
    held: list[ToolInputDelta] = []
    async for part in parts:
        match part:
            case ToolInputDelta() if not held or part.id == held[0].id:
                held.append(part)
            case ToolInputDelta():
                for delta in held:
                    yield delta
                held = [part]
            case Completed():
                if held:
                    whole = "".join(delta.json for delta in held)
                    broken = whole[: len(whole) * 2 // 3] or "{"
                    yield replace(held[0], json=broken)
                    yield _with_raw_input(part, broken)
                return
            case _:
                yield part


def _with_raw_input(answer: Completed, raw: str) -> Completed:
    last = answer.content[-1]
    return replace(answer, content=[*answer.content[:-1], {**last, "input": {"raw_input": raw}}])


async def _error(fault: Fault, request: Request, window: int) -> ProviderError:
    """What the adapter of a real server raises for this fault."""
    if fault.status is not None:
        return _status_error(fault.status, fault.retry_after)
    if fault.overflow:
        return overflow(max(await count_input(request), window + 1), window)
    if fault.stall_s is not None:
        message = f"Nothing came from the server for {fault.stall_s:g} s"
        return ProviderError("timeout", f"{message} (practice fault).", hint=_HINT, retryable=True)
    if fault.cut_after is not None:
        message = "The connection broke in the middle of the answer"
    elif fault.eof_after is not None:
        message = "The answer ended without its closing event"
    else:
        message = "The server sent an event that is not valid JSON"
    return ProviderError(
        "stream_broken", f"{message} (practice fault).", hint=_HINT, retryable=True
    )


def _status_error(status: int, retry_after: float | None) -> ProviderError:
    by_range: tuple[ErrorClass, str] = (
        ("server", "The server failed") if status >= 500 else ("unknown", "The server said no")
    )
    error_class, message = _STATUS.get(status, by_range)
    return ProviderError(
        error_class,
        f"{message} (HTTP {status}, practice fault).",
        hint=_HINT,
        status=status,
        request_id=f"req_practice_fault_{status}",
        retry_after=retry_after,
        retryable=status in _RETRYABLE,
    )
