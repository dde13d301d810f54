"""Faults: failures between a program and a model's server, played offline.

A fault is attached to one attempt. It raises the same error as the adapter of the real server, by
the same table, so that everything above meets the same errors; only the texts say that it was
played.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from msgspec import structs

from tui.core.clock import Clock
from tui.core.errors import ProviderError
from tui.core.facts import TextDelta, ThinkingDelta, ToolInputDelta
from tui.provider.base import AttemptStarted, Completed, Provider, Request, StreamPart
from tui.provider.practice.script import Fault
from tui.provider.practice.stream import count_input, overflow
from tui.provider.provider_wrapper import ProviderWrapper

if TYPE_CHECKING:
    from tui.provider.anthropic.classify import RequestAttempt

_ANSWERS: dict[int, tuple[str, str]] = {
    401: ("authentication_error", "invalid x-api-key"),
    402: ("billing_error", "The account has no credit left"),
    403: ("permission_error", "The key does not have permission to use the model"),
    404: ("not_found_error", "model: practice"),
    408: ("timeout_error", "The request came too slowly"),
    409: ("conflict_error", "The request collided with another"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed the rate limit"),
    504: ("timeout_error", "Request timed out"),
    529: ("overloaded_error", "Overloaded"),
}
"""The error type and the message of a status; other statuses use `_OF_CLIENT` and `_OF_SERVER`."""
_OF_CLIENT = ("invalid_request_error", "The request is not valid")
_OF_SERVER = ("api_error", "Internal server error")
_MARK = "(practice fault)"
_HINT = "Nothing is wrong: the practice model plays this fault."
_URL = "the practice server"


class FaultQueue:
    """Faults in a row, one per attempt; an overflow stays until the request meets its condition."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self._pending = deque(faults)
        self._met: int | None = None

    async def take(self, request: Request) -> Fault | None:
        """The fault of the next attempt; None if there is none left."""
        while self._pending:
            fault = self._pending[0]
            if isinstance(fault.overflow, bool):
                return self._pending.popleft()
            by_output = fault.overflow == "max_tokens"
            size = request.max_tokens if by_output else await count_input(request)
            if self._met is None or size >= self._met:
                self._met = size if self._met is None else self._met
                return fault
            self._met = None
            self._pending.popleft()
        return None


class FaultyProvider(ProviderWrapper):
    """A provider whose attempts meet faults. `strike` returns the fault that a request meets, or
    None."""

    def __init__(
        self,
        provider: Provider,
        strike: Callable[[Request], Awaitable[Fault | None]],
        clock: Clock,
    ) -> None:
        super().__init__(provider)
        self._strike = strike
        self._clock = clock

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        parts = self._provider.stream(request)
        if (fault := await self._strike(request)) is not None:
            window = (await self._provider.model_info(request.model)).window
            parts = inject(fault, parts, request, self._clock, window=window)
        async with aclosing(parts):
            async for part in parts:
                yield part


async def inject(
    fault: Fault,
    parts: AsyncGenerator[StreamPart],
    request: Request,
    clock: Clock,
    *,
    window: int,
) -> AsyncGenerator[StreamPart]:
    """Pass on the parts of a stream until the fault strikes, which ends it with a ProviderError.

    `slow_s` and `bad_json` (if there is a call to break) do not end it.
    """
    async with aclosing(parts):
        # A slow answer ends well, so all of it is passed on.
        if fault.slow_s is not None:
            async for part in parts:
                yield part
                if isinstance(part, AttemptStarted):
                    await clock.sleep(fault.slow_s)
            return
        chars = fault.cut_after or fault.eof_after or fault.after
        passed = _broken_call(parts) if fault.bad_json else _until(parts, chars)
        async with aclosing(passed):
            async for part in passed:
                yield part
                if isinstance(part, Completed):
                    return
    if fault.stall_s is not None:
        await clock.sleep(fault.stall_s)
    raise await _error(fault, request, window, clock)


async def _until(parts: AsyncGenerator[StreamPart], chars: int) -> AsyncGenerator[StreamPart]:
    """Pass on the parts up to this many characters; never the Completed."""
    async for part in parts:
        match part:
            case Completed():
                return
            case TextDelta(text) | ThinkingDelta(text) | ToolInputDelta(text=text):
                yield structs.replace(part, text=text[:chars])
                chars -= len(text)
            case _:
                yield part
        if chars <= 0:
            return


async def _broken_call(parts: AsyncGenerator[StreamPart]) -> AsyncGenerator[StreamPart]:
    """Pass on the parts without the end of the last call's JSON; no Completed if there is no
    call."""
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
                    whole = "".join(delta.text for delta in held)
                    broken = whole[: len(whole) * 2 // 3] or "{"
                    yield structs.replace(held[0], text=broken)
                    last = {**part.content[-1], "input": {"raw_input": broken}}
                    yield dataclasses.replace(part, content=[*part.content[:-1], last])
                return
            case _:
                yield part


async def _error(fault: Fault, request: Request, window: int, clock: Clock) -> ProviderError:
    """The error that the adapter of a real server raises for this fault; its hint says that it was
    one."""
    error = await _raised(fault, request, window, clock)
    if error.message.startswith(_URL):
        error.message = error.message[:1].upper() + error.message[1:]
    error.hint = f"{_HINT} {error.hint}".strip()
    return error


async def _raised(fault: Fault, request: Request, window: int, clock: Clock) -> ProviderError:
    # The adapter is needed only where a fault strikes.
    from tui.provider.anthropic.classify import RequestAttempt, stream_error  # noqa: PLC0415

    if fault.status is not None:
        return _answered(fault, fault.status, RequestAttempt(_URL, request.model, clock.now()))
    if fault.overflow == "max_tokens":
        prompt = await count_input(request)
        return overflow(prompt, max(window, prompt + 1), asked=request.max_tokens)
    if fault.overflow:
        return overflow(max(await count_input(request), window + 1), window)
    if fault.stall_s is not None:
        return ProviderError(
            "timeout",
            f"The answer stopped: nothing came for {fault.stall_s:g} s {_MARK}.",
            retryable=True,
        )
    if fault.cut_after is not None:
        return stream_error(f"the connection was lost {_MARK}")
    if fault.eof_after is not None:
        return stream_error(f"the connection closed before the answer was complete {_MARK}")
    return stream_error(f"the server sent a line that is not JSON {_MARK}")


def _answered(fault: Fault, status: int, at: RequestAttempt) -> ProviderError:
    """The answer of a server, classified by the adapter's own table."""
    from tui.provider.anthropic.classify import from_answer, not_the_api  # noqa: PLC0415

    headers = {"request-id": f"req_practice_fault_{status}"}
    if fault.retry_after is not None:
        headers["retry-after"] = f"{fault.retry_after:f}"
    if fault.html is not None:
        page = f"<html><head><title>{fault.html} {_MARK}</title></head></html>"
        headers["content-type"] = "text/html"
        if status < 300:
            return not_the_api(headers, page.encode(), at)
        return from_answer(status, headers, page, at)
    kind, message = _ANSWERS.get(status, _OF_SERVER if status >= 500 else _OF_CLIENT)
    message = f"{fault.message or message} {_MARK}"
    return from_answer(
        status, headers, {"error": {"type": fault.type or kind, "message": message}}, at
    )
