"""AnthropicProvider: one request, one stream of parts, one typed error."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from tui.clock import Clock
from tui.errors import HoldfastError, ProviderError
from tui.provider import catalogue
from tui.provider.anthropic import sdk
from tui.provider.anthropic.answer import Answer
from tui.provider.anthropic.classify import (
    STREAM_HINT,
    WAIT_HINT,
    Attempt,
    broken,
    classify,
    from_answer,
    not_the_api,
)
from tui.provider.anthropic.sse import EventDecoder
from tui.provider.base import AttemptStarted, ModelInfo, Request, StreamPart

if TYPE_CHECKING:
    import httpx2
    from anthropic import AsyncAnthropic

_log = logging.getLogger(__name__)

MODEL_INFO_TIMEOUT_S: Final = 5.0
ASK_AGAIN_S: Final = 300.0
"""How long a failed question for a model's limits stands before it is asked again."""

_DRAIN_S: Final = 0.1
_PAGE_BYTES: Final = 65_536


class AnthropicProvider:
    """Any server that speaks the Messages API, through the SDK. Implements `Provider`.

    `base_url` "" is the API itself, which needs a key; servers elsewhere may do without.
    `first_byte_timeout_s` runs from sending to the first byte of the answer; after that no
    silence may be longer than `stall_timeout_s` (pings and comments are no silence).
    `context_window`, when not 0, is the window of every model.

    One attempt per request: retrying is for a decorator. The SDK is loaded by `load()`, or by
    whatever needs it first.
    """

    def __init__(
        self,
        *,
        api_key: str | None,
        clock: Clock,
        base_url: str = "",
        first_byte_timeout_s: float = 600.0,
        stall_timeout_s: float = 120.0,
        context_window: int = 0,
    ) -> None:
        self.url: Final = sdk.api_url(base_url)
        self._api_key = api_key
        self._clock = clock
        self._first_byte_s = first_byte_timeout_s
        self._stall_s = stall_timeout_s
        self._window = context_window
        self._loading: asyncio.Task[AsyncAnthropic] | None = None
        self._known: dict[str, tuple[ModelInfo, float]] = {}

    async def load(self) -> None:
        """Load the SDK in a thread; call it after the first paint. May be called again.

        Raises CredentialsError without a usable key, ProviderError if the SDK is broken.
        """
        await self._client()

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        """One attempt. Closing the iterator or cancelling closes the connection at once."""
        client = await self._client()
        yield AttemptStarted(1, request.model)
        deadline = asyncio.get_running_loop().time() + self._first_byte_s
        response = await self._open(client, request, deadline)
        try:
            answer, decoder = Answer(request.model), EventDecoder()
            chunks = response.aiter_bytes()
            async for chunk in self._chunks(chunks, request.model, deadline):
                for event in self._decoded(decoder, chunk):
                    if event["type"] == "error":
                        raise from_answer(
                            response.status_code,
                            response.headers,
                            event,
                            self._attempt(request.model, began=True),
                        )
                    if (delta := self._fed(answer, event)) is not None:
                        yield delta
                if answer.done:
                    break
            if not answer.done:
                raise broken("the connection closed before the answer was complete")
            await _drain(chunks)
            yield answer.completed(response.headers.get("request-id"))
        finally:
            await response.aclose()

    async def model_info(self, model: str) -> ModelInfo:
        """The server's word if it gives one within 5 s, kept; else the catalogue's."""
        known, until = self._known.get(model, (None, 0.0))
        if known is None or self._clock.monotonic() >= until:
            asked = await self._ask_for(model)
            known = asked or catalogue.look_up(model)
            lasts = float("inf") if asked else ASK_AGAIN_S
            self._known[model] = known, self._clock.monotonic() + lasts
        if self._window:
            return ModelInfo(
                model, self._window, known.max_output, "config", known.adaptive_thinking
            )
        return known

    async def aclose(self) -> None:
        """Close all connections. An import under way is not waited for."""
        if self._loading is None or _failed(self._loading):
            return
        if self._loading.done():
            await self._loading.result().close()
        else:
            self._loading.cancel()

    async def _client(self) -> AsyncAnthropic:
        sdk.check_url(self.url)
        key = sdk.usable_key(self._api_key, self.url)
        if self._loading is None or _failed(self._loading):
            self._loading = asyncio.create_task(sdk.load_client(key, self.url))
        # Shielded: whoever is cancelled while waiting leaves the import to the others.
        return await asyncio.shield(self._loading)

    async def _open(
        self, client: AsyncAnthropic, request: Request, deadline: float
    ) -> httpx2.Response:
        """Send the request. Returns a response that is a stream of events, or raises."""
        try:
            async with asyncio.timeout_at(deadline):
                stream = await client.messages.create(**arguments(request), stream=True)
        except TimeoutError as error:
            raise self._no_answer() from error
        except _failures() as error:
            raise classify(error, self._attempt(request.model)) from error
        response = stream.response
        kind = response.headers.get("content-type", "text/event-stream")
        if kind.partition(";")[0].strip().lower() in {"text/event-stream", "text/plain"}:
            return response
        try:
            page = await self._beginning_of(response, deadline)
            raise not_the_api(response.headers, page, self._attempt(request.model))
        finally:
            await response.aclose()

    async def _beginning_of(self, response: httpx2.Response, deadline: float) -> bytes:
        found = b""
        with suppress(*_failures()):
            async with asyncio.timeout_at(deadline):
                async for chunk in response.aiter_bytes():
                    found += chunk
                    if len(found) >= _PAGE_BYTES:
                        break
        return found

    async def _chunks(
        self, chunks: AsyncIterator[bytes], model: str, deadline: float
    ) -> AsyncIterator[bytes]:
        """The bytes of an answer as they come; silence that lasts too long is an error."""
        loop, began = asyncio.get_running_loop(), False
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    chunk = await anext(chunks, None)
            except TimeoutError as error:
                raise (self._stalled() if began else self._no_answer()) from error
            except _failures() as error:
                raise classify(error, self._attempt(model, began=True)) from error
            if chunk is None:
                return
            began = True
            yield chunk
            deadline = loop.time() + self._stall_s

    def _decoded(self, decoder: EventDecoder, chunk: bytes) -> list[dict[str, Any]]:
        try:
            return list(decoder.feed(chunk))
        except ValueError as error:
            raise broken("the server sent a line that is not JSON") from error

    def _fed(self, answer: Answer, event: dict[str, Any]) -> StreamPart | None:
        try:
            return answer.feed(event)
        except (KeyError, TypeError, AttributeError) as error:
            raise broken("an event of the server is not of the Messages API") from error

    async def _ask_for(self, model: str) -> ModelInfo | None:
        try:
            client = await self._client()
            found = await client.models.retrieve(model, timeout=MODEL_INFO_TIMEOUT_S)
        except HoldfastError:
            return None
        except _failures() as error:
            _log.info(
                "no limits of %s from %s: %s", model, sdk.shown(self.url), type(error).__name__
            )
            return None
        return _as_info(model, found)

    def _attempt(self, model: str, *, began: bool = False) -> Attempt:
        return Attempt(sdk.shown(self.url), model, self._clock.now(), began)

    def _no_answer(self) -> ProviderError:
        return ProviderError(
            "timeout",
            f"No answer from {sdk.shown(self.url)} within {self._first_byte_s:g} s.",
            hint=WAIT_HINT,
            retryable=True,
        )

    def _stalled(self) -> ProviderError:
        return ProviderError(
            "timeout",
            f"The answer stopped: nothing came for {self._stall_s:g} s.",
            hint=STREAM_HINT,
            retryable=True,
        )


def arguments(request: Request) -> dict[str, Any]:
    """A request as the SDK takes it; what is not set is left out."""
    optional: dict[str, Any] = {
        "system": request.system or None,
        "tools": request.tools or None,
        "thinking": request.thinking,
        "output_config": {"effort": request.effort} if request.effort else None,
    }
    return {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "messages": request.messages,
        **{name: value for name, value in optional.items() if value is not None},
    }


def _failures() -> tuple[type[Exception], ...]:
    """What a request may raise. Only called once the SDK is loaded, or in vain."""
    import anthropic  # noqa: PLC0415
    import httpx2  # noqa: PLC0415

    return (
        anthropic.AnthropicError,
        httpx2.HTTPError,
        httpx2.InvalidURL,
        httpx2.StreamError,
        OSError,
        ValueError,
        TypeError,
    )


def _failed(task: asyncio.Task[AsyncAnthropic]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read what follows the last event, so that the connection can be used again."""
    with suppress(*_failures()):
        async with asyncio.timeout(_DRAIN_S):
            while await anext(chunks, None) is not None:
                pass


def _as_info(model: str, found: object) -> ModelInfo | None:
    """A model as the server described it; None if it does not say how much the model reads.

    Servers that only resemble the API may send anything: fields are not trusted to be there.
    """
    window = getattr(found, "max_input_tokens", None)
    if not isinstance(window, int) or window <= 0:
        return None
    fallback = catalogue.look_up(model)
    output = getattr(found, "max_tokens", None)
    known = found
    for name in ("capabilities", "thinking", "types", "adaptive", "supported"):
        known = getattr(known, name, None)
    return ModelInfo(
        model,
        window,
        output if isinstance(output, int) and output > 0 else fallback.max_output,
        "server",
        known if isinstance(known, bool) else fallback.adaptive_thinking,
    )
