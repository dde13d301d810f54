"""Failover through the agent: told, recorded, with the history made for the other model."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.support.agents import MODEL, events_of, make_agent, record_types
from tests.support.clock import FakeClock
from tests.support.provider import Answer, ScriptedProvider, say
from tui.agent.agent import Agent
from tui.core import facts
from tui.core.config import Config, Price, Retry
from tui.core.errors import ProviderError
from tui.core.fact_words import fact_lines
from tui.core.facts import Alive, RetryScheduled, TextDelta
from tui.core.messages import text_block
from tui.provider.base import AttemptStarted, ModelInfo, Request, StreamPart
from tui.provider.retry import RetryControl, RetryProvider
from tui.session.session import Session
from tui.tokens.estimate import save_ratio

OTHER = "other-model"


def overloaded() -> ProviderError:
    return ProviderError(
        "overloaded", "Overloaded.", status=529, request_id="req_1", retryable=True
    )


class Windows(ScriptedProvider):
    """A scripted provider whose other model has a window of its own."""

    def __init__(self, *answers: Answer, other: int = 200_000) -> None:
        super().__init__(*answers)
        self.other = other

    async def model_info(self, model: str) -> ModelInfo:
        window = self.other if model == OTHER else self.window
        return ModelInfo(model, window, 4096, "server")


def agent_of(
    root: Path, provider: ScriptedProvider, clock: FakeClock | None = None, **parts: Any
) -> Agent:
    """Its model may be asked once, and then another."""
    clock, control = clock or FakeClock(), RetryControl()
    retrying = RetryProvider(provider, retry=Retry(max_attempts=0), clock=clock, control=control)
    return make_agent(root, retrying, clock=clock, control=control, fallbacks=(OTHER,), **parts)


async def test_A25_a_model_that_cannot_answer_is_followed_by_another(tmp_path: Path) -> None:
    provider = Windows(overloaded(), say("from the other"), say("from the first"))
    clock = FakeClock()
    agent = agent_of(tmp_path, provider, clock)
    seen = await events_of(agent, "hi")
    assert [request.model for request in provider.requests] == ["test-model", OTHER]
    assert provider.requests[1].max_tokens == 4096
    (switch,) = [event for event in seen if isinstance(event, facts.ModelSwitched)]
    line = switch.to_json()
    assert (line["type"], line["from"], line["to"]) == ("model_switched", "test-model", OTHER)
    assert "overloaded" in line["reason"]
    assert (switch.status, switch.request_id) == (529, "req_1")
    assert record_types(agent) == ["user", "failover", "assistant"]
    record = next(r for r in agent.session.records if r.type == "failover").data
    assert (record["from"], record["to"], record["error_class"]) == (
        "test-model",
        OTHER,
        "overloaded",
    )
    assert agent.session.records[-1].data["model"] == OTHER
    (said,) = fact_lines(switch)
    assert f"Switched to {OTHER}. Back to test-model at " in said
    assert seen[-1].type == "turn_finished"

    clock.elapsed += 600
    seen = await events_of(agent, "and now?")
    (back,) = [event for event in seen if isinstance(event, facts.ModelSwitched)]
    assert (back.old, back.new, back.error_class) == (OTHER, "test-model", None)
    assert provider.requests[-1].model == "test-model"


async def test_the_thinking_of_the_first_model_is_not_sent_to_another(tmp_path: Path) -> None:
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "abc"}
    provider = Windows([thought, text_block("Hi.")], overloaded(), say("ok"))
    agent = agent_of(tmp_path, provider)
    await events_of(agent, "hi")
    await events_of(agent, "continue")
    _, first, second = (str(request.messages) for request in provider.requests)
    assert "Hm." in first
    assert "Hm." not in second


async def test_a_model_with_too_small_a_window_is_not_switched_to(tmp_path: Path) -> None:
    provider = Windows(overloaded(), other=1500)
    agent = agent_of(tmp_path, provider)
    seen = await events_of(agent, "hi")
    (error,) = [event for event in seen if isinstance(event, facts.ErrorRaised)]
    assert error.error_class == "overloaded"
    assert f"{OTHER} (too small)" in error.hint
    assert len(provider.requests) == 1


async def test_what_the_other_model_costs_is_reckoned_by_its_price(tmp_path: Path) -> None:
    prices = {"test-model": Price(input=1.0), OTHER: Price(input=1000.0)}
    provider = Windows(overloaded(), say("ok"))
    agent = agent_of(tmp_path, provider, config=Config(prices=prices))
    await events_of(agent, "hi")
    assert agent.spent.usd == 100 * 1000 / 1_000_000


def test_fits_reckons_with_what_is_known_of_the_other_model(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    save_ratio(cache, OTHER, 2.0)
    session = Session.in_memory(tmp_path, clock=FakeClock())
    session.append("user", content=[text_block("some words of a conversation " * 2000)])
    agent = make_agent(tmp_path, ScriptedProvider(), session=session, cache=cache)
    same, other, unknown = (
        agent.models.fits(ModelInfo(name, 100_000, 4096, "server"))
        for name in ("test-model", OTHER, "never-asked")
    )
    assert same.tokens == unknown.tokens == agent.context.ledger.tokens
    assert 1.5 * same.tokens < other.tokens < 2.5 * same.tokens


async def test_fits_tells_before_a_switch(tmp_path: Path) -> None:
    agent = make_agent(tmp_path, ScriptedProvider())
    await agent.start()
    small, large = (replace(MODEL, id=OTHER, window=window) for window in (1000, 100_000))
    assert not agent.models.fits(small).ok
    fit = agent.models.fits(large)
    assert fit.ok
    assert (fit.tokens, fit.window) == (agent.context.ledger.tokens, 100_000)
    (now,) = [e for e in agent.models.use(large) if isinstance(e, facts.ContextMeasured)]
    assert now.window == 100_000  # the meter has it before anything is sent
    assert agent.models.current == OTHER
    await agent.close()


class Parts(ScriptedProvider):
    """Streams what it is given."""

    def __init__(self, *parts: StreamPart) -> None:
        super().__init__(say("whole"))
        self.parts = parts

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        for part in self.parts:
            yield part
        async for part in super().stream(request):
            yield part


async def test_a_failed_attempt_is_told_with_its_request_and_what_was_received(
    tmp_path: Path,
) -> None:
    provider = Parts(
        AttemptStarted(1, "test-model"),
        TextDelta("half of it"),
        Alive(),
        RetryScheduled(1, 3, 2.0, "It broke.", None, "stream_broken", "req_9", 10),
    )
    agent = make_agent(tmp_path, provider)
    seen = await events_of(agent, "hi")
    (retry,) = [event for event in seen if isinstance(event, facts.RetryScheduled)]
    assert (retry.request_id, retry.received) == ("req_9", 10)
    (record,) = [r for r in agent.session.records if r.type == "retry"]
    assert record.data["text"] == "half of it"
    assert (record.data["request_id"], record.data["received"]) == ("req_9", 10)
    assert [e for e in seen if isinstance(e, facts.Alive)]
    assert fact_lines(retry) == (
        "It broke. Retry 1 of 3 in 2 s (request req_9, 10 characters received were discarded).",
    )
