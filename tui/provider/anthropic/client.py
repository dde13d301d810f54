"""AnthropicProvider: one request, one stream of parts, one typed error."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote

from tui.core.clock import Clock
from tui.core.errors import HoldfastError, ProviderError
from tui.core.facts import Alive
from tui.core.messages import list_of, object_of
from tui.provider import catalogue
from tui.provider.anthropic import client_factory, convert
from tui.provider.anthropic.answer import (
    AnswerBuilder,
    MalformedEventError,
    Part,
    continues,
    joined,
)
from tui.provider.anthropic.classify import (
    STREAM_HINT,
    WAIT_HINT,
    RequestAttempt,
    classify,
    from_answer,
    not_json,
    not_the_api,
    request_id_of,
    stream_error,
)
from tui.provider.anthropic.parallel_starts import ParallelStarts
from tui.provider.anthropic.read_ahead import WAITED_S, ReadAhead
from tui.provider.anthropic.sse import (
    EVENT_MAX,
    BadEventDataError,
    EventDecoder,
    is_stream,
    whole_message,
)
from tui.provider.anthropic.stall_timeout import (
    LIFE,
    LONGEST_PINGING_S,
    NOTHING,
    PROGRESS,
    Silence,
)
from tui.provider.base import AttemptStarted, ModelInfo, Request, StreamPart

if TYPE_CHECKING:
    import httpx2
    from anthropic import AsyncAnthropic

    from tui.core.clouds import CloudAccess

_log = logging.getLogger(__name__)

MODEL_INFO_TIMEOUT_S: Final = 5.0
COUNT_TIMEOUT_S: Final = 30.0
ALIVE_EVERY_S: Final = 1.0
ASK_AGAIN_S: Final = 300.0
"""Seconds until a model's limits are asked for again after a failure."""

GATHER_S: Final = 0.1
"""Seconds at most between two reads of a slow stream; everything that arrived meanwhile is read at
once. As long as a frame of the screen, which shows it then."""
GATHER_SHARE: Final = 0.1
"""Share of the time since its first word that a stream is gathered for: short answers end at
once."""

_MESSAGES: Final = "/v1/messages"
_MODELS: Final = "/v1/models"
_NOT_COUNTED: Final = ("max_tokens", "stream", "diagnostics")

_AMAZON_STREAM: Final = "application/vnd.amazon.eventstream"
_INVOKE_VERSION: Final = "bedrock-2023-05-31"
"""The version of the API that InvokeModel takes for every model; models before Claude 4.7 refuse
the SDK's own there."""

_PAGE_BYTES: Final = 65_536
_NOT_VALID: Final = {200, 400, 403, 422}
"""Statuses whose errors may name what the server does not know; some gateways say it by 403."""
_LISTED_MAX: Final = 1000

_DRAIN_S: Final = 0.1


class AnthropicProvider:
    """Any server that speaks the Messages API, through the SDK. Implements `Provider`.

    `base_url` "" is the API itself, which needs a key; servers elsewhere may do without. Instead of
    using a key, the SDK can sign in with a `profile` of that name, or with "" as the environment
    describes a workload. `first_byte_timeout_s` runs from sending to the first byte of the answer;
    after that no silence may be longer than `stall_timeout_s` (pings and comments are no silence,
    bytes without an event are). Both run by `clock`. `context_window`, if not 0, is the window of
    every model. A `cloud` serves the models in the place of `base_url`, key and profile.

    It makes one attempt per request: retrying is up to a decorator. Without `env_headers` none of
    ANTHROPIC_CUSTOM_HEADERS are sent. The SDK is loaded by `load()`, or when it is first needed.
    """

    def __init__(
        self,
        *,
        api_key: str | None,
        clock: Clock,
        profile: str | None = None,
        base_url: str = "",
        first_byte_timeout_s: float = 600.0,
        stall_timeout_s: float = 120.0,
        context_window: int = 0,
        env_headers: bool = True,
        cloud: CloudAccess | None = None,
    ) -> None:
        self.url: Final = client_factory.api_url(base_url)
        self._cloud = cloud
        self._api_key, self._profile, self._env_headers = api_key, profile, env_headers
        self._clock = clock
        self._first_byte_s = first_byte_timeout_s
        self._stall_s = stall_timeout_s
        self._window = context_window
        self._loading: asyncio.Task[dict[bool, AsyncAnthropic]] | None = None
        self._past: list[asyncio.Task[dict[bool, AsyncAnthropic]]] = []
        """Clients that a cloud refused; an answer may still come through one."""
        self._known: dict[str, tuple[ModelInfo, float]] = {}
        self._starts = ParallelStarts(clock)

    async def load(self) -> None:
        """Load the SDK in a thread; call it after the first paint. May be called again.

        Raises CredentialsError without a usable key, ProviderError if the SDK is broken.
        """
        await self._client()

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        """Make one attempt. Closing the iterator or cancelling closes the connection at once."""
        client, model = await self._client(request.model), request.model
        async with (
            self._starts.start(request) as start,
            Silence(self._clock, self._first_byte_s, self._stall_s) as silence,
        ):
            yield AttemptStarted(1, model)
            response, chunks = await self._open(client, request, silence)
            answer, decoder = AnswerBuilder(model), EventDecoder()
            shown_at = self._clock.monotonic()
            first_at: float | None = None
            async with aclosing(response), ReadAhead(chunks, self._clock) as ahead:
                while not answer.done and (chunk := await self._next(ahead, model, silence)):
                    comments, shown, sign = decoder.comments, False, NOTHING
                    events, broken = _decoded(decoder.feed(chunk))
                    for event in events:
                        sign = max(sign, LIFE if event["type"] == "ping" else PROGRESS)
                        if event["type"] == "message_start":
                            start.begin()
                    for delta in self._deltas(answer, events, response, request, broken):
                        shown = True
                        yield delta
                    if decoder.comments > comments:
                        sign = max(sign, LIFE)
                    alive, now = silence.heard(sign, len(chunk)), self._clock.monotonic()
                    # Nothing is shown while pings arrive, but the caller learns that the answer
                    # still lives.
                    if shown:
                        shown_at = now
                    elif alive and now - shown_at >= ALIVE_EVERY_S:
                        shown_at = now
                        yield Alive()
                    # A slow stream is gathered for a moment, so that not every word redraws the
                    # screen. On a busy machine a read may take long though more has arrived.
                    if shown and ahead.waited and not answer.done and not _has_more(response):
                        first_at = now if first_at is None else first_at
                        gathered_s = GATHER_SHARE * (now - first_at)
                        await self._clock.sleep(min(GATHER_S, max(WAITED_S, gathered_s)))
                for delta in self._last_deltas(answer, decoder, response, request):
                    yield delta
                await _drain(ahead)
                done = answer.completed(request_id_of(response.headers))
                # A cloud has other names for the same model.
                same = catalogue.base_name(done.model) == catalogue.base_name(model)
                yield replace(done, model=model) if self._cloud and same else done

    async def count_tokens(self, request: Request) -> int:
        """Return the server's count of a request's input tokens; one attempt, 30 s at most."""
        if self._cloud is not None and "count_tokens" in self._cloud.cloud.lacks:
            title = self._cloud.cloud.title
            raise ProviderError(
                "not_found", f"{title} doesn't count tokens.", hint="Estimate them."
            )
        client = await self._client(request.model)
        at = self._attempt(request.model)
        given = self._payload(request)
        for name in _NOT_COUNTED:
            given.pop(name, None)
        async with Silence(self._clock, COUNT_TIMEOUT_S, COUNT_TIMEOUT_S) as silence:
            with self._typed(silence, at, given):
                counted = await silence.wait(
                    client.post(
                        f"{_MESSAGES}/count_tokens",
                        body=given,
                        options={"headers": client_factory.headers(client, convert.betas(request))},
                        cast_to=object,
                    )
                )
        tokens = object_of(counted).get("input_tokens")
        if not isinstance(tokens, int):
            raise not_the_api({}, b"", at)
        return tokens

    async def model_info(self, model: str) -> ModelInfo:
        """Return the server's description if it gives one within 5 s, kept; otherwise the
        catalogue's."""
        known, until = self._known.get(model, (None, 0.0))
        if known is None or self._clock.monotonic() >= until:
            asked = await self._ask_for(model) if self._cloud is None else None
            known = asked or catalogue.model_info(model)
            lasts = float("inf") if asked else ASK_AGAIN_S
            self._known[model] = known, self._clock.monotonic() + lasts
        if self._window:
            return replace(known, window=self._window, source="config")
        return known

    async def list_models(self) -> list[object]:
        """Return the models that the server lists, in JSON; [] if it doesn't within 5 s, as no
        cloud does. Never raises."""
        if self._cloud is not None:
            return []
        try:
            listing = await self._get_json(_MODELS, limit=_LISTED_MAX)
            return list_of(object_of(listing).get("data"))
        except HoldfastError:
            return []
        except (*_failures(), ValueError, TypeError) as error:
            place, why = client_factory.shown(self.url), type(error).__name__
            _log.info("no list of models from %s: %s", place, why)
            return []

    async def aclose(self) -> None:
        """Close all connections, without waiting for an import that is under way."""
        for loading in filter(None, (self._loading, *self._past)):
            if not loading.done():
                loading.cancel()
            elif not _failed(loading):
                for client in loading.result().values():
                    await client.close()

    async def _client(self, model: str = "") -> AsyncAnthropic:
        """The client for a model's requests; for those about no model, that of the server."""
        if self._cloud is not None:
            self._cloud.check()
        client_factory.check_url(self._address(model))
        key, profile = None, self._profile
        if profile is None and self._cloud is None:
            key = client_factory.usable_key(self._api_key, self.url)
        if self._loading is None or _failed(self._loading):
            self._loading = asyncio.create_task(
                client_factory.load_client(
                    key,
                    self.url,
                    profile=profile,
                    env_headers=self._env_headers,
                    cloud=self._cloud,
                )
            )
        # Shielded: if one caller is cancelled, the others still get the import.
        clients = await asyncio.shield(self._loading)
        return clients[self._cloud is None or self._cloud.takes_messages(model)]

    def _sign_in_again(self) -> None:
        """Let the next request sign in to the cloud again: the person may do so meanwhile."""
        if self._cloud is not None and self._loading is not None and self._loading.done():
            self._past.append(self._loading)
            self._loading = None

    def _address(self, model: str) -> str:
        """The address that a model's requests go to."""
        if self._cloud is None:
            return self.url
        own = self._cloud.messages_address if self._cloud.takes_messages(model) else ""
        return own or self._cloud.address

    def _payload(self, request: Request) -> dict[str, Any]:
        """The body of a request, with what a cloud calls its model."""
        given = convert.payload(request)
        if self._cloud is not None:
            given["model"] = self._cloud.id_of(request.model)
            if not self._cloud.takes_messages(request.model):
                given["anthropic_version"] = _INVOKE_VERSION
            shared = {
                name: given[name] for name in ("messages", "system", "tools") if name in given
            }
            given |= {name: convert.Uncopied(value) for name, value in shared.items()}
        return given

    def _check_size(self, given: Mapping[str, Any], model: str) -> None:
        """Raise ProviderError for a request that the cloud would refuse as too large: nothing of it
        is sent, and the caller makes it smaller, as after a refusal of the API's own."""
        if self._cloud is None:
            return
        cloud = self._cloud.cloud
        try:
            length = len(json.dumps(given, ensure_ascii=False, separators=(",", ":")).encode())
        except (TypeError, ValueError):
            return  # what sends it says so
        if length > cloud.request_bytes:
            text = f"{length / 1e6:.1f} MB, of at most {cloud.request_mb} MB; nothing was sent"
            body = {"error": {"type": "request_too_large", "message": text}}
            at = self._attempt(model)
            raise from_answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {}, body, at)

    async def _open(
        self, client: AsyncAnthropic, request: Request, silence: Silence
    ) -> tuple[httpx2.Response, AsyncGenerator[bytes]]:
        """Send the request. Returns the response and its stream of events, or raises."""
        from anthropic import AsyncStream  # noqa: PLC0415 - loaded by now

        given = self._payload(request)
        try:
            self._check_size(given, request.model)
            with self._typed(silence, self._attempt(request.model), given):
                # `messages.create` does the same, but its module needs all types of the API.
                stream = await silence.wait(
                    client.post(
                        _MESSAGES,
                        body=given,
                        options={"headers": client_factory.headers(client, convert.betas(request))},
                        cast_to=object,
                        stream=True,
                        stream_cls=AsyncStream[object],
                    )
                )
        except ProviderError as error:
            if error.error_class == "auth":
                self._sign_in_again()
            _with_feature(error, request)
            raise
        response = stream.response
        kind = response.headers.get("content-type", "text/event-stream")
        name = kind.partition(";")[0].strip().lower()
        if name in {"text/event-stream", "text/plain"}:
            return response, _body(response)
        if name == _AMAZON_STREAM:
            from tui.provider.anthropic import event_stream  # noqa: PLC0415 - of one cloud alone

            return response, event_stream.as_server_sent_events(_body(response))
        # Not named a stream: a message in one piece, something that is not the API, or a stream.
        chunks, streams = _body(response), False
        try:
            most = EVENT_MAX if "json" in kind else _PAGE_BYTES
            page = await self._beginning_of(chunks, silence, most)
            streams = is_stream(page)
        finally:
            if not streams:
                await response.aclose()
        if streams:
            return response, _after(page, chunks)
        if (events := whole_message(page)) is None:
            error = not_the_api(response.headers, page, self._attempt(request.model))
            raise _with_feature(error, request)
        return response, _once(events)

    async def _beginning_of(
        self, chunks: AsyncIterator[bytes], silence: Silence, most: int
    ) -> bytes:
        """Read a page up to a length; of a stream of events, no more than shows that it is one."""
        beginning = b""
        with suppress(*_failures()):
            while len(beginning) < most and not is_stream(beginning):
                chunk = await silence.wait(anext(chunks, None))
                if chunk is None:
                    break
                beginning += chunk
        return beginning

    async def _next(self, ahead: ReadAhead, model: str, silence: Silence) -> bytes:
        """Return the next bytes of an answer, b"" at their end; a silence that is too long is an
        error."""
        try:
            return await silence.wait(ahead.read())
        except _failures() as error:
            raise self._error(error, silence, self._attempt(model, began=True)) from error

    @contextmanager
    def _typed(
        self, silence: Silence, at: RequestAttempt, sent: Mapping[str, Any] | None = None
    ) -> Generator[None]:
        """Turn everything that sending a request raises into one ProviderError.

        A mistake inside the program is raised as it is: it says nothing about the server. `sent` is
        the value that is written as JSON.
        """
        try:
            yield
        except _failures() as error:
            raise self._error(error, silence, at) from error
        except (TypeError, ValueError, RuntimeError) as error:
            if _unsigned(error):
                raise self._error(error, silence, at) from error
            if sent is None or (unwritable := not_json(sent)) is None:
                raise
            raise unwritable from error

    def _error(self, error: Exception, silence: Silence, at: RequestAttempt) -> ProviderError:
        return self._silent(silence, at.url) if silence.expired else classify(error, at)

    def _deltas(
        self,
        answer: AnswerBuilder,
        events: Sequence[dict[str, Any]],
        response: httpx2.Response,
        request: Request,
        failure: ProviderError | None = None,
    ) -> Iterator[Part]:
        """Yield the parts that these events add to the answer. Consecutive deltas of one kind are
        joined, so that they are shown together. Those before an error, or before the `failure` that
        follows the events, are yielded before it is raised; after the end of the answer it counts
        for nothing."""
        row: list[Part] = []
        for event in events:
            if answer.done:
                break
            try:
                delta = self._fed(answer, event, response, request)
            except ProviderError as error:
                # Raised at the end, so that the parts before the error are not lost.
                failure = error
                break
            if delta is None:
                continue
            if row and not continues(row[0], delta):
                yield joined(row)
                row = []
            row.append(delta)
        if row:
            yield joined(row)
        if failure is not None and not answer.done:
            raise failure

    def _last_deltas(
        self,
        answer: AnswerBuilder,
        decoder: EventDecoder,
        response: httpx2.Response,
        request: Request,
    ) -> Iterator[Part]:
        """Yield what the end of the stream adds to an answer. Raises ProviderError if the answer is
        not complete by then, or is none at all."""
        if answer.done:
            return
        events, _ = _decoded(decoder.finish())
        yield from self._deltas(answer, events, response, request)
        answer.end()
        if answer.done:
            return
        if not answer.begun and decoder.stray:
            at = self._attempt(request.model)
            raise _with_feature(not_the_api(response.headers, decoder.stray, at), request)
        if not answer.begun and decoder.begun:
            why = "the server sent nothing that is an event of the Messages API"
            raise stream_error(why, unreadable=True)
        raise stream_error("the connection closed before the answer was complete")

    def _fed(
        self,
        answer: AnswerBuilder,
        event: dict[str, Any],
        response: httpx2.Response,
        request: Request,
    ) -> Part | None:
        if event["type"] == "error" or event.get("error") is not None:
            at = self._attempt(request.model, began=True)
            error = from_answer(response.status_code, response.headers, event, at)
            raise _with_feature(error, request)
        try:
            return answer.feed(event)
        except MalformedEventError as error:
            why = "an event of the server is not of the Messages API"
            raise stream_error(why, unreadable=True) from error

    async def _ask_for(self, model: str) -> ModelInfo | None:
        try:
            description = await self._get_json(f"{_MODELS}/{quote(model, safe='')}")
            return convert.model_info(model, description)
        except HoldfastError:
            return None
        except (*_failures(), ValueError, TypeError) as error:
            place, why = client_factory.shown(self.url), type(error).__name__
            _log.info("no limits of %s from %s: %s", model, place, why)
            return None

    async def _get_json(self, path: str, **query: object) -> object:
        """Return the server's answer as JSON. Raises like `_failures`, and ValueError if it is no
        JSON."""
        import httpx2  # noqa: PLC0415

        client = await self._client()
        # With the header the API itself says if a model summarizes on request.
        first_party = client_factory.is_the_api(self.url)
        headers = client_factory.headers(client, [convert.COMPACTION] if first_party else [])
        answer = await client.get(
            path,
            options={"headers": headers, "timeout": MODEL_INFO_TIMEOUT_S, "params": query},
            cast_to=httpx2.Response,
        )
        return answer.json()

    def _attempt(self, model: str, *, began: bool = False) -> RequestAttempt:
        place, now = client_factory.shown(self._address(model)), self._clock.now()
        return RequestAttempt(place, model, now, began, self._cloud)

    @staticmethod
    def _silent(silence: Silence, place: str) -> ProviderError:
        """The error of a wait that was too long."""
        if silence.only_pings:
            minutes = f"{LONGEST_PINGING_S / 60:.0f} min"
            message, hint = f"{place} sent only pings for {minutes}.", STREAM_HINT
        elif silence.began:
            message = f"The answer stopped: nothing came for {silence.limit_s:g} s."
            hint = STREAM_HINT
        else:
            message = f"No answer from {place} within {silence.limit_s:g} s."
            hint = WAIT_HINT
        return ProviderError("timeout", message, hint=hint, retryable=True)


def _failures() -> tuple[type[Exception], ...]:
    """The exceptions that a request may raise. Only called once the SDK is loaded, or in vain."""
    import anthropic  # noqa: PLC0415
    import httpx2  # noqa: PLC0415

    return (
        anthropic.AnthropicError,
        httpx2.HTTPError,
        httpx2.InvalidURL,
        httpx2.StreamError,
        OSError,
        json.JSONDecodeError,
        UnicodeDecodeError,
        *_cloud_failures(),
    )


def _cloud_failures() -> tuple[type[Exception], ...]:
    """The exceptions of a cloud's libraries, where one is used."""
    loaded: Any = sys.modules.get(f"{__package__}.cloud_clients")
    return () if loaded is None else loaded.failures()


def _unsigned(error: Exception) -> bool:
    loaded: Any = sys.modules.get(f"{__package__}.cloud_clients")
    return loaded is not None and loaded.unsigned(error) is not None


def _with_feature(error: ProviderError, request: Request) -> ProviderError:
    """The error with the feature of the request that it names."""
    known = error.retryable or error.thinking_refused or error.answer or error.images
    if error.status in _NOT_VALID and not known:
        error.feature = convert.refused_feature(error.message, request)
    return error


def _failed(task: asyncio.Task[dict[bool, AsyncAnthropic]]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


def _decoded(
    events: Iterator[dict[str, Any]],
) -> tuple[list[dict[str, Any]], ProviderError | None]:
    """The events up to the first that cannot be read, and the error of that."""
    read: list[dict[str, Any]] = []
    try:
        read.extend(events)
    except BadEventDataError as error:
        failure = stream_error("the server sent a line that is not JSON", unreadable=True)
        failure.__cause__ = error
        return read, failure
    return read, None


def _body(response: httpx2.Response) -> AsyncGenerator[bytes]:
    """The chunks of a response, unpacked if they are packed."""
    if "content-encoding" in response.headers:
        return response.aiter_bytes()
    # `aiter_raw` gives the same, at a tenth more of the time that HTTP takes for each chunk.
    return cast("AsyncGenerator[bytes]", aiter(cast("httpx2.AsyncByteStream", response.stream)))


async def _after(beginning: bytes, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    yield beginning
    async for chunk in chunks:
        yield chunk


async def _once(data: bytes) -> AsyncGenerator[bytes]:
    yield data


def _has_more(response: httpx2.Response) -> bool:
    """True if more of an answer has arrived than was read."""
    stream = response.extensions.get("network_stream")
    return bool(stream and stream.get_extra_info("is_readable"))


async def _drain(ahead: ReadAhead) -> None:
    """Read what follows the last event, so that the connection can be reused."""
    with suppress(*_failures()):
        async with asyncio.timeout(_DRAIN_S):
            while await ahead.read():
                pass
