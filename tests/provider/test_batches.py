"""Message batches over HTTP: what is sent, what is read, and what becomes of errors."""

from __future__ import annotations

import json
from contextlib import aclosing
from datetime import timedelta

import pytest

from tests.provider.conversation import MODEL, a_request
from tests.support.clock import ManualClock
from tests.support.server import LoopbackServer
from tests.support.server_script import Json
from tui.core.errors import ErrorClass, ProviderError
from tui.provider.anthropic.batches import AnthropicBatches
from tui.provider.base import Completed
from tui.provider.message_batches import BatchResult

ITEMS = {"a": a_request(), "b": a_request(), "c": a_request()}


def batches_of(server: LoopbackServer) -> AnthropicBatches:
    return AnthropicBatches(api_key="k", clock=ManualClock(), base_url=server.url)


async def results_of(batches: AnthropicBatches, id_: str) -> dict[str, BatchResult]:
    async with aclosing(batches.results(id_)) as results:
        return {one.custom_id: one async for one in results}


async def made(server: LoopbackServer) -> dict[str, BatchResult]:
    """Send three, and read their results."""
    batches = batches_of(server)
    try:
        sent = await batches.create(ITEMS)
        assert (await batches.describe(sent.id)).ended
        return await results_of(batches, sent.id)
    finally:
        await batches.aclose()


async def test_an_answer_is_whole() -> None:
    turn: Json = {
        "thinking": "hm",
        "text": "Yes.",
        "usage": {"cache_creation": {"ephemeral_1h_input_tokens": 7}},
    }
    async with LoopbackServer({"turns": [turn, turn, turn]}) as server:
        found = await made(server)
    assert [*found] == ["c", "b", "a"]
    answer = found["a"].answer
    assert isinstance(answer, Completed)
    assert answer.model == MODEL
    assert (answer.stop_reason, answer.message_id) == ("end_turn", "msg_0000")
    assert [block["type"] for block in answer.content] == ["thinking", "text"]
    assert answer.content[0]["signature"]
    assert (answer.usage.input_tokens, answer.usage.ephemeral_1h_input_tokens) == (100, 7)


@pytest.mark.parametrize(
    ("turn", "error_class", "retryable"),
    [
        ({"result": "expired"}, "timeout", True),
        ({"result": "canceled"}, "unknown", True),
        ({"result": "unheard of"}, "stream_broken", True),
        ({"faults": [{"status": 400, "type": "invalid_request_error"}]}, "invalid_request", False),
        ({"faults": [{"status": 529, "type": "overloaded_error"}]}, "overloaded", True),
        ({"faults": [{"status": 500, "type": "api_error"}]}, "server", True),
        ({"faults": [{"status": 413, "type": "request_too_large"}]}, "payload_too_large", False),
    ],
)
async def test_what_is_no_answer(turn: Json, error_class: ErrorClass, retryable: bool) -> None:
    async with LoopbackServer({"turns": [turn, {"text": "x"}, {"text": "x"}]}) as server:
        error = (await made(server))["a"].answer
    assert isinstance(error, ProviderError)
    assert (error.error_class, error.retryable) == (error_class, retryable)
    assert error.hint


async def test_the_pages_of_the_list_are_read_until_a_moment() -> None:
    async with LoopbackServer({"turns": [{"text": "x"}] * 450}) as server:
        own, batches = server.api.batches, batches_of(server)
        start = own.now()
        raw = json.dumps({"requests": [{"custom_id": "a", "params": {}}]}).encode()
        for number in range(230):
            own.now = lambda number=number: start + timedelta(minutes=number)
            own.create(raw, {})
        found = await batches.made_since(start + timedelta(minutes=25))
        await batches.aclose()
    assert [one.id for one in found] == [f"msgbatch_{n:04}" for n in range(230, 25, -1)]
    assert [seen.query for seen in server.requests] == [
        "limit=100",
        "limit=100&after_id=msgbatch_0131",
        "limit=100&after_id=msgbatch_0031",
    ]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"status": 404}, "doesn't offer message batches (404)"),
        ({"status": 405}, "doesn't offer message batches (405)"),
        ({"status": 401}, "rejected the API key"),
        ({"status": 413}, "larger than"),
        ({"status": 502, "html": "Bad Gateway"}, "a web page “Bad Gateway” (502)"),
        ({"status": 200, "html": "Log in"}, "a web page “Log in”, not with"),
        ({"status": 200, "body": {"id": "x"}}, "not with the Messages API"),
        ({"lost": True}, "Can't reach"),
    ],
)
async def test_a_batch_that_cannot_be_made(fault: Json, said: str) -> None:
    turns = [{"text": "x"}] * 3
    async with LoopbackServer({"turns": turns, "batch_faults": [fault]}) as server:
        batches = batches_of(server)
        with pytest.raises(ProviderError) as caught:
            await batches.create(ITEMS)
        await batches.aclose()
    assert said in caught.value.message


async def test_a_batch_that_is_not_there() -> None:
    async with LoopbackServer({}) as server:
        batches = batches_of(server)
        for call in (batches.describe("msgbatch_x"), results_of(batches, "msgbatch_x")):
            with pytest.raises(ProviderError, match="doesn't have the ") as caught:
                await call
            assert "29 days" in caught.value.hint
        await batches.aclose()


async def test_a_custom_id_that_the_api_refuses() -> None:
    async with LoopbackServer({"turns": [{"text": "x"}]}) as server:
        batches = batches_of(server)
        with pytest.raises(ProviderError, match="custom_id"):
            await batches.create({"a b": a_request()})
        await batches.aclose()


async def test_too_many_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.provider.anthropic.batches.BYTES_MAX", 100)
    async with LoopbackServer({}) as server:
        batches = batches_of(server)
        with pytest.raises(ProviderError, match="too much for one batch"):
            await batches.create(ITEMS)
        await batches.aclose()
    assert not server.requests
