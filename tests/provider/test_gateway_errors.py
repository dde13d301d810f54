"""Errors as gateways hand them on: within an answer of 200, by number, by name, in each other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.provider.conversation import ask, provider_for
from tests.support.server import LoopbackServer
from tests.support.server_script import Json
from tui.core.errors import ProviderError

_LIMITED = {"error": {"code": 429, "message": "Provider returned error"}}
_UNAVAILABLE = {"error": {"code": "503", "message": "upstream connect error"}}
_QUOTED = {"error": {"message": f"litellm.APIError: {json.dumps(_LIMITED)}", "type": "None"}}


def _event(body: object, name: str = "event: error\n") -> Json:
    return {"raw": f"{name}data: {json.dumps(body)}\n\n", "after": 0}


async def _error(*faults: Json) -> ProviderError:
    async with LoopbackServer({"turns": [{"text": "x", "faults": list(faults)}]}) as server:
        provider = provider_for(server)
        with pytest.raises(ProviderError) as caught:
            await ask(provider)
        await provider.aclose()
    return caught.value


@pytest.mark.parametrize(
    "fault",
    [
        _event,
        lambda body: _event(body, name=""),
        lambda body: _event({"type": "error", **body}),
        lambda body: {"status": 200, "body": body},
    ],
    ids=["event", "nameless", "typed", "whole"],
)
@pytest.mark.parametrize(
    ("body", "error_class", "status"),
    [
        (_LIMITED, "rate_limit", 429),
        (_UNAVAILABLE, "server", 503),
        (_QUOTED, "rate_limit", 429),
        ({"error": {"status": "RESOURCE_EXHAUSTED", "message": "x"}}, "rate_limit", 429),
        ({"error": {"type": "overloaded_error", "message": "Overloaded"}}, "overloaded", 200),
    ],
    ids=["number", "string", "quoted", "name", "kind"],
)
async def test_an_error_within_an_answer_is_classified_and_retried_like_its_kin(
    fault: Any, body: Json, error_class: str, status: int
) -> None:
    error = await _error(fault(body))
    assert (error.error_class, error.status, error.retryable) == (error_class, status, True)


async def test_a_whole_body_without_the_word_error_is_one_all_the_same() -> None:
    body = {"code": 429, "message": "slow down"}
    error = await _error({"status": 200, "body": body})
    assert (error.error_class, error.retryable) == ("rate_limit", True)
    odd = {"base_resp": {"status_code": 1039, "status_msg": "token limit exceeded"}}
    assert (await _error({"status": 200, "body": odd})).error_class == "context_overflow"
