"""One table: what a server or the network does, over real HTTP, and the error that it becomes.

Each row is a fault of the loopback server, as it would come through the SDK.
"""

from __future__ import annotations

import socket
import ssl
from typing import Any

import pytest

from tests.provider.conversation import MODEL, a_request, ask, provider_for
from tests.support.clock import FakeClock, ManualClock
from tests.support.rejections import REJECTIONS
from tests.support.server import LoopbackServer
from tests.support.server_script import Json
from tui.core.errors import ErrorClass, ProviderError
from tui.provider.anthropic import AnthropicProvider
from tui.provider.anthropic.classify import RequestAttempt, classify

_PAGE = "<!doctype html><html><title>Log in</title></html>"


async def _failure(provider: AnthropicProvider) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await ask(provider)
    await provider.aclose()
    return caught.value


async def _over_http(fault: Json) -> ProviderError:
    turn = {"text": "a long enough answer", "tools": [{"name": "t"}], "faults": [fault]}
    async with LoopbackServer({"turns": [turn]}) as server:
        return await _failure(provider_for(server))


@pytest.mark.parametrize(
    ("fault", "error_class", "retryable", "said"),
    [
        # answers in JSON
        ({"status": 400, "message": "nope"}, "invalid_request", False, "rejected the request"),
        ({"status": 401, "message": "invalid x-api-key"}, "auth", False, "rejected the API key"),
        ({"status": 402}, "billing", False, "can't pay"),
        ({"status": 403}, "auth", False, "isn't allowed to do this"),
        ({"status": 404, "message": f"model: {MODEL}"}, "not_found", False, "There is no model"),
        ({"status": 413}, "payload_too_large", False, "larger than"),
        ({"status": 429, "retry_after": 3}, "rate_limit", True, "rate limit"),
        ({"status": 500, "type": "api_error"}, "server", True, "The server failed"),
        ({"status": 529}, "overloaded", True, "is overloaded"),
        ({"overflow": True}, "context_overflow", False, "prompt is too long"),
        ({"overflow": "max_tokens"}, "context_overflow", False, "exceed context limit"),
        # answers that are not the API's
        ({"status": 502, "html": "Bad Gateway"}, "server", True, "a web page “Bad Gateway” (502)"),
        ({"status": 200, "html": _PAGE}, "not_found", False, "a web page “Log in”, not with"),
        ({"status": 511, "html": _PAGE}, "network", False, "a web page “Log in” (511)"),
        ({"status": 302, "body": ""}, "not_found", False, "redirects to elsewhere"),
        ({"status": 407, "body": ""}, "network", False, "wants a login"),
        ({"status": 503, "body": ""}, "server", True, "The server failed (503)."),
        ({"status": 500, "body": "upstream died"}, "server", True, "upstream died"),
        (
            {"status": 500, "body": "{broken", "content_type": "application/json"},
            "server",
            True,
            "The server failed (500)",
        ),
        (
            {"status": 200, "body": "", "content_type": "application/json"},
            "not_found",
            False,
            "answered with application/json",
        ),
        (
            {"status": 200, "body": "%PDF", "content_type": "application/pdf"},
            "not_found",
            False,
            "answered with application/pdf",
        ),
        # streams that do not end well
        ({"status": 200, "body": ""}, "stream_broken", True, "closed before the answer"),
        ({"eof_after": 0}, "stream_broken", True, "closed before the answer"),
        ({"eof_after": 4}, "stream_broken", True, "closed before the answer"),
        ({"cut_after": 4}, "stream_broken", True, "connection was lost"),
        ({"bad_json": True}, "stream_broken", True, "a line that is not JSON"),
        ({"raw": "data: [1]\n\n"}, "stream_broken", True, "a line that is not JSON"),
        ({"raw": "data: {}\n\n", "after": 0}, "stream_broken", True, "cut off"),
        # error events in a stream whose status is 200
        (
            {"error_event": {"type": "overloaded_error", "message": "Overloaded"}},
            "overloaded",
            True,
            "is overloaded: Overloaded",
        ),
        ({"error_event": {"type": "rate_limit_error"}}, "rate_limit", True, "rate limit"),
        ({"error_event": {"type": "api_error", "message": "boom"}}, "server", True, "boom"),
        (
            {"error_event": {"type": "invalid_request_error", "message": "prompt is too long"}},
            "context_overflow",
            False,
            "prompt is too long",
        ),
        ({"error_event": {"type": "authentication_error"}}, "auth", False, "rejected the API key"),
        ({"error_event": {"type": "news"}}, "unknown", False, "reported an error"),
    ],
)
async def test_every_failure_has_its_class_over_http(
    fault: Json, error_class: ErrorClass, retryable: bool, said: str
) -> None:
    if fault == {"raw": "data: {}\n\n", "after": 0}:
        fault = {"raw": "data: {}\n\n", "after": 0, "eof_after": 0}
    error = await _over_http(fault)
    assert (error.error_class, error.retryable) == (error_class, retryable)
    assert said in error.message
    assert error.hint
    assert error.message.endswith((".", "…"))


@pytest.mark.parametrize("number", list(REJECTIONS))
async def test_R12_a_rejected_request_is_one_whatever_its_text_mentions(number: str) -> None:
    error = await _over_http({"rejected": number})
    assert (error.error_class, error.status, error.retryable) == ("invalid_request", 400, False)
    assert REJECTIONS[number].rstrip(".") in error.message
    assert error.request_id == "req_0001"


async def test_tls_with_a_server_that_speaks_none_is_said() -> None:
    async with LoopbackServer() as server:
        url = server.url.replace("http:", "https:")
        error = await _failure(provider_for(server, base_url=url))
    assert (error.error_class, error.retryable) == ("network", True)
    assert error.message.startswith(f"Can't reach {url}: the server ")
    assert error.message.endswith("doesn't speak TLS.")


_AT = RequestAttempt("https://host", MODEL, FakeClock().now())


def _caused(by: BaseException) -> BaseException:
    """What the SDK makes of it."""
    import anthropic  # noqa: PLC0415
    import httpx2  # noqa: PLC0415

    request = httpx2.Request("POST", "https://host/v1/messages")
    error = anthropic.APIConnectionError(request=request)
    connect = httpx2.ConnectError("no")
    connect.__cause__ = by
    error.__cause__ = connect
    return error


@pytest.mark.parametrize(
    ("cause", "retryable", "said"),
    [
        (socket.gaierror(-2, "Name or service not known"), True, "unknown host name"),
        (ConnectionRefusedError(111, "refused"), True, "connection refused"),
        (OSError(101, "unreachable"), True, "network is unreachable"),
        (ssl.SSLCertVerificationError(1, "self-signed"), False, "Couldn't verify"),
        (ssl.SSLError(1, "wrong version number"), True, "the server doesn't speak TLS"),
    ],
)
async def test_what_keeps_a_connection_from_being_made_is_said(
    cause: BaseException, retryable: bool, said: str
) -> None:
    error = classify(_caused(cause), _AT)
    assert (error.error_class, error.retryable) == ("network", retryable)
    assert said in error.message


async def test_a_proxy_that_refuses_is_said() -> None:
    import httpx2  # noqa: PLC0415

    error = classify(_caused(httpx2.ProxyError("407 Proxy Authentication Required")), _AT)
    assert error.error_class == "network"
    assert "the proxy said “407 Proxy Authentication Required”" in error.message


@pytest.mark.parametrize(
    ("name", "error_class"),
    [
        ("ReadError", "stream_broken"),
        ("RemoteProtocolError", "stream_broken"),
        ("DecodingError", "stream_broken"),
        ("ReadTimeout", "timeout"),
        ("PoolTimeout", "timeout"),
    ],
)
async def test_raw_errors_of_the_http_layer_in_mid_stream(
    name: str, error_class: ErrorClass
) -> None:
    import httpx2  # noqa: PLC0415

    raised: Any = getattr(httpx2, name)("x")
    at = RequestAttempt("https://host", MODEL, FakeClock().now(), began=True)
    error = classify(raised, at)
    assert (error.error_class, error.retryable) == (error_class, True)


async def test_R14_tokens_are_counted_by_the_server() -> None:
    async with LoopbackServer() as server:
        provider = provider_for(server)
        assert await provider.count_tokens(a_request(effort="high")) > 0
        await provider.aclose()
    assert [r.path for r in server.requests] == ["/v1/messages/count_tokens"]
    assert "max_tokens" not in server.requests[0].body


@pytest.mark.parametrize(
    ("fault", "error_class"),
    [
        ({"status": 429, "retry_after": 5}, "rate_limit"),
        ({"status": 404, "body": "gone"}, "not_found"),
        ({"status": 200, "html": _PAGE}, "not_found"),
        ({"status": 200, "body": {"tokens": 3}}, "not_found"),
    ],
)
async def test_a_count_that_fails_has_a_class_too(fault: Json, error_class: ErrorClass) -> None:
    async with LoopbackServer({"count_faults": [fault]}) as server:
        provider = provider_for(server, clock=ManualClock())
        with pytest.raises(ProviderError) as caught:
            await provider.count_tokens(a_request())
        await provider.aclose()
    assert caught.value.error_class == error_class


async def test_O28_an_overflow_by_max_tokens_goes_away_with_a_lower_one() -> None:
    turn = {"text": "ok", "faults": [{"overflow": "max_tokens"}]}
    async with LoopbackServer({"turns": [turn]}) as server:
        provider = provider_for(server)
        with pytest.raises(ProviderError):
            await ask(provider)
        with pytest.raises(ProviderError) as caught:
            await ask(provider)
        assert caught.value.overflow is not None
        room = caught.value.overflow.output_room()
        assert room == 500
        await ask(provider, a_request(max_tokens=room))
        await provider.aclose()


async def test_O22_an_overflow_stays_until_the_request_is_smaller() -> None:
    turn = {"text": "ok", "faults": [{"overflow": "until_smaller"}, {"status": 529}]}
    async with LoopbackServer({"turns": [turn]}) as server:
        provider = provider_for(server)
        large = a_request({"role": "user", "content": [{"type": "text", "text": "x" * 100}]})
        classes: list[ErrorClass] = []
        for request in (large, large, a_request()):
            with pytest.raises(ProviderError) as caught:
                await ask(provider, request)
            classes.append(caught.value.error_class)
        await ask(provider, large)
        await provider.aclose()
    assert classes == ["context_overflow", "context_overflow", "overloaded"]


_WHOLE: Json = {
    "type": "message",
    "id": "msg_1",
    "model": MODEL,
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "Here."},
        {"type": "tool_use", "id": "t1", "name": "t", "input": {"a": [1]}},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 7, "output_tokens": 3},
}


async def test_24_an_answer_in_one_piece_is_an_answer() -> None:
    async with LoopbackServer({"turns": [{"faults": [{"status": 200, "body": _WHOLE}]}]}) as server:
        provider = provider_for(server)
        done = await ask(provider)
        await provider.aclose()
    assert done.content == _WHOLE["content"]
    assert (done.stop_reason, done.usage.input_tokens, done.usage.output_tokens) == (
        "tool_use",
        7,
        3,
    )


@pytest.mark.parametrize(
    "raw",
    ["data: " + "[" * 100_000 + "\n\n", "data: " + "x" * 300 + "\n" * 2, "d" * 100_000],
    ids=["deep", "no JSON", "no end"],
)
async def test_23_what_no_answer_looks_like_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, raw: str
) -> None:
    monkeypatch.setattr("tui.provider.anthropic.sse.EVENT_MAX", 200)
    error = await _over_http({"raw": raw, "after": 2})
    assert (error.error_class, error.retryable) == ("stream_broken", True)


@pytest.mark.parametrize("error", [TypeError("no"), ValueError("no"), KeyError("no")])
@pytest.mark.parametrize(
    "where", ["convert.payload", "AnswerBuilder.feed", "EventDecoder.feed", "Silence.heard"]
)
async def test_a_mistake_of_the_adapter_is_not_said_to_be_the_servers(
    monkeypatch: pytest.MonkeyPatch, where: str, error: Exception
) -> None:
    def mistaken(*_: object) -> None:
        raise error

    monkeypatch.setattr(f"tui.provider.anthropic.client.{where}", mistaken)
    async with LoopbackServer({"turns": [{"text": "hello"}]}) as server:
        provider = provider_for(server)
        with pytest.raises(type(error)) as caught:
            await ask(provider)
        await provider.aclose()
    assert caught.value is error


async def test_a_mistake_while_a_request_is_sent_is_not_said_to_be_the_servers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def mistaken(*_: object) -> list[str]:
        return ["mistake"]

    monkeypatch.setattr("tui.provider.anthropic.client.client_factory.headers", mistaken)
    async with LoopbackServer() as server:
        provider = provider_for(server)
        with pytest.raises(ValueError, match="dictionary update"):
            await ask(provider)
        await provider.aclose()
