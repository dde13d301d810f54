"""`prune.when = "auto"`: what is due waits for a break or until it pays, before a strict server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_binding import done, said, thoughts
from tests.agent.test_guards import Gives
from tests.support.agents import make_agent
from tests.support.clock import PATIENCE_S, FakeClock
from tests.support.provider import ScriptedProvider, call, say
from tests.support.server import LoopbackServer
from tests.support.server_script import Json
from tui.agent.agent import Agent
from tui.core.clock import SystemClock
from tui.core.config import Config, Prune
from tui.core.facts import Overlay
from tui.core.messages import ToolOutput
from tui.provider import catalogue
from tui.provider.anthropic import AnthropicProvider

BINDS, FREE = "claude-sonnet-5-5", "claude-opus-4-8"
NEVER = Prune(after_turns=1_000_000)
PAUSE_S = 1200.0


def turns(count: int) -> list[Json]:
    """Each reads a long file and says a word."""
    script: list[Json] = []
    for number in range(count):
        tool = {"name": "read_file", "input": {"path": f"r{number % 4}.txt"}}
        script += [{"thinking": f"t{number}", "tools": [tool]}, said(f"s{number}")]
    return script


@asynccontextmanager
async def priced(
    root: Path, model: str, script: list[Json], prune: Prune, **parts: Any
) -> AsyncGenerator[tuple[Agent, LoopbackServer, FakeClock]]:
    """An agent and a server that charges it, on one clock."""
    for n in range(4):
        (root / f"r{n}.txt").write_text(f"alpha beta {n} gamma delta\n" * (60 + 400 * n))
    clock = FakeClock()
    async with LoopbackServer({"turns": script, "catalogue": True, "priced": True}) as server:
        server.now = lambda: clock.elapsed
        provider = AnthropicProvider(api_key="k", clock=SystemClock(), base_url=server.url)
        agent = make_agent(
            root,
            provider,
            model=catalogue.model_info(model),
            config=Config(prune=prune),
            clock=clock,
            first_party=True,
            **parts,
        )
        await agent.start()
        try:
            yield agent, server, clock
        finally:
            await asyncio.wait_for(agent.close(), PATIENCE_S)


async def cost(root: Path, model: str, count: int, prune: Prune) -> tuple[float, int, int]:
    """The dollars of a long session with pauses, how many results were pruned, and breaks."""
    async with priced(root, model, turns(count), prune) as (agent, server, clock):
        for number in range(count):
            clock.elapsed += PAUSE_S if number % 12 == 11 else 20.0
            await done(agent, f"number {number}")
        assert len(server.posts) == 2 * count  # none was refused
        types = [record.type for record in agent.session.records]
        return server.cache.dollars, types.count("overlay"), types.count("break")


@pytest.mark.slow
@pytest.mark.parametrize("model", [BINDS, FREE])
async def test_a_long_session_costs_no_more_than_without_pruning(
    tmp_path: Path, model: str
) -> None:
    auto, pruned, breaks = await cost(tmp_path, model, 40, Prune())
    never, *nothing = await cost(tmp_path, model, 40, NEVER)
    print(f"{model}: auto ${auto:.4f}, never ${never:.4f}, {pruned} pruned in {breaks} breaks")
    assert auto <= never
    assert nothing == [0, 0]
    assert (pruned > 0) == (model == FREE)


async def test_what_waits_goes_with_the_next_break_and_takes_no_thought_with_it(
    tmp_path: Path,
) -> None:
    script = turns(6)
    async with priced(tmp_path, BINDS, script, Prune(after_turns=1)) as (agent, server, _):
        for number in range(4):
            await done(agent, f"number {number}")
        waiting = agent.context.waiting()
        results = [r.id for r in agent.session.records if r.type == "tool_result"]
        assert waiting.records == set(results[:3])
        assert waiting.tokens > 3000
        assert len(thoughts(server)) == 7
        await agent.context.overlay([Overlay(results[1], "masked")])
        await done(agent, "number 4")
        types = [
            (r.data["reason"], r.data["by"]) for r in agent.session.records if r.type == "break"
        ]
        assert types == [("mask", "person")]
        views = [
            (r.data["target"], r.data["view"]) for r in agent.session.records if r.type == "overlay"
        ]
        assert views == [(results[1], "masked"), (results[2], "pruned")]
        assert agent.context.waiting().records == {results[0], results[3]}
        assert thoughts(server) == ["t0", "s0", "t4"]
        assert len(server.posts) == 10


async def test_a_reload_takes_all_that_waits(tmp_path: Path) -> None:
    async with priced(tmp_path, BINDS, turns(5), Prune(after_turns=1)) as (agent, server, _):
        for number in range(4):
            await done(agent, f"number {number}")
        tool = Gives(ToolOutput.text("done"))
        agent._requests.exchange((), [tool])  # pyright: ignore[reportPrivateUsage] - as of a server
        agent.context.reload()
        await done(agent, "number 4")
        types = [r.data["reason"] for r in agent.session.records if r.type == "break"]
        assert types == ["reload"]
        assert len([r for r in agent.session.records if r.type == "overlay"]) == 3
        assert len(agent.context.waiting().records) == 1
        assert len(server.posts) == 10


async def test_where_a_server_neither_binds_nor_caches_results_are_pruned_by_turns(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_text("alpha beta\n" * 300)
    reads = [call("read_file", id_=f"c{n}", path="a.txt") for n in range(9)]
    provider = ScriptedProvider(*(answer for one in reads for answer in ([one], say("ok"))))
    agent = make_agent(tmp_path, provider)
    for number in range(9):
        await done(agent, f"number {number}")
    pruned = "[Previous tool result truncated"
    assert [str(sent.messages).count(pruned) for sent in provider.requests[-6:]] == [
        0,
        0,
        1,
        1,
        2,
        2,
    ]
    assert not any(record.type == "overlay" for record in agent.session.records)
