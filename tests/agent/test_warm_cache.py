"""The cache is kept over a pause as long as the price says that it pays, and no longer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import tui
from tests.agent.test_side_questions import LONG, turn
from tests.support.agents import make_agent
from tests.support.clock import PATIENCE_S, ManualClock
from tests.support.server import LoopbackServer
from tests.support.server_script import Json
from tui.agent.agent import Agent
from tui.agent.limits import Limits
from tui.agent.warm_cache import LOOK_S
from tui.core.config import Cache, Config
from tui.core.fact_words import words
from tui.core.facts import CacheWarmed, Fact, Notice
from tui.core.retold import retold
from tui.permissions.gate import RulesOnly
from tui.permissions.types import Answer, Call, Decision
from tui.provider import catalogue
from tui.provider.anthropic import AnthropicProvider
from tui.provider.prices import CacheLife, price_of
from tui.session.records import Record

MINUTE = 60.0
WRITE = {"path": "x", "content": "x"}


class Pause:
    """An agent at rest, its server, and what it shows meanwhile."""

    def __init__(self, agent: Agent, server: LoopbackServer, clock: ManualClock) -> None:
        self.agent, self.server, self.clock = agent, server, clock
        self.shown = list[Fact]()

    async def lasts(self, minutes: float) -> None:
        """Let time pass, look by look, until all that is sent in it is recorded."""
        for _ in range(int(minutes * MINUTE / LOOK_S)):
            self.clock.advance(LOOK_S)
            for _ in range(6):
                await asyncio.sleep(0)
            for _ in range(10_000):
                if len(self.warmed) + len(self.notices) >= len(self.asked):
                    break
                await asyncio.sleep(0.001)

    @property
    def records(self) -> Sequence[Record]:
        return self.agent.session.records

    @property
    def asked(self) -> list[Json]:
        return [post.body for post in self.server.posts if post.body["max_tokens"] == 1]

    @property
    def warmed(self) -> list[Record]:
        return [one for one in self.agent.session.records if one.type == "cache_warmed"]

    @property
    def notices(self) -> list[str]:
        return [one.text for one in self.shown if isinstance(one, Notice)]


@asynccontextmanager
async def paused(
    root: Path, *answers: Json, minutes: int = 600, model: str = "claude-sonnet-5-5", **parts: Any
) -> AsyncGenerator[Pause]:
    script = {"turns": [{"text": LONG}, *answers], "catalogue": True, "priced": True}
    clock = ManualClock()
    async with LoopbackServer(script) as server:
        server.now = clock.monotonic
        provider = AnthropicProvider(api_key="k", clock=clock, base_url=server.url)
        agent = make_agent(
            root,
            provider,
            model=catalogue.model_info(model),
            config=Config(cache=Cache(keep_warm=minutes)),
            clock=clock,
            first_party=True,
            server="api",
            **parts,
        )
        await agent.start()
        one = Pause(agent, server, clock)
        agent.watch(one.shown.append)
        try:
            await asyncio.wait_for(turn(agent, "Look." + " and so on" * 300), PATIENCE_S)
            agent.models.keep_cache_warm()
            await asyncio.sleep(0)
            yield one
        finally:
            await asyncio.wait_for(agent.close(), PATIENCE_S)


def short(n: int) -> list[Json]:
    return [{"text": "", "content": [{"text": "."}], "stop_reason": "max_tokens"}] * n


async def test_it_is_read_shortly_before_its_end_and_the_next_prompt_finds_it(
    tmp_path: Path,
) -> None:
    async with paused(tmp_path, *short(3), {"text": "Done."}) as pause:
        await pause.lasts(4)
        assert not pause.asked
        await pause.lasts(11)
        assert len(pause.asked) == 3
        first, *others = pause.warmed
        assert [one.data["times"] for one in pause.warmed] == [1, 2, 3]
        assert all(one.data["usage"]["cache_creation_input_tokens"] == 0 for one in others)
        assert first.data["usage"]["cache_read_input_tokens"] > 1000
        await asyncio.wait_for(turn(pause.agent, "Go on."), PATIENCE_S)
        answers = [r for r in pause.agent.session.records if r.type == "assistant"]
        assert answers[-1].data["usage"]["cache_read_input_tokens"] > 3000
        spent = pause.agent.spending().session.usd
        assert spent == pytest.approx(pause.server.cache.dollars)  # pyright: ignore[reportUnknownMemberType]
        assert "max_tokens" not in str(pause.server.posts[-1].body["messages"])
        told = [words(one) for one in pause.shown if isinstance(one, CacheWarmed)]
        assert told[-1] is not None
        assert told[-1].text.startswith("Cache kept warm 3× in this pause: $0.0")
        again = [fact for _, fact in retold(pause.warmed) if fact]
        assert len(again) == 1


async def test_it_ends_before_it_costs_more_than_writing_again(tmp_path: Path) -> None:
    """Haiku reads at 0.08 of what it writes: eleven times at most."""
    async with paused(tmp_path, *short(30), model="claude-haiku-4-5") as pause:
        await pause.lasts(180)
        reads = sum(one.data["usage"]["cache_read_input_tokens"] for one in pause.warmed)
        size = pause.warmed[-1].data["usage"]["cache_read_input_tokens"]
        assert 9 <= len(pause.warmed) <= 11
        assert 0.10 * reads < (1.25 - 0.10) * size
        assert len(pause.asked) == len(pause.warmed)


async def test_the_setting_ends_it(tmp_path: Path) -> None:
    async with paused(tmp_path, *short(9), minutes=10) as pause:
        await pause.lasts(60)
        assert len(pause.asked) == 2


async def test_a_limit_on_cost_ends_it(tmp_path: Path) -> None:
    async with paused(tmp_path, *short(9), limits=Limits(max_cost=0.0001)) as pause:
        await pause.lasts(30)
        assert not pause.asked


async def test_switched_off_nothing_is_sent(tmp_path: Path) -> None:
    async with paused(tmp_path, minutes=0) as pause:
        await pause.lasts(30)
        assert not pause.asked


async def test_a_failure_is_said_once_and_not_repeated(tmp_path: Path) -> None:
    busy = {"text": ".", "faults": [{"status": 529}]}
    async with paused(tmp_path, busy, *short(3)) as pause:
        await pause.lasts(30)
        assert len(pause.asked) == 1
        (said,) = pause.notices
        assert said.startswith("The cache isn't kept warm any longer:")


async def test_a_machine_that_slept_writes_nothing_again(tmp_path: Path) -> None:
    async with paused(tmp_path, *short(3)) as pause:
        pause.clock.advance(3600)
        await pause.lasts(10)
        assert not pause.asked


class Away(RulesOnly):
    """Answers when the person is back."""

    def __init__(self) -> None:
        self.back = asyncio.Event()

    async def ask(self, call: Call, decision: Decision) -> Answer:
        del call, decision
        await self.back.wait()
        return Answer("no")


async def test_it_is_kept_while_a_call_waits_and_the_turn_goes_on_as_before(tmp_path: Path) -> None:
    away = Away()
    touch: Json = {"text": "I touch.", "tools": [{"name": "write_file", "input": WRITE}]}
    turns = [touch, *short(2), {"text": "Then not."}]
    async with paused(tmp_path, *turns, approver=away) as pause:
        running = asyncio.create_task(turn(pause.agent, "Touch it."))
        await pause.server.post(2)
        for _ in range(10_000):
            if any(one.type == "assistant" and "touch" in str(one.data) for one in pause.records):
                break
            await asyncio.sleep(0.001)
        await pause.lasts(9.5)
        assert len(pause.asked) == len(pause.warmed) == 2
        away.back.set()
        await asyncio.wait_for(running, PATIENCE_S)
        assert not any(one.type == "break" for one in pause.records)
        last = [one for one in pause.records if one.type == "assistant"][-1]
        assert last.data["usage"]["cache_read_input_tokens"] > 3000


@pytest.mark.parametrize(
    ("model", "life", "named"),
    [
        ("claude-sonnet-5-5", "5m", "5 minutes"),
        ("claude-sonnet-5-5", "1h", "an hour"),
        ("claude-opus-5-5", "5m", "5 minutes"),
        ("claude-fable-5-1", "5m", "5 minutes"),
        ("claude-sonnet-4-6", "5m", "5 minutes"),
    ],
)
def test_the_manual_has_the_figures_of_the_price_table(
    model: str, life: CacheLife, named: str
) -> None:
    price, size = price_of(model, {}), 200_000
    assert price is not None
    read, again = price.forecast(read=size), price.forecast(written=size, life=life)
    times = 0
    while (times + 1) * price.forecast(read=size, output=1) < again - read:
        times += 1
    row = f"| {model}, {named} | ${read:.2f} | ${again:.2f} | {times}, for "
    assert row in (Path(tui.__file__).parent / "manual" / "context.md").read_text()
