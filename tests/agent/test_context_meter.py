"""How full the context is, as the agent tells it: never 0 after a resume, never a wrong window."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.support.agents import events_of, make_agent
from tests.support.provider import ScriptedProvider, say
from tui.core import facts
from tui.core.clock import SystemClock
from tui.core.config import Compaction, Config
from tui.core.messages import Usage, text_block
from tui.provider.base import Completed, ModelInfo, Request, StreamPart
from tui.session.session import Session
from tui.tokens import estimate
from tui.tokens.estimate import request_weight

INFO = ModelInfo("test-model", 200_000, 8192, "assumed")


def measures(seen: list[facts.Fact]) -> list[facts.ContextMeasured]:
    return [event for event in seen if isinstance(event, facts.ContextMeasured)]


def recorded(root: Path, *, prompt: int, model: str = "test-model") -> Session:
    session = Session.in_memory(root, clock=SystemClock())
    session.append("user", content=[text_block("hello")], text="hello")
    usage = {"input_tokens": prompt, "output_tokens": 20}
    session.append("assistant", content=[text_block("Hi.")], model=model, usage=usage)
    return session


async def test_a_new_session_is_estimated_before_the_first_request(tmp_path: Path) -> None:
    agent = make_agent(tmp_path, ScriptedProvider())
    now = measures(await agent.start())[-1]
    assert now.tokens == now.estimated > 500
    assert (now.measured, now.drift, now.forecast) == (0, None, None)
    assert now.parts["tools"] > now.parts["system"] > 0
    assert now.reserve == 8192
    await agent.close()


async def test_a_resumed_session_begins_with_the_recorded_measure(tmp_path: Path) -> None:
    agent = make_agent(tmp_path, ScriptedProvider(), session=recorded(tmp_path, prompt=50_000))
    now = measures(await agent.start())[-1]
    assert (now.tokens, now.measured, now.estimated) == (50_020, 50_020, 0)
    await agent.close()


async def test_the_measure_of_another_model_does_not_count(tmp_path: Path) -> None:
    session = recorded(tmp_path, prompt=50_000, model="another-model")
    agent = make_agent(tmp_path, ScriptedProvider(), session=session)
    now = measures(await agent.start())[-1]
    assert now.measured == 0
    assert 500 < now.tokens < 20_000
    await agent.close()


async def test_what_is_said_at_the_end_is_counted(tmp_path: Path) -> None:
    agent = make_agent(tmp_path, ScriptedProvider(say("ok"), say("ok")))
    await events_of(agent, "/think first")
    said = [
        item for item in agent.context.ledger.items() if item.label.startswith("Think step-by-step")
    ]
    assert len(said) == 1
    assert 30 < said[0].tokens < 120
    await agent.close()


async def test_the_mark_of_the_configuration_is_in_the_event(tmp_path: Path) -> None:
    config = Config(compaction=Compaction(threshold=0.6))
    agent = make_agent(tmp_path, ScriptedProvider(), config=config)
    assert measures(await agent.start())[-1].threshold == 0.6
    await agent.close()


class Denser(ScriptedProvider):
    """Reports half as many tokens again as its requests weigh."""

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        size = round(1.5 * request_weight(request.system, request.tools, request.messages))
        async for part in super().stream(request):
            if isinstance(part, Completed):
                part = replace(part, usage=Usage(input_tokens=size, output_tokens=10))  # noqa: PLW2901
            yield part


async def test_the_meter_follows_the_reported_usage_and_the_next_session_begins_with_its_ratio(
    tmp_path: Path,
) -> None:
    cache, ratios = tmp_path / "cache", [estimate.UNKNOWN]
    for _ in range(3):
        agent = make_agent(tmp_path, Denser(say("one"), say("two")), cache=cache)
        assert agent.context.ledger.ratio == ratios[-1]
        first = measures(await agent.start())[-1]
        seen = await events_of(agent, "hello " * 40)
        now = measures(seen)[-1]
        assert now.tokens == now.measured > first.tokens
        assert now.drift is not None
        assert now.drift < 0
        await agent.close()
        kept = estimate.load_ratio(cache, "test-model")
        assert kept is not None
        assert kept == agent.context.ledger.ratio > ratios[-1]
        ratios.append(kept)
    assert 1.3 < ratios[-1] < 1.5


async def test_a_damaged_cache_is_ignored_and_written_anew(tmp_path: Path) -> None:
    estimate.save_ratio(tmp_path / "cache", "test-model", 1.4)
    (kept,) = (tmp_path / "cache").rglob("*.json")
    kept.write_text('{"ratio": "much"}')
    agent = make_agent(tmp_path, Denser(say("one")), cache=tmp_path / "cache")
    assert agent.context.ledger.ratio == estimate.UNKNOWN
    await events_of(agent, "hello")
    await agent.close()
    assert json.loads(kept.read_text()) == {"ratio": agent.context.ledger.ratio}


async def test_a_cache_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.write_text("in the way")
    agent = make_agent(tmp_path, ScriptedProvider(say("fine")), cache=cache)
    seen: list[Any] = await events_of(agent, "hello")
    assert seen[-1].outcome == "done"
    await agent.close()
