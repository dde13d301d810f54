"""The loopback server rejects what the API rejects, in its words, and the adapter says so.

`tui.context.validate` states the rules and has tests of its own; here is shown that a request
really meets them on the other side of the wire.
"""

from __future__ import annotations

import pytest

from tests.provider.conversation import MODEL, a_request, ask, provider_for, user
from tests.support.server import LoopbackServer
from tests.support.server_script import Json, signature_of
from tui.core.errors import ErrorClass, ProviderError
from tui.core.messages import Block, Message, text_block
from tui.provider.base import Request

_CALL: Block = {"type": "tool_use", "id": "toolu_1", "name": "t", "input": {}}
_RESULT: Block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
_MARKED: Block = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}


def _thought(signature: str = signature_of("hm")) -> Block:
    return {"type": "thinking", "thinking": "hm", "signature": signature}


def _says(*blocks: Block) -> Message:
    return {"role": "assistant", "content": list(blocks)}


def _tells(*blocks: Block) -> Message:
    return {"role": "user", "content": list(blocks)}


async def _rejection(request: Request, **script: Json) -> ProviderError:
    async with LoopbackServer({"turns": [{"text": "taken"}], **script}) as server:
        provider = provider_for(server)
        with pytest.raises(ProviderError) as caught:
            await ask(provider, request)
        await provider.aclose()
    return caught.value


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        pytest.param([user("a"), _says(_CALL), user("b")], "without `tool_result`", id="B01"),
        pytest.param([_tells(_RESULT)], "unexpected `tool_use_id`", id="B02"),
        pytest.param(
            [user("a"), _says(_CALL, _CALL), _tells(_RESULT)], "ids must be unique", id="B03"
        ),
        pytest.param(
            [user("a"), _says({**_CALL, "input": "{}"}), _tells(_RESULT)],
            "should be a valid dictionary",
            id="B07",
        ),
        pytest.param([user("")], "must be non-empty", id="B10"),
        pytest.param([user(" \n")], "non-whitespace", id="B11"),
        pytest.param([user("a"), _says(text_block("b"))], "does not support", id="B15"),
        pytest.param([user("a"), _says(_thought()), user("b")], "cannot be `thinking`", id="B16"),
        pytest.param(
            [user("a"), _says(_thought("forged"), text_block("b")), user("c")],
            "Invalid `signature`",
            id="B17",
        ),
        pytest.param([_tells(*[_MARKED] * 5)], "A maximum of 4 blocks", id="B26"),
        pytest.param([_tells({**text_block("a"), "index": 0})], "Extra inputs", id="B27"),
        pytest.param([_says(text_block("a")), user("b")], 'must use the "user" role', id="B39"),
    ],
)
async def test_what_the_api_rejects_is_rejected(messages: list[Message], text: str) -> None:
    error = await _rejection(a_request(*messages))
    assert (error.error_class, error.status) == ("invalid_request", 400)
    assert text in error.message
    assert "/repair" in error.hint


@pytest.mark.parametrize(
    ("request_", "error_class", "text"),
    [
        (a_request(max_tokens=0), "invalid_request", "max_tokens"),
        (a_request(max_tokens=99_999), "invalid_request", "99999 > 64000, which is the maximum"),
        (a_request(model="other"), "not_found", "There is no model other"),
        (a_request(effort="enormous"), "invalid_request", "effort"),
        (a_request(user("x" * 900_000)), "context_overflow", "prompt is too long: 2250"),
        (
            a_request(user("x" * 760_000), max_tokens=30_000),
            "context_overflow",
            "exceed context limit: 1900",
        ),
        (a_request(user("x" * 34_000_000)), "payload_too_large", "exceeds the maximum size"),
    ],
    ids=["B37-low", "B37-high", "model", "effort", "B36", "O28", "B35"],
)
async def test_limits_are_kept_by_the_server(
    request_: Request, error_class: ErrorClass, text: str
) -> None:
    error = await _rejection(request_)
    assert (error.error_class, error.retryable) == (error_class, False)
    assert text in error.message


async def test_B22_thinking_that_another_server_signed_is_refused_unless_allowed() -> None:
    messages = [user("a"), _says(_thought("foreign"), text_block("b")), user("c")]
    script: Json = {"turns": [{"text": "taken"}], "signatures": False}
    async with LoopbackServer(script) as server:
        provider = provider_for(server)
        answer = await ask(provider, a_request(*messages))
        await provider.aclose()
    assert answer.content == [text_block("taken")]


async def test_a_used_up_script_is_an_error_that_is_not_retried() -> None:
    async with LoopbackServer({"turns": [{"text": "one"}]}) as server:
        provider = provider_for(server)
        await ask(provider)
        with pytest.raises(ProviderError, match="the script has 1 turns and no more") as caught:
            await ask(provider)
        await provider.aclose()
    assert not caught.value.retryable


@pytest.mark.parametrize(
    "script", [{"truns": []}, {"turns": [{"txet": "x"}]}, {"turns": [{"faults": [{"eof": 3}]}]}]
)
def test_a_script_with_an_unknown_key_is_an_error(script: Json) -> None:
    with pytest.raises(TypeError):
        LoopbackServer(script)


async def test_models_have_the_limits_that_the_script_gives_them() -> None:
    models = {MODEL: {"max_input_tokens": 100, "max_tokens": 50}}
    error = await _rejection(a_request(user("x" * 600), max_tokens=10), models=models)
    assert error.error_class == "context_overflow"
