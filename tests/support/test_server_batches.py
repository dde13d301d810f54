"""The loopback server refuses batches that the API refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.server_api import MessagesApi
from tests.support.server_batches import ServerBatches
from tests.support.server_errors import Rejection
from tests.support.server_script import Json, Script

HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
PARAMS: Json = {
    "model": "claude-sonnet-5-5",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Hello"}],
}


def server() -> ServerBatches:
    return MessagesApi(Script.of({"turns": [{"text": "Hi."}] * 3})).batches


def create(batches: ServerBatches, *items: Json) -> Json | Rejection:
    return batches.create(json.dumps({"requests": [*items]}).encode(), HEADERS)


def item(custom_id: str = "a", **params: Any) -> Json:
    return {"custom_id": custom_id, "params": PARAMS | params}


@pytest.mark.parametrize(
    "items",
    [
        [],
        [item("a"), item("a")],
        [item("")],
        [item("a b")],
        [item("a" * 65)],
        [{"custom_id": "a"}],
        [item() | {"method": "POST"}],
    ],
)
def test_a_list_that_is_refused_at_once(items: list[Json]) -> None:
    batches = server()
    refusal = create(batches, *items)
    assert isinstance(refusal, Rejection)
    assert refusal.status == 400
    assert not batches.made


@pytest.mark.parametrize(
    "params",
    [{"stream": True}, {"max_tokens": 0}, {"speed": "fast"}, {"fallbacks": "default"}, {"x": 1}],
)
def test_parameters_that_are_wrong_are_the_result_of_their_request(params: Json) -> None:
    batches = server()
    made = create(batches, item("good"), item("bad", **params))
    assert not isinstance(made, Rejection)
    assert made["request_counts"]["processing"] == 2
    early = batches.results(made["id"])
    assert isinstance(early, Rejection)
    said = batches.describe(made["id"])
    assert not isinstance(said, Rejection)
    assert said["processing_status"] == "ended"
    assert said["request_counts"]["errored"] == said["request_counts"]["succeeded"] == 1
    lines = batches.results(made["id"])
    assert isinstance(lines, list)
    bad, good = map(json.loads, lines)
    assert (bad["custom_id"], bad["result"]["error"]["error"]["type"]) == (
        "bad",
        "invalid_request_error",
    )
    assert good["result"]["message"]["usage"]["service_tier"] == "batch"
