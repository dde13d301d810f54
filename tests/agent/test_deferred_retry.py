"""Parking: a wait longer than the policy's is kept in the record and ends by itself (R15)."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.agents import make_agent, record_types
from tests.support.clock import PATIENCE_S, FakeClock, ManualClock
from tests.support.provider import ScriptedProvider, say
from tui.agent.agent import Agent
from tui.agent.prompts import parse
from tui.cli.print_mode import Countdown
from tui.core import facts
from tui.core.config import Retry
from tui.core.errors import ProviderError
from tui.core.facts import Fact
from tui.core.formatting import moment_of
from tui.core.paths import folders
from tui.provider.base import ModelInfo
from tui.provider.retry import RetryControl, RetryProvider
from tui.session.catalog import describe
from tui.session.session import Session

HOUR = 3600.0


def limited(seconds: float = HOUR) -> ProviderError:
    return ProviderError(
        "rate_limit", "Too many requests.", status=429, retry_after=seconds, retryable=True
    )


def agent_of(
    root: Path,
    scripted: ScriptedProvider,
    clock: FakeClock,
    *,
    session: Session | None = None,
    max_wait_s: float | None = None,
) -> Agent:
    control = RetryControl()
    provider = RetryProvider(scripted, retry=Retry(), clock=clock, control=control)
    return make_agent(
        root,
        provider,
        session=session or Session.in_memory(root, clock=clock),
        clock=clock,
        control=control,
        max_wait_s=max_wait_s,
    )


class Watched:
    """A turn in the background, and what it has told so far."""

    def __init__(self, agent: Agent, text: str | None = "hi") -> None:
        self.seen: list[Fact] = []
        self.task = asyncio.create_task(self._watch(agent, text))

    async def _watch(self, agent: Agent, text: str | None) -> None:
        turn = agent.go_on() if text is None else agent.send(parse(text))
        async for event in turn:
            self.seen.append(event)

    async def until(self, there: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not there():  # noqa: ASYNC110 - it waits for any of many events
                await asyncio.sleep(0)

    async def parked(self) -> facts.Parked:
        def found() -> list[facts.Parked]:
            return [event for event in self.seen if isinstance(event, facts.Parked)]

        await self.until(lambda: bool(found()))
        for _ in range(10):
            await asyncio.sleep(0)
        return found()[-1]


def outcome(seen: list[Fact]) -> str:
    last = seen[-1]
    assert isinstance(last, facts.TurnFinished)
    return last.outcome


async def test_R15_a_long_wait_parks_and_the_turn_goes_on_by_itself(tmp_path: Path) -> None:
    clock = FakeClock()
    provider = ScriptedProvider(limited(), say("back"))
    agent = agent_of(tmp_path, provider, clock)
    began = clock.now()
    seen = [event async for event in agent.send(parse("hi"))]
    assert outcome(seen) == "done"
    assert record_types(agent) == ["user", "parked", "assistant"]
    record = next(record for record in agent.session.records if record.type == "parked")
    assert moment_of(record.data["until"]) == began + timedelta(seconds=HOUR)
    assert record.data["error_class"] == "rate_limit"
    assert record.data["status"] == 429
    assert clock.elapsed >= HOUR
    (parked,) = [event for event in seen if isinstance(event, facts.Parked)]
    line = parked.to_json()
    assert line["type"] == "parked"
    assert (line["until"], line["reason"]) == (record.data["until"], "Too many requests.")


async def test_R15_a_sleeping_laptop_does_not_stretch_the_wait(tmp_path: Path) -> None:
    clock = ManualClock()
    turn = Watched(agent_of(tmp_path, ScriptedProvider(limited(), say("back")), clock))
    await turn.parked()
    clock.start += timedelta(seconds=HOUR)  # the wall clock went on, the other one stood still
    clock.advance(5)
    await asyncio.wait_for(turn.task, PATIENCE_S)
    assert outcome(turn.seen) == "done"
    assert clock.elapsed < 60


async def test_R15_stopping_ends_the_wait_and_keeps_the_prompt(tmp_path: Path) -> None:
    clock = ManualClock()
    agent = agent_of(tmp_path, ScriptedProvider(limited()), clock)
    turn = Watched(agent, "do it")
    await turn.parked()
    agent.cancel()
    await asyncio.wait_for(turn.task, PATIENCE_S)
    assert outcome(turn.seen) == "interrupted"
    assert record_types(agent) == ["user", "parked", "interrupt"]
    assert agent.session.records[0].data["text"] == "do it"


async def test_R15_retry_now_ends_the_wait(tmp_path: Path) -> None:
    clock = ManualClock()
    agent = agent_of(tmp_path, ScriptedProvider(limited(), say("back")), clock)
    assert not agent.models.retry_now()
    turn = Watched(agent)
    await turn.parked()
    assert not agent.models.use_fallback()
    assert agent.models.retry_now()
    await asyncio.wait_for(turn.task, PATIENCE_S)
    assert outcome(turn.seen) == "done"
    assert clock.elapsed < HOUR


async def test_another_model_is_asked_at_once(tmp_path: Path) -> None:
    clock = ManualClock()
    provider = ScriptedProvider(limited(), say("here"))
    agent = agent_of(tmp_path, provider, clock)
    turn = Watched(agent)
    await turn.parked()
    agent.models.use(ModelInfo("other", 200_000, 8192, "catalogue"))
    await asyncio.wait_for(turn.task, PATIENCE_S)
    assert [request.model for request in provider.requests] == ["test-model", "other"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    root = tmp_path / "work"
    root.mkdir()
    return root


@pytest.mark.parametrize("away_s", [60.0, 2 * HOUR])
async def test_R15_a_parked_session_survives_closing_the_program(home: Path, away_s: float) -> None:
    clock = ManualClock()
    session = Session.create(home, folders=folders(), clock=clock)
    agent = agent_of(home, ScriptedProvider(limited()), clock, session=session)
    turn = Watched(agent)
    first = await turn.parked()
    agent.cancel()  # as the screen does when it closes: at once followed by `close`
    await agent.close()
    await turn.task
    assert session.path is not None
    assert describe(session.path).state == "parked"

    clock.advance(away_s)
    provider = ScriptedProvider(say("back"))
    again = agent_of(home, provider, clock, session=Session.open(session.path, clock=clock))
    told = [event for event in await again.start() if isinstance(event, facts.Parked)]
    assert told == [first]
    turn = Watched(again, None)
    if away_s < HOUR:
        assert await turn.parked() == first
        assert provider.requests == []
        clock.advance(HOUR)
    await asyncio.wait_for(turn.task, PATIENCE_S)
    assert outcome(turn.seen) == "done"
    assert record_types(again) == ["user", "parked", "assistant"]
    assert not [event for event in turn.seen if isinstance(event, facts.UserMessage)]
    await again.close()
    assert describe(session.path).state == "ok"


async def test_R15_past_the_longest_wait_it_is_an_error(tmp_path: Path) -> None:
    clock = FakeClock()
    agent = agent_of(tmp_path, ScriptedProvider(limited()), clock, max_wait_s=600)
    seen = [event async for event in agent.send(parse("hi"))]
    assert outcome(seen) == "failed"
    (error,) = [event for event in seen if isinstance(event, facts.ErrorRaised)]
    assert error.error_class == "rate_limit"
    assert "60 min" in error.hint
    assert "--max-wait" in error.hint
    assert clock.elapsed == 0


async def test_R15_the_waits_of_a_turn_add_up(tmp_path: Path) -> None:
    clock = FakeClock()
    waits = [limited(250), limited(250), limited(250)]
    agent = agent_of(tmp_path, ScriptedProvider(*waits), clock, max_wait_s=600)
    seen = [event async for event in agent.send(parse("hi"))]
    assert outcome(seen) == "failed"
    assert 500 <= clock.elapsed < 520


async def test_R15_a_countdown_is_told_while_it_waits() -> None:
    clock, err = ManualClock(), io.StringIO()
    countdown = Countdown(clock, err)
    until = "2026-11-21T09:02:30.000Z"
    countdown.see(facts.Parked(until, "Too many requests."))
    for _ in range(4):
        for _ in range(5):
            await asyncio.sleep(0)
        clock.advance(60)
    for _ in range(5):
        await asyncio.sleep(0)
    lines = err.getvalue().splitlines()
    assert lines[0] == "Waiting for the server: 3 min left. Ctrl+C stops."
    assert lines[1] == "Waiting for the server: 90 s left. Ctrl+C stops."
    assert len(lines) == 3
    countdown.see(facts.Parked("2030-01-01T00:00:00Z", "again"))
    countdown.see(facts.TurnFinished("done"))
    await asyncio.sleep(0)
    assert len(err.getvalue().splitlines()) == 3


@pytest.mark.parametrize("text", [None, 7, "", "soon", "2026-11-21T09:00:00"])
def test_a_damaged_moment_parks_nothing(text: object) -> None:
    assert moment_of(text) is None
