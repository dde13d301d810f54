"""What servers answer and networks do, and what becomes of it for the person."""

from __future__ import annotations

import email.utils
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.provider.conversation import MODEL, a_request, ask, provider_for
from tests.provider.statuses import STATUSES
from tests.support.clock import FakeClock
from tests.support.rejections import REJECTIONS
from tests.support.server import LoopbackServer
from tests.support.server_binding import ELSEWHERE, OTHER_SYSTEM
from tests.support.server_script import Json
from tui.core.errors import CredentialsError, ErrorClass, Overflow, ProviderError
from tui.provider.anthropic import AnthropicProvider
from tui.provider.anthropic.classify import RequestAttempt, from_answer, retry_after
from tui.provider.anthropic.error_rules import RULES

_AT = RequestAttempt("https://host", MODEL, FakeClock().now())


def _error(status: int, body: object = "", headers: dict[str, str] | None = None) -> ProviderError:
    return from_answer(status, headers or {}, body, _AT)


def _api(kind: str, message: str = "m", **details: str) -> Json:
    error: Json = {"type": kind, "message": message}
    return {"type": "error", "error": error | ({"details": details} if details else {})}


def _rejected(message: str) -> Json:
    return _api("invalid_request_error", message)


def _other(message: str, **more: str) -> Json:
    """An error as servers of other makes write it."""
    return {"error": {"message": message, **more}}


async def _answered(fault: Json) -> ProviderError:
    """The error that a faulty answer of a real server becomes, through the SDK."""
    async with LoopbackServer({"turns": [{"text": "x", "faults": [fault]}]}) as server:
        provider = provider_for(server)
        with pytest.raises(ProviderError) as caught:
            await ask(provider)
        await provider.aclose()
    return caught.value


@pytest.mark.parametrize(("status", "error_class", "retryable"), STATUSES)
async def test_R17_every_status_has_its_class(
    status: int, error_class: ErrorClass, retryable: bool
) -> None:
    error = await _answered({"status": status, "body": {"nothing": "known"}})
    assert (error.error_class, error.retryable) == (error_class, retryable)
    assert error.status == status
    assert error.request_id == "req_0001"
    assert error.hint


@pytest.mark.parametrize(
    ("status", "body", "error_class"),
    [
        (429, _api("rate_limit_error", "would exceed your limit of 50 requests"), "rate_limit"),
        (529, _api("overloaded_error", "Overloaded"), "overloaded"),
        (503, _api("overloaded_error", "Overloaded"), "overloaded"),
        (400, _rejected("Your credit balance is too low to access the Anthropic API."), "billing"),
        (429, _api("rate_limit_error", error_code="enforced_spend_limit_reached"), "billing"),
        (400, _rejected("messages.1: `tool_use` ids were found without"), "invalid_request"),
        (400, _rejected("max_tokens: 64001 > 64000, which is the maximum"), "invalid_request"),
        (404, {"error": 'model "qwen" not found, try pulling it first'}, "not_found"),
        (400, _other("invalid model: x", code="model_not_found"), "not_found"),
        (401, _other("Incorrect API key", code="invalid_api_key"), "auth"),
        (422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, "invalid_request"),
        (413, _other("Request too large on tokens per minute (TPM): Limit 6000"), "rate_limit"),
        (500, _other("the request exceeds the available context size"), "context_overflow"),
        (400, _other("too long", type="exceed_context_size_error"), "context_overflow"),
        (200, _api("overloaded_error", "Overloaded"), "overloaded"),
        (200, _rejected("prompt is too long: 9 tokens > 8 maximum"), "context_overflow"),
        (200, _api("brand_new_error", "?"), "unknown"),
    ],
)
def test_the_text_and_the_type_refine_the_class(
    status: int, body: object, error_class: ErrorClass
) -> None:
    assert _error(status, body).error_class == error_class


@pytest.mark.parametrize(
    "text",
    [
        "prompt is too long: 213462 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 188059 + 20000 > 200000",
        "ValidationException: Input is too long for requested model.",
        "Your input exceeds the context window of this model. Please adjust your input.",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "Please reduce the length of the messages or completion.",
        "This endpoint's maximum context length is 131072 tokens. However, you requested more.",
        "prompt token count of 130000 exceeds the limit of 128000",
        "the request exceeds the available context size, try increasing it",
        "tokens to keep from the initial prompt is greater than the context length",
        "invalid params, context window exceeds limit",
        "Your request exceeded model token limit: 262144 (requested: 300000)",
        "Prompt contains 150000 tokens, too large for model with 131072 maximum context length",
        "model_context_window_exceeded",
        "context_length_exceeded",
        "Too many tokens in the prompt",
        "Token limit exceeded",
        "tool output too large",
        "tool_result too large",
    ],
)
@pytest.mark.parametrize("shout", [False, True])
def test_O33_overflow_is_recognised(text: str, shout: bool) -> None:
    error = _error(400, _api("invalid_request_error", text.upper() if shout else text))
    assert (error.error_class, error.retryable) == ("context_overflow", False)
    assert "/compact" in error.hint


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("prompt is too long: 213462 tokens > 200000 maximum", (213462, None, 200000)),
        (
            "input length and `max_tokens` exceed context limit: 188059 + 20000 > 200000, decrease",
            (188059, 20000, 200000),
        ),
        (
            (
                "This endpoint's maximum context length is 131072 tokens. However, you requested "
                "about 140120 tokens (130120 of text input, 10000 in the output)."
            ),
            (130120, 10000, 131072),
        ),
        (
            (
                "This model's maximum context length is 8,192 tokens. However, your messages "
                "resulted in 9,000 tokens."
            ),
            (9000, None, 8192),
        ),
        (
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            (537812, None, 131072),
        ),
        (
            "The input token count (1196265) exceeds the maximum number of tokens (1048575).",
            (1196265, None, 1048575),
        ),
        ("prompt token count of 130000 exceeds the limit of 128000", (130000, None, 128000)),
        (
            "Prompt contains 150000 tokens, too large for model with 131072 maximum context length",
            (150000, None, 131072),
        ),
        (
            "Your request exceeded model token limit: 262144 (requested: 300000)",
            (300000, None, 262144),
        ),
        ("Your request exceeded model token limit: 262144", (None, None, 262144)),
        ("Your input exceeds the context window of this model.", None),
    ],
)
def test_O28_O33_the_sizes_of_an_overflow_are_read(
    text: str, sizes: tuple[int | None, int | None, int] | None
) -> None:
    for error in (_error(400, _rejected(text)), _error(200, _rejected(text))):
        assert error.error_class == "context_overflow"
        assert error.overflow == (Overflow(*sizes) if sizes else None)


def test_O33_sizes_that_stand_apart_from_the_text_are_read() -> None:
    body = _other(
        "the request exceeds the available context size", type="exceed_context_size_error"
    )
    body["error"] |= {"n_prompt_tokens": 9000, "n_ctx": 4096}
    assert _error(400, body).overflow == Overflow(9000, None, 4096)


@pytest.mark.parametrize(
    ("sizes", "margin", "room"),
    [
        (Overflow(188059, 20000, 200000), 0, 11941),
        (Overflow(188059, 20000, 200000), 1000, 10941),
        (Overflow(188059, 20000, 200000), 11941, None),
        (Overflow(200001, 20000, 200000), 0, None),
        (Overflow(213462, None, 200000), 0, None),
        (Overflow(None, None, 200000), 0, None),
    ],
)
def test_O28_the_room_for_an_answer_is_what_the_input_leaves(
    sizes: Overflow, margin: int, room: int | None
) -> None:
    assert sizes.output_room(margin) == room


def test_O28_only_an_overflow_has_sizes() -> None:
    assert _error(413, _rejected("prompt is too long: 9 tokens > 8 maximum")).overflow is None


@given(st.text(alphabet="prompt is too long: 0123456789,+>()", max_size=200))
def test_O28_any_text_with_numbers_is_read_or_not(text: str) -> None:
    _error(400, _rejected(f"prompt is too long {text}"))


@pytest.mark.parametrize(
    ("status", "text", "error_class"),
    [
        (429, "Too many tokens per minute, please slow down", "rate_limit"),
        (400, "Request too large: 9000 TPM, reduce the length of the messages", "rate_limit"),
        (429, "too many tokens: the rate limit of 80,000 input tokens is reached", "rate_limit"),
        (400, "token limit exceeded for this billing period", "invalid_request"),
        (400, "Reasoning is mandatory: maximum context length is 1000 tokens", "invalid_request"),
        (400, "context_length_exceeded: context window too small (4096)", "invalid_request"),
    ],
)
def test_O27_what_only_sounds_like_overflow_is_not(
    status: int, text: str, error_class: ErrorClass
) -> None:
    assert _error(status, _api("invalid_request_error", text)).error_class == error_class


@pytest.mark.parametrize(
    ("status", "text", "refused"),
    [
        (400, f"messages.1.content.0: {ELSEWHERE} {OTHER_SYSTEM}", True),
        (400, "messages.3.content.0: Invalid `signature` in `thinking` block", True),
        (400, "messages.1.content.0.thinking: Invalid signature", True),
        (422, f"messages.1.content.0: {ELSEWHERE}", True),
        (400, REJECTIONS["B19"], True),
        (400, REJECTIONS["B20"], False),
        (400, "This model cannot be modified", False),
        (403, "The request signature we calculated does not match: Invalid signature", False),
    ],
)
def test_B17_B19_what_was_refused_for_its_thinking_is_told_apart(
    status: int, text: str, *, refused: bool
) -> None:
    error = _error(status, _rejected(text))
    assert error.thinking_refused is refused
    assert error.error_class == ("auth" if status == 403 else "invalid_request")
    assert not error.retryable


def test_O26_a_large_payload_is_a_class_of_its_own() -> None:
    assert _error(413).error_class == "payload_too_large"
    assert _error(400, _api("request_too_large")).error_class == "payload_too_large"


async def test_messages_are_for_people() -> None:
    text = "This request would exceed\n your rate limit"
    error = await _answered({"status": 429, "message": text})
    assert error.message == (
        "The server's rate limit is reached (429): This request would exceed your rate limit."
    )
    assert "/model" in error.hint


async def test_an_unknown_model_names_the_ways_to_another() -> None:
    async with LoopbackServer({"turns": [{"text": "x"}], "models": {}}) as server:
        provider = provider_for(server)
        with pytest.raises(ProviderError) as caught:
            await ask(provider, a_request(model="claude-nothing-1"))
        await provider.aclose()
    error = caught.value
    assert error.error_class == "not_found"
    assert "There is no model claude-nothing-1" in error.message
    assert "/model" in error.hint
    assert "--model" in error.hint


async def test_a_refused_key_is_an_auth_error() -> None:
    async with LoopbackServer({"keys": ["right"]}) as server:
        provider = provider_for(server, api_key="wrong")
        with pytest.raises(ProviderError) as caught:
            await ask(provider)
        await provider.aclose()
    error = caught.value
    assert (error.error_class, error.status, error.retryable) == ("auth", 401, False)
    assert "rejected the API key" in error.message
    assert "ANTHROPIC_API_KEY" in error.hint


@pytest.mark.parametrize(
    ("status", "error_class", "retryable"),
    [
        (200, "not_found", False),
        (404, "not_found", False),
        (502, "server", True),
        (403, "auth", False),
    ],
)
async def test_a_web_page_is_said_to_be_one(
    status: int, error_class: ErrorClass, retryable: bool
) -> None:
    page = "<!DOCTYPE html>\n<html><head><title>Sign in\n &mdash; Proxy</title></head></html>"
    error = await _answered({"status": status, "html": page})
    assert (error.error_class, error.retryable) == (error_class, retryable)
    assert "a web page “Sign in &mdash; Proxy”" in error.message
    assert error.message.endswith("not with the Messages API.")
    assert "<" not in error.message + error.hint


async def test_an_answer_that_is_no_stream_is_said_to_be_none() -> None:
    error = await _answered({"status": 200, "body": {"object": "list", "data": []}})
    assert error.error_class == "not_found"
    assert "answered with application/json, not with the Messages API" in error.message
    assert "base_url" in error.hint


async def test_an_error_in_a_success_is_an_error() -> None:
    error = await _answered({"status": 200, "body": _api("overloaded_error", "Overloaded")})
    assert (error.error_class, error.retryable) == ("overloaded", True)


async def test_a_redirect_is_not_followed_with_the_key() -> None:
    async with LoopbackServer() as other:
        error = await _answered({"status": 307, "headers": {"location": other.url}, "body": ""})
    assert other.requests == []
    assert error.error_class == "not_found"
    assert f"redirects to {other.url}" in error.message


@given(
    status=st.integers(300, 599) | st.just(200),
    body=st.recursive(
        st.none() | st.integers() | st.text() | st.sampled_from(["<html>", "<title>"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["error", "message", "type", "detail", "details", "code", "msg"]),
                inner,
            )
        ),
    ),
)
def test_any_body_becomes_one_readable_line(status: int, body: object) -> None:
    error = _error(status, body)
    assert error.message.isprintable()
    assert len(error.message) < 800
    assert "{'" not in error.message


def test_a_key_in_an_answer_is_masked() -> None:
    key = "sk-ant-api03-" + "a" * 40
    assert key not in str(_error(401, _api("authentication_error", f"bad key {key}")))


def test_every_rule_says_what_to_do() -> None:
    for rule in RULES:
        places = {"url": "u", "model": "m"}
        assert rule.headline.format(**places)[0].isalpha()
        assert rule.hint.format(**places).endswith(".")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "1500", "retry-after": "7"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "whenever"}, None),
        ({"retry-after": "4233600"}, 4233600.0),
        ({"retry-after": "Sat, 21 Nov 2026 09:01:30 GMT"}, 90.0),
        ({"retry-after": "Sat, 21 Nov 2026 08:00:00 GMT"}, 0.0),
        # a server whose clock is an hour behind
        (
            {
                "retry-after": "Sat, 21 Nov 2026 08:01:00 GMT",
                "date": "Sat, 21 Nov 2026 08:00:00 GMT",
            },
            60.0,
        ),
        ({"retry-after": "Sat, 21 Nov 2026 09:01:30 GMT", "date": "now"}, 90.0),
    ],
)
def test_R15_retry_after_is_read_in_all_its_forms(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after(headers, FakeClock().now()) == seconds


@given(st.integers(0, 10**9))
def test_R15_any_date_is_as_far_as_it_is(seconds: int) -> None:
    now = FakeClock().now()
    date = email.utils.format_datetime(now + timedelta(seconds=seconds), usegmt=True)
    assert retry_after({"retry-after": date}, now) == seconds


async def test_R15_retry_after_reaches_the_error() -> None:
    assert (await _answered({"status": 429, "retry_after": 12})).retry_after == 12.0


def test_the_server_may_forbid_a_retry() -> None:
    assert not _error(429, headers={"x-should-retry": "false"}).retryable
    assert not _error(400, headers={"x-should-retry": "true"}).retryable


@pytest.mark.parametrize("key", [None, "", "  \n"])
async def test_no_key_for_the_api_is_said_before_anything_is_sent(key: str | None) -> None:
    provider = AnthropicProvider(api_key=key, clock=FakeClock())
    with pytest.raises(CredentialsError) as caught:
        await ask(provider)
    assert "ANTHROPIC_API_KEY" in caught.value.hint


@pytest.mark.parametrize("key", ["sk ant", "sk-ant-\x00", "sk-änt", "“sk-ant”", "a\nb"])
async def test_what_cannot_be_a_key_is_said_before_anything_is_sent(key: str) -> None:
    async with LoopbackServer() as server:
        with pytest.raises(CredentialsError, match="characters that no key has"):
            await ask(provider_for(server, api_key=key))
    assert server.requests == []


async def test_a_local_server_needs_no_key() -> None:
    async with LoopbackServer({"turns": [{"text": "hi"}]}) as server:
        provider = provider_for(server, api_key=None)
        await ask(provider)
        await provider.aclose()
    assert len(server.posts) == 1


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8080",
        "ftp://host",
        "http://",
        "http://h:99999",
        "http://[",
        "http://[::1",
        "http://a b",
    ],
)
async def test_what_is_no_address_is_said_to_be_none(url: str) -> None:
    provider = AnthropicProvider(api_key="k", base_url=url, clock=FakeClock())
    with pytest.raises(ProviderError, match="isn't a server address") as caught:
        await ask(provider)
    assert caught.value.error_class == "invalid_request"


@pytest.mark.parametrize("value", [float("nan"), object(), "\ud800"])
async def test_a_request_that_is_no_json_is_said_to_be_none(value: Any) -> None:
    async with LoopbackServer() as server:
        provider = provider_for(server)
        block = {"type": "tool_use", "id": "a", "name": "t", "input": {"x": value}}
        with pytest.raises(ProviderError, match="can't be written as JSON") as caught:
            await ask(provider, a_request({"role": "assistant", "content": [block]}))
        await provider.aclose()
    assert (caught.value.error_class, caught.value.retryable) == ("invalid_request", False)
    assert server.requests == []
