"""Prices: the shipped ones, the configured ones, and what a request costs by them."""

from __future__ import annotations

from math import isclose
from typing import Any

import pytest

from tests.provider.conversation import a_request, ask, provider_for, user
from tests.support.server import LoopbackServer
from tests.support.server_cache import price as charged
from tests.support.server_models import MODELS
from tests.support.server_script import Json
from tui.core.config import Price
from tui.core.messages import Message, Usage
from tui.provider.prices import ModelPrice, price_of

SONNET, HAIKU = "claude-sonnet-5-5", "claude-haiku-5-5"
OWN = Price(input=3.0, output=15.0, cache_write=3.75, cache_read=0.3)


def known(model: str, **configured: Price) -> ModelPrice:
    found = price_of(model, configured)
    assert found
    return found


def on_wire(fresh: int, output: int, short: int, hour: int, read: int) -> Json:
    return {
        "input_tokens": fresh,
        "output_tokens": output,
        "cache_creation_input_tokens": short + hour,
        "cache_read_input_tokens": read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": short,
            "ephemeral_1h_input_tokens": hour,
        },
    }


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "usage",
    [
        on_wire(10, 20, 300, 4000, 50_000),
        on_wire(0, 1, 0, 100_000, 0),
        on_wire(1, 1, 0, 0, 100_000),
        on_wire(7, 900, 5, 0, 900_000),
    ],
)
def test_every_request_costs_what_is_published(name: str, usage: Json) -> None:
    cost = known(name).cost(Usage.from_json(usage))
    assert isclose(cost, charged(MODELS[name], usage))


@pytest.mark.parametrize("model", [SONNET, HAIKU, "claude-opus-4-8"])
async def test_a_conversation_costs_what_the_server_charges(model: str) -> None:
    long = "word " * 30_000  # some 37,500 tokens as the server counts: the third is a long prompt
    async with LoopbackServer({"turns": [{"text": "yes"}] * 4, "priced": True}) as server:
        provider, spent = provider_for(server), 0.0
        messages: list[Message] = []
        for life in ("1h", "1h", "5m", "5m"):
            mark: dict[str, Any] = {"cache_control": {"type": "ephemeral", "ttl": life}}
            messages.append(user(long))
            messages[-1]["content"][0] |= mark
            answer = await ask(provider, a_request(*messages, model=model))
            usage = answer.usage
            assert (usage.ephemeral_1h_input_tokens > 0) == (life == "1h")
            spent += known(model).cost(usage)
            messages.append({"role": "assistant", "content": answer.content})
        assert isclose(spent, server.cache.dollars)
        await provider.aclose()


def test_the_price_of_a_request_is_known_before_it_is_sent() -> None:
    price = known(SONNET)
    assert isclose(price.forecast(written=41_000), 0.1025)
    assert isclose(price.forecast(written=41_000, life="1h"), 0.164)
    assert isclose(price.forecast(fresh=1000, read=40_000, output=500), 0.011)
    parts = {"fresh": 10, "written": 60_000, "read": 40_000, "output": 7}
    usage = Usage.from_json(on_wire(10, 7, 0, 60_000, 40_000))
    for model in MODELS:
        assert known(model).forecast(**parts, life="1h") == known(model).cost(usage)


def test_a_part_of_a_long_prompt_has_the_price_of_long_prompts() -> None:
    price = known(HAIKU)
    assert price.forecast(read=10_000, prompt=200_000) == 5 * price.forecast(read=10_000)


@pytest.mark.parametrize(
    "name", [f"{SONNET}-20260928", f"anthropic/{SONNET}", f"us.anthropic.{SONNET}-20260928-v1:0"]
)
def test_names_of_gateways_are_seen_through(name: str) -> None:
    assert price_of(name, {}) == price_of(SONNET, {})
    assert known(name, **{SONNET: OWN}).rates.input == 3.0


@pytest.mark.parametrize(
    "name", ["practice", "claude-sonnet-9", "qwen3:8b", "claude-mythos-preview"]
)
def test_no_price_is_invented(name: str) -> None:
    assert price_of(name, {}) is None
    assert price_of(name, {SONNET: OWN}) is None


def test_a_configured_price_goes_before_the_shipped_one() -> None:
    usage = Usage.from_json(on_wire(1_000_000, 0, 0, 0, 0))
    assert known(HAIKU, **{HAIKU: OWN}).cost(usage) == 3.0
    dated = f"{HAIKU}-20260928"
    assert known(dated, **{HAIKU: OWN, dated: Price(input=1.0)}).cost(usage) == 1.0
    free = known(SONNET, **{SONNET: Price()})
    assert free.cost(Usage.from_json(on_wire(9, 9, 9, 9, 9))) == 0


def test_an_hour_in_the_cache_costs_twice_the_input_unless_it_is_configured() -> None:
    usage = Usage.from_json(on_wire(0, 0, 1_000_000, 1_000_000, 0))
    assert known("m", m=OWN).cost(usage) == 3.75 + 6.0
    own = Price(input=3.0, cache_write=3.75, cache_write_1h=5.0)
    assert known("m", m=own).cost(usage) == 3.75 + 5.0


def test_usage_in_json_has_the_four_names_and_a_fifth_where_it_is_not_0() -> None:
    plain = Usage.from_json(on_wire(1, 2, 3, 0, 4))
    assert plain.to_json() == {
        "input_tokens": 1,
        "output_tokens": 2,
        "cache_creation_input_tokens": 3,
        "cache_read_input_tokens": 4,
    }
    lives = Usage.from_json(on_wire(1, 2, 3, 5, 4))
    assert lives.to_json() == plain.to_json() | {
        "cache_creation_input_tokens": 8,
        "ephemeral_1h_input_tokens": 5,
    }
    assert Usage.from_json(lives.to_json()) == lives
    assert (lives + plain).ephemeral_1h_input_tokens == 5
    assert lives.prompt_tokens == 13
    assert Usage.from_json({"cache_creation": [1], "input_tokens": 2}) == Usage(2)


def test_more_for_an_hour_than_was_written_is_not_charged() -> None:
    usage = Usage(cache_creation_input_tokens=10, ephemeral_1h_input_tokens=1000)
    assert isclose(known(SONNET).cost(usage), 10 * 4 / 1e6)
