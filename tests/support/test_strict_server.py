"""The loopback server holds to the API's rules: each is tried with a request through the SDK."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from anthropic import AsyncAnthropic, BadRequestError

from tests.support.server import LoopbackServer
from tests.support.server_binding import BINDING
from tests.support.server_compaction import COMPACTION
from tests.support.server_models import MODELS
from tests.support.server_script import Json
from tests.support.server_system_messages import CLEAR_AT, TURN_EFFORT
from tests.support.server_tools import INLINE_TOOLS

SONNET, OLD = "claude-sonnet-5-5", "claude-sonnet-5"
LONG = "word " * 4000
TOOL: Json = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}


class Client:
    """Sends one growing conversation to a server and keeps what comes back."""

    def __init__(self, server: LoopbackServer, model: str = SONNET) -> None:
        self.server, self.model = server, model
        self.messages: list[Json] = []
        self.system: Sequence[Json] = [{"type": "text", "text": "You are a test."}]
        self.sdk = AsyncAnthropic(api_key="k", base_url=server.url, max_retries=0)

    async def send(self, *, betas: Sequence[str] = (), **more: Any) -> Json:
        """The answer to what stands in `messages`, which then ends with it."""
        headers = {"anthropic-beta": ",".join(betas)} if betas else None
        body = {
            "model": self.model,
            "max_tokens": 1000,
            "system": self.system,
            "messages": self.messages,
            **more,
        }
        create = cast("Any", self.sdk.messages.with_raw_response).create
        raw = await create(extra_headers=headers, **_known(body))
        answer: Json = await raw.json()
        self.messages.append({"role": "assistant", "content": answer["content"]})
        return answer

    async def refused(self, **more: Any) -> str:
        """The words of a refusal."""
        with pytest.raises(BadRequestError) as caught:
            await self.send(**more)
        return str(caught.value)

    def say(self, *texts: str, mark: str = "") -> None:
        """Something the person says; `mark` is the life of a cache mark behind it."""
        blocks: list[Json] = [{"type": "text", "text": text} for text in texts]
        if mark:
            blocks[-1]["cache_control"] = {"type": "ephemeral", "ttl": mark}
        self.messages.append({"role": "user", "content": blocks})

    def state(self, text: str = "The mode is plan.", **more: Any) -> None:
        """What the program says in the middle of a conversation."""
        content = [{"type": "text", "text": text}] if text else []
        self.messages.append({"role": "system", "content": content, **more})


def _known(body: Json) -> Json:
    """Fields that the SDK has no parameter for go beside them."""
    extra = {name: body.pop(name) for name in ("compaction", "temperature") if name in body}
    return {**body, "extra_body": extra}


@asynccontextmanager
async def client(model: str = SONNET, **script: Any) -> AsyncGenerator[Client]:
    turns = [{"thinking": f"t{n}", "text": f"answer {n}"} for n in range(20)]
    async with LoopbackServer({"turns": turns, **script}) as server:
        made = Client(server, model)
        made.say("hello")
        yield made
        await made.sdk.close()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"thinking": {"type": "disabled"}}, "is not supported for this model"),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000},
            "is not supp",
        ),
        ({"thinking": {"type": "adaptive", "display": "updates"}}, "'summarized' or 'omitted'"),
        (
            {"thinking": {"type": "adaptive", "block_binding": {}}},
            "block_binding: Extra inputs are not permitted",
        ),
        (
            {"thinking": {"type": "between_tools"}, "output_config": {"effort": "max"}},
            "not supported when thinking is disabled",
        ),
        ({"tools": [TOOL], "tool_choice": {"type": "any"}}, "are not supported for this model"),
        ({"temperature": 1.0}, "temperature: Extra inputs are not permitted"),
    ],
)
async def test_what_the_model_does_not_take_is_refused(more: Json, words: str) -> None:
    async with client() as one:
        assert words in await one.refused(**more)


async def test_an_effort_that_the_model_lacks_is_refused() -> None:
    async with client("claude-opus-4-6") as one:
        assert "'xhigh' is not supported" in await one.refused(output_config={"effort": "xhigh"})


def _first(one: Client) -> None:
    one.messages.clear()
    one.state()
    one.say("hello")


def _behind_an_answer(one: Client) -> None:
    one.messages.append({"role": "assistant", "content": "answer"})
    one.state()
    one.say("again")


@pytest.mark.parametrize("place", [_first, _behind_an_answer])
async def test_a_system_message_has_its_place(place: Callable[[Client], None]) -> None:
    async with client() as one:
        place(one)
        assert "must follow a user message" in await one.refused()


async def test_a_system_message_may_end_a_request_and_stays() -> None:
    async with client() as one:
        one.state()
        one.state("The branch is main.")
        await one.send()
        one.say("again")
        await one.send()
        assert len(one.server.posts) == 2


async def test_an_older_model_takes_no_system_message() -> None:
    async with client(OLD) as one:
        one.state()
        assert "role 'system' is not supported on this model" in await one.refused()


async def test_what_needs_a_header_is_refused_without_it() -> None:
    change = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": TOOL}}
    notices: list[tuple[Json, str]] = [
        ({"text": "", "output_config": {"effort": "low"}}, TURN_EFFORT),
        ({"clear_at": "next_user_message"}, CLEAR_AT),
    ]
    every: list[str] = []
    async with client() as one:
        for notice, beta in notices:
            one.state(**notice)
            assert "Extra inputs are not permitted" in await one.refused(betas=every)
            every.append(beta)
            await one.send(betas=every)
            one.say("again")
        one.messages.append({"role": "system", "content": [change]})
        assert "'tool_addition' is not expected" in await one.refused(betas=every)
        await one.send(betas=[*every, INLINE_TOOLS])


async def test_thinking_is_bound_to_what_stood_before_it() -> None:
    async with client() as one:
        await one.send()
        one.say("again")
        one.system = [{"type": "text", "text": "You are another."}]
        assert "bound to a different conversation" in await one.refused()


async def test_an_old_account_is_told_of_thinking_and_not_refused() -> None:
    async with client(binding="record") as one:
        await one.send()
        one.say("again")
        one.system = [{"type": "text", "text": "You are another."}]
        answer = await one.send(betas=[BINDING])
        assert answer["input_transformations"] == [{
            "type": "thinking_mismatch_allowed",
            "path": "messages.1.content.0",
            "reason": "prefix_binding_mismatch",
        }]  # fmt: skip


async def test_a_field_of_the_request_drops_thinking_that_does_not_fit() -> None:
    drop = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    async with client() as one:
        await one.send(betas=[BINDING])
        one.say("again")
        one.system = [{"type": "text", "text": "You are another."}]
        answer = await one.send(betas=[BINDING], thinking=drop)
        assert [one["type"] for one in answer["input_transformations"]] == ["thinking_dropped"]


async def test_a_compaction_block_keeps_the_thinking_behind_it() -> None:
    async with client() as one:
        await one.send()
        cut = list(one.messages)
        one.say("again")
        await one.send()
        tail = one.messages[len(cut) :]
        one.messages = cut
        answer = await one.send(betas=[COMPACTION], compaction={"type": "summarize"})
        assert answer["stop_reason"] == "compaction"
        assert answer["usage"]["output_tokens"] == 0
        assert [one["type"] for one in answer["usage"]["iterations"]] == ["compaction"]
        one.messages = [{"role": "assistant", "content": answer["content"]}, *tail]
        one.say("and now?")
        await one.send(betas=[COMPACTION])
        one.say("and then?")
        one.messages[1]["content"].append({"type": "text", "text": "added"})
        assert "different conversation" in await one.refused(betas=[COMPACTION])


async def test_a_growing_conversation_is_read_from_the_cache() -> None:
    async with client(priced=True) as one:
        one.messages.clear()
        one.say(LONG, mark="5m")
        first = (await one.send())["usage"]
        one.say("again", mark="5m")
        second = (await one.send())["usage"]
        written = first["cache_creation_input_tokens"]
        assert written > 4000
        assert second["cache_read_input_tokens"] == written
        assert second["cache_creation_input_tokens"] < 200
        assert second["input_tokens"] == 0
        price = MODELS[SONNET].price
        assert abs(one.server.cache.dollars - price.cost(first) - price.cost(second)) < 1e-9


async def test_an_entry_of_the_cache_dies_and_an_hour_lives_longer() -> None:
    async with client(priced=True) as one:
        now = 0.0
        one.server.now = lambda: now
        for life, rest, read in (("5m", 290, True), ("5m", 310, False), ("1h", 3500, True)):
            one.messages.clear()
            one.say(f"{life}{rest}{LONG}", mark=life)
            await one.send()
            now += rest
            one.say("again", mark=life)
            usage = (await one.send())["usage"]
            assert bool(usage["cache_read_input_tokens"]) == read, (life, rest)


async def test_a_change_of_the_thinking_switch_costs_the_cache_of_the_messages() -> None:
    async with client(priced=True) as one:
        one.messages.clear()
        one.say(LONG, mark="5m")
        await one.send()
        one.say("again", mark="5m")
        usage = (await one.send(output_config={"effort": "low"}))["usage"]
        assert usage["cache_read_input_tokens"] == 0


async def test_a_mark_is_found_within_twenty_blocks() -> None:
    async with client(priced=True) as one:
        for added, found in ((19, True), (20, False)):
            one.messages.clear()
            one.say(f"{added}{LONG}", mark="5m")
            one.messages.append({"role": "assistant", "content": "answer"})
            one.server.cache.read({"model": SONNET, "messages": one.messages[:1]}, 0.0)
            blocks: list[Json] = [{"type": "text", "text": f"b{n}"} for n in range(added - 1)]
            blocks[-1]["cache_control"] = {"type": "ephemeral"}
            one.messages[0]["content"][0].pop("cache_control")
            one.messages.append({"role": "user", "content": blocks})
            usage = one.server.cache.read({"model": SONNET, "messages": one.messages}, 1.0)
            assert bool(usage["cache_read_input_tokens"]) == found


async def test_a_small_prefix_is_not_kept() -> None:
    async with client(priced=True) as one:
        one.messages.clear()
        one.say("short", mark="5m")
        assert (await one.send())["usage"]["cache_creation_input_tokens"] == 0


async def test_an_hour_behind_five_minutes_is_refused() -> None:
    async with client() as one:
        one.say("a", mark="5m")
        one.messages[0:1] = []
        one.messages.append({"role": "assistant", "content": "b"})
        one.say("c", mark="1h")
        assert "must not come after" in await one.refused()


async def test_the_list_says_what_a_model_can_do() -> None:
    async with client(catalogue=True) as one:
        listed = [model async for model in one.sdk.models.list()]
        assert {model.id for model in listed} == set(MODELS)
        sonnet = await one.sdk.models.retrieve(SONNET)
        assert sonnet.max_input_tokens == 1_000_000
        assert "long" not in sonnet.model_dump()


def test_the_prices_of_haiku_depend_on_the_size_of_the_prompt() -> None:
    facts = MODELS["claude-haiku-5-5"]
    assert facts.price_of(100_000).input == 0.1
    assert facts.price_of(100_001).input == 0.5
