"""How long an answer is asked for: as a person set it, and no longer than the server writes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import events_of, make_agent
from tests.support.clock import PATIENCE_S
from tests.support.server import LoopbackServer
from tests.support.server_script import Json
from tui.agent.agent import Agent
from tui.core import facts
from tui.core.clock import SystemClock
from tui.core.config import AnswerSettings, Config, ProviderSettings
from tui.core.facts import Fact
from tui.core.retold import retold
from tui.provider import catalogue
from tui.provider.anthropic import AnthropicProvider
from tui.settings import agent_definitions

SONNET = "claude-sonnet-5-5"


def refused(message: str, status: int = 400) -> Json:
    return {"status": status, "body": {"error": {"message": message}}}


@asynccontextmanager
async def talking(
    root: Path, *faults: Json, model: str = SONNET, **parts: Any
) -> AsyncGenerator[tuple[Agent, LoopbackServer]]:
    turns: list[Json] = [{"text": "one", "faults": list(faults)}, {"text": "two"}, {"text": "3"}]
    async with LoopbackServer({"turns": turns, "catalogue": True}) as server:
        provider = AnthropicProvider(api_key="k", clock=SystemClock(), base_url=server.url)
        agent = make_agent(root, provider, model=catalogue.model_info(model), **parts)
        await agent.start()
        try:
            yield agent, server
        finally:
            await asyncio.wait_for(agent.close(), PATIENCE_S)


async def turn(agent: Agent, prompt: str) -> list[Fact]:
    return await asyncio.wait_for(events_of(agent, prompt), PATIENCE_S)


def lengths(server: LoopbackServer) -> list[int]:
    return [post.body["max_tokens"] for post in server.posts]


def outcome(seen: list[Fact]) -> str:
    assert isinstance(seen[-1], facts.TurnFinished)
    return seen[-1].outcome


def notices(seen: list[Fact]) -> list[str]:
    return [one.text for one in seen if isinstance(one, facts.Notice)]


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens", 8192),
        ("Try again with a maximum tokens value that is lower than 8192", 8192),
        ("The parameter is not valid: max_tokens must be lower than 32000, at most 32000", 31_999),
    ],
)
async def test_the_length_that_the_server_names_is_asked_for_from_then_on(
    tmp_path: Path, words: str, asked: int
) -> None:
    async with talking(tmp_path, refused(words)) as (agent, server):
        seen = await turn(agent, "hi")
        assert outcome(seen) == "done"
        (said,) = notices(seen)
        assert said == (
            "The server doesn't allow answers that long. From now on, Holdfast asks for at most "
            f"{asked:,} tokens."
        )
        assert notices(await turn(agent, "and now?")) == []
        assert lengths(server) == [32_000, asked, asked]
        (record,) = [r for r in agent.session.records if r.type == "feature"]
        assert (record.data["feature"], record.data["tokens"]) == ("max_output", asked)
        assert list(retold([record])) == [(record, facts.Notice(notices(seen)[0]))]


async def test_an_answer_is_as_long_as_the_account_can_pay(tmp_path: Path) -> None:
    words = (
        "This request requires more credits, or fewer max_tokens. You requested up to 32000 "
        "tokens, but can only afford {}. To increase, visit https://openrouter.ai/settings/credits"
    )
    faults = [{**refused(words.format(tokens)), "status": 402} for tokens in (8123, 222)]
    async with talking(tmp_path, *faults) as (agent, server):
        seen = await turn(agent, "hi")
        assert lengths(server) == [32_000, 8123]
        (error,) = [one for one in seen if isinstance(one, facts.ErrorRaised)]
        assert error.error_class == "billing"  # a few words are no answer


async def test_it_is_known_after_a_restart(tmp_path: Path) -> None:
    async with talking(tmp_path, refused("max_tokens must be less than or equal to 16384")) as one:
        agent, server = one
        await turn(agent, "hi")
        provider = AnthropicProvider(api_key="k", clock=SystemClock(), base_url=server.url)
        info = catalogue.model_info(SONNET)
        again = make_agent(tmp_path, provider, session=agent.session, model=info)
        assert outcome(await turn(again, "again")) == "done"
        assert lengths(server) == [32_000, 16_384, 16_384]
        await again.close()


async def test_without_a_number_it_is_halved_three_times_at_most(tmp_path: Path) -> None:
    faults = [refused("max_tokens is too large for this model")] * 5
    async with talking(tmp_path, *faults) as (agent, server):
        seen = await turn(agent, "hi")
        assert outcome(seen) == "failed"
        assert lengths(server) == [32_000, 16_000, 8_000, 4_096]
        (error,) = [one for one in seen if isinstance(one, facts.ErrorRaised)]
        assert error.error_class == "invalid_request"
        assert "max_output under [provider]" in error.hint


async def test_a_context_that_is_too_long_is_no_matter_of_the_answer(tmp_path: Path) -> None:
    words = "This model's maximum context length is 9000 tokens, please reduce the prompt"
    async with talking(tmp_path, refused(words)) as (agent, _):
        seen = await turn(agent, "hi")
        assert not [r for r in agent.session.records if r.type == "feature"]
        assert any(isinstance(one, facts.RecoveryStep | facts.ErrorRaised) for one in seen)


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        (ProviderSettings(max_output=5000), 5000),
        (ProviderSettings(max_output=64_000), 64_000),
        (ProviderSettings(max_output=999_999), 128_000),
        (ProviderSettings(max_output=5000, models={SONNET: AnswerSettings(max_output=700)}), 700),
        (ProviderSettings(max_output=5000, models={"other": AnswerSettings(max_output=7)}), 5000),
    ],
)
async def test_a_person_says_how_long_answers_may_be(
    tmp_path: Path, settings: ProviderSettings, asked: int
) -> None:
    async with talking(tmp_path, config=Config(provider=settings)) as (agent, server):
        assert outcome(await turn(agent, "hi")) == "done"
        assert lengths(server) == [asked]


async def test_the_word_of_the_server_goes_before_the_setting(tmp_path: Path) -> None:
    config = Config(provider=ProviderSettings(max_output=64_000))
    words = refused("valid range of max_tokens is [1, 8192]")
    async with talking(tmp_path, words, config=config) as (agent, server):
        assert outcome(await turn(agent, "hi")) == "done"
        assert lengths(server) == [64_000, 8192]


async def test_a_sub_agent_asks_for_no_longer_answers_than_its_parent(tmp_path: Path) -> None:
    task = {"name": "task", "input": {"description": "look", "prompt": "Look around."}}
    turns: list[Json] = [
        {"tools": [task], "faults": [refused("max_tokens must be at most 8192")]},
        {"text": "There is nothing."},
        {"text": "Nothing there."},
    ]
    async with LoopbackServer({"turns": turns, "catalogue": True, "any_calls": True}) as server:
        provider = AnthropicProvider(api_key="k", clock=SystemClock(), base_url=server.url)
        kinds, info = agent_definitions.load([]), catalogue.model_info(SONNET)
        agent = make_agent(tmp_path, provider, model=info, find_agents=lambda: kinds)
        await agent.start()
        assert outcome(await turn(agent, "look")) == "done"
        await asyncio.wait_for(agent.close(), PATIENCE_S)
        assert lengths(server) == [32_000, 8192, 8192, 8192]
