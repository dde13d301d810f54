"""Message batches, through the SDK's client: `messages.batches` itself would load all its types."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Generator, Mapping
from contextlib import contextmanager
from datetime import datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from tui.core.errors import ProviderError
from tui.core.messages import list_of, object_of, string_of
from tui.provider.anthropic import client_factory, convert
from tui.provider.anthropic.answer import AnswerBuilder, MalformedEventError
from tui.provider.anthropic.classify import from_answer, not_the_api, stream_error
from tui.provider.anthropic.client import AnthropicProvider
from tui.provider.anthropic.sse import EventDecoder, whole_message
from tui.provider.anthropic.stall_timeout import PROGRESS, Silence
from tui.provider.base import Completed, Request
from tui.provider.message_batches import BYTES_MAX, REQUESTS_MAX, BatchResult, SentBatch

if TYPE_CHECKING:
    import httpx2

_BATCHES: Final = "/v1/messages/batches"
_PAGE: Final = 100
_NOT_THERE: Final = {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}
_GONE: Final = (
    "Use the key it was sent with. Results are kept for 29 days; --reset forgets the batch."
)
_AGAIN: Final = "Run it again to ask again."


class AnthropicBatches(AnthropicProvider):
    """The batches of a server that speaks the Messages API. Implements `MessageBatches`."""

    async def create(self, requests: Mapping[str, Request]) -> SentBatch:
        items = [{"custom_id": id_, "params": _params(one)} for id_, one in requests.items()]
        size = len(json.dumps(items, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        if len(items) > REQUESTS_MAX or size > BYTES_MAX:
            raise ProviderError(
                "payload_too_large",
                f"{len(items):,} questions with {size / 1e6:,.0f} MB are too much for one batch.",
                hint=f"At most {REQUESTS_MAX:,} and {BYTES_MAX // 1024**2} MB: split the file.",
            )
        body, client = {"requests": items}, await self._client()
        betas = [beta for one in requests.values() for beta in convert.betas(one)]
        headers = client_factory.headers(client, betas)
        with self._missing("doesn't offer message batches", "Leave out --batch-api."):
            response = await self._answer(
                client.post(
                    _BATCHES, body=body, options={"headers": headers}, cast_to=_response_type()
                ),
                body,
            )
        return self._described(response)

    async def describe(self, batch: str) -> SentBatch:
        with self._missing(f"doesn't have the batch {batch}", _GONE):
            return self._described(await self._get(f"{_BATCHES}/{quote(batch, safe='')}"))

    async def cancel(self, batch: str) -> None:
        place, client = f"{_BATCHES}/{quote(batch, safe='')}/cancel", await self._client()
        with self._missing(f"doesn't have the batch {batch}", _GONE):
            await self._answer(client.post(place, cast_to=_response_type()))

    async def made_since(self, moment: datetime) -> list[SentBatch]:
        made: list[SentBatch] = []
        query: dict[str, object] = {"limit": _PAGE}
        while True:
            response = await self._get(_BATCHES, query)
            page = object_of(_json_of(response))
            batches = [_sent(one) for one in list_of(page.get("data"))]
            made += [one for one in batches if one and one.created_at >= moment]
            last = batches[-1] if batches else None
            if last is None or last.created_at < moment or page.get("has_more") is not True:
                return made
            query["after_id"] = last.id

    async def results(self, batch: str) -> AsyncGenerator[BatchResult]:
        from anthropic import AsyncStream  # noqa: PLC0415 - loaded by now

        client, at = await self._client(), self._attempt("")
        async with Silence(self._clock, self._first_byte_s, self._stall_s) as silence:
            missing = self._missing(f"doesn't have the results of the batch {batch}", _GONE)
            with missing, self._typed(silence, at):
                stream = await silence.wait(
                    client.get(
                        f"{_BATCHES}/{quote(batch, safe='')}/results",
                        cast_to=object,
                        stream=True,
                        stream_cls=AsyncStream[object],
                    )
                )
            # A batch may be large: each result is passed on as soon as its line is complete.
            chunks, rest = stream.response.aiter_bytes(), b""
            try:
                while True:
                    with self._typed(silence, at):
                        chunk = await silence.wait(anext(chunks, None))
                    *lines, rest = (rest + (chunk or b"\n")).split(b"\n")
                    for line in lines:
                        if line.strip():
                            yield self._result(line)
                    if chunk is None:
                        return
                    silence.heard(PROGRESS, len(chunk))
            finally:
                await stream.response.aclose()

    async def _get(self, place: str, query: Mapping[str, object] | None = None) -> httpx2.Response:
        client, kind = await self._client(), _response_type()
        return await self._answer(
            client.get(place, cast_to=kind, options={"params": query} if query else {})
        )

    async def _answer(
        self, coming: Awaitable[httpx2.Response], sent: Mapping[str, Any] | None = None
    ) -> httpx2.Response:
        """Return the answer to a request, or raise its failure as a ProviderError."""
        async with Silence(self._clock, self._first_byte_s, self._stall_s) as silence:
            with self._typed(silence, self._attempt(""), sent):
                return await silence.wait(coming)

    @contextmanager
    def _missing(self, what: str, hint: str) -> Generator[None]:
        """Explain in words what it means that the server has no such thing."""
        try:
            yield
        except ProviderError as error:
            if error.status not in _NOT_THERE:
                raise
            message = f"{client_factory.shown(self.url)} {what} ({error.status})."
            raise ProviderError(
                "not_found",
                message,
                hint=hint,
                status=error.status,
                request_id=error.request_id,
            ) from error

    def _described(self, response: httpx2.Response) -> SentBatch:
        batch = _sent(_json_of(response), response.headers.get("request-id"))
        if batch is None:
            raise not_the_api(response.headers, response.content, self._attempt(""))
        return batch

    def _result(self, line: bytes) -> BatchResult:
        """Read one line of the results. Raises ProviderError for one that cannot be read."""
        try:
            entry = object_of(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise stream_error("a line of the batch's results is not JSON") from error
        result = object_of(entry.get("result"))
        return BatchResult(string_of(entry.get("custom_id")), self._outcome(result))

    def _outcome(self, result: Mapping[str, Any]) -> Completed | ProviderError:
        match result.get("type"):
            case "succeeded":
                return _completed(result.get("message"))
            case "errored":
                error = from_answer(HTTPStatus.OK, {}, result.get("error"), self._attempt(""))
                if error.error_class == "invalid_request":  # there is no conversation to repair
                    error.hint = "Once the cause is gone, ask again with --retry-failed."
                return error
            case "expired":
                message = "The batch expired after 24 hours, before this question was answered."
                return ProviderError("timeout", message, hint=_AGAIN, retryable=True)
            case "canceled":
                message = "The batch was canceled before this question was answered."
                return ProviderError("unknown", message, hint=_AGAIN, retryable=True)
            case _:
                return stream_error("a result of the batch can't be read")


def _params(request: Request) -> dict[str, Any]:
    return {name: value for name, value in convert.payload(request).items() if name != "stream"}


def _completed(message: object) -> Completed | ProviderError:
    """Decode an answer that came as one message."""
    answer = AnswerBuilder("")
    try:
        events = whole_message(json.dumps(message).encode())
        for event in EventDecoder().feed(events or b""):
            answer.feed(event)
    except (MalformedEventError, ValueError):
        events = None
    if not events:
        return stream_error("an answer of the batch can't be read")
    return answer.completed(None)


def _sent(content: object, request_id: str | None = None) -> SentBatch | None:
    """Decode a batch as the server describes it; None if it is none."""
    batch = object_of(content)
    counts = object_of(batch.get("request_counts"))
    try:
        made = datetime.fromisoformat(string_of(batch.get("created_at")))
    except ValueError:
        return None
    if not (id_ := string_of(batch.get("id"))) or made.tzinfo is None:
        return None
    waiting, succeeded, errored, canceled, expired = (
        value if isinstance(value := counts.get(name), int) else 0
        for name in ("processing", "succeeded", "errored", "canceled", "expired")
    )
    ended = batch.get("processing_status") == "ended"
    failed = errored + canceled + expired
    return SentBatch(id_, made, ended, waiting, succeeded, failed, request_id)


def _json_of(response: httpx2.Response) -> object:
    try:
        return response.json()
    except (ValueError, RecursionError):
        return None


def _response_type() -> type[httpx2.Response]:
    import httpx2  # noqa: PLC0415 - loaded by now

    return httpx2.Response
