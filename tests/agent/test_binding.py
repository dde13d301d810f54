"""Signed thinking through the real SDK, before a server that binds it to what stood before it.

Such a server answers 400 where thinking stands behind anything else. The program leaves it out in
time, so a request more than there are turns in the script would be one that was refused.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_guards import Gives
from tests.support.agents import events_of, make_agent
from tests.support.clock import PATIENCE_S
from tests.support.server import LoopbackServer
from tests.support.server_binding import ELSEWHERE, OTHER_SYSTEM
from tests.support.server_script import Json
from tui.agent.agent import Agent
from tui.agent.prompts import parse
from tui.core import facts
from tui.core.clock import SystemClock
from tui.core.config import Compaction, Config, McpServer, Prune
from tui.core.facts import Fact, Overlay
from tui.core.messages import ToolOutput
from tui.provider import catalogue
from tui.provider.anthropic import AnthropicProvider
from tui.provider.base import ModelInfo
from tui.tools.mcp import Servers

ROOT = Path(__file__).parents[2]
SONNET = ModelInfo("claude-sonnet-5-5", 200_000, 8192, "server", thinking_types=("adaptive",))
OPUS = ModelInfo("claude-opus-5-5", 200_000, 8192, "server", thinking_types=("adaptive",))
CUT = "messages.1.content.0: Invalid `signature` in `thinking` block"
CHANGED = (
    "messages.3.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant "
    "message cannot be modified. These blocks must remain as they were in the original response."
)


def read(thought: str) -> Json:
    return {
        "thinking": thought,
        "tools": [{"name": "read_file", "input": {"path": f"{thought}.txt"}}],
    }


def said(thought: str, **more: Any) -> Json:
    return {"thinking": thought, "text": f"That was {thought}.", **more}


@asynccontextmanager
async def talking(
    root: Path, *turns: Json, config: Config | None = None, **parts: Any
) -> AsyncGenerator[tuple[Agent, LoopbackServer]]:
    for n in range(10):
        (root / f"r{n}.txt").write_text(f"alpha beta {n}\n" * 300)
    async with LoopbackServer({"turns": list(turns)}) as server:
        provider = AnthropicProvider(api_key="k", clock=SystemClock(), base_url=server.url)
        config = config or Config(compaction=Compaction(memory_flush=False, keep_messages=2))
        agent = make_agent(root, provider, model=SONNET, config=config, **parts)
        await agent.start()
        try:
            yield agent, server
        finally:
            await asyncio.wait_for(agent.close(), PATIENCE_S)


async def done(agent: Agent, prompt: str) -> list[Fact]:
    """A turn that comes to its end, and in which the server refuses nothing."""
    found = await asyncio.wait_for(events_of(agent, prompt), PATIENCE_S)
    last = found[-1]
    assert isinstance(last, facts.TurnFinished)
    assert last.outcome == "done", found
    return found


def thoughts(server: LoopbackServer, post: int = -1) -> list[str]:
    """The thinking in a request."""
    content = [b for m in server.posts[post].body["messages"] for b in m["content"]]
    return [str(b.get("thinking")) for b in content if "thinking" in b["type"]]


def breaks(agent: Agent) -> list[tuple[str, str]]:
    found = (record.data for record in agent.session.records if record.type == "break")
    return [(data["reason"], data["by"]) for data in found]


async def test_a_chat_of_ten_turns_keeps_all_thinking(tmp_path: Path) -> None:
    turns = [turn for n in range(10) for turn in (read(f"r{n}"), said(f"s{n}"))]
    async with talking(tmp_path, *turns, config=Config()) as (agent, server):
        for n in range(10):
            await done(agent, f"number {n}")
        assert len(server.posts) == 20
        assert len(thoughts(server)) == 19
        assert breaks(agent) == []


async def test_pruning_in_a_long_turn_leaves_out_the_thinking_so_far(tmp_path: Path) -> None:
    config = Config(prune=Prune(after_turns=3, unit="requests", when="turns"))
    turns = [*(read(f"r{n}") for n in range(8)), said("done"), said("after")]
    async with talking(tmp_path, *turns, config=config) as (agent, server):
        await done(agent, "read it again and again")
        await done(agent, "and now?")
        assert len(server.posts) == 10
        assert len(breaks(agent)) >= 4
        assert [len(thoughts(server, n)) for n in range(6)] == [0, 1, 2, 3, 4, 0]


async def mask(agent: Agent) -> None:
    result = next(r.id for r in agent.session.records if r.type == "tool_result")
    await agent.context.overlay([Overlay(result, "masked")])


async def think(agent: Agent) -> None:
    await done(agent, "/think")


async def compact(agent: Agent) -> None:
    last = [event async for event in agent.context.compact()]
    assert any(getattr(event, "messages_removed", 0) for event in last)


@pytest.mark.parametrize(("change", "reason"), [(mask, "mask"), (compact, "compaction")])
async def test_what_changes_before_thinking_leaves_it_out_and_what_follows_stays(
    tmp_path: Path, change: Callable[[Agent], Awaitable[None]], reason: str
) -> None:
    summary = [{"text": "They read a file."}] if change is compact else []
    turns = [read("r0"), said("s0"), said("s1"), *summary, read("r2"), said("s2"), said("s3")]
    async with talking(tmp_path, *turns) as (agent, server):
        await done(agent, "read it")
        await done(agent, "what is it?")
        await change(agent)
        seen = await done(agent, "/verbose read it again")
        told, billed = [event for event in seen if isinstance(event, facts.ContextBroken)]
        assert (told.billed_usd, billed.cost_usd) == (None, told.cost_usd)
        assert (told.reason, told.by, told.thoughts) == (reason, "person", 3)
        await done(agent, "and now?")
        assert len(server.posts) == len(turns)
        assert breaks(agent) == [(reason, "person")]
        assert [thoughts(server, n) for n in (-3, -2, -1)] == [[], ["r2"], ["r2", "s2"]]


async def test_think_changes_nothing_of_what_was_sent(tmp_path: Path) -> None:
    turns = [said("s0"), said("s1"), said("s2")]
    async with talking(tmp_path, *turns) as (agent, server):
        await done(agent, "one")
        await think(agent)
        await done(agent, "two")
        await done(agent, "/think off three")
        assert breaks(agent) == []
        assert [thoughts(server, n) for n in (0, 1, 2)] == [[], ["s0"], ["s0", "s1"]]


@pytest.mark.parametrize("undo", ["unmask", "uncompact"])
async def test_what_was_left_out_comes_back_once_its_break_is_undone(
    tmp_path: Path, undo: str
) -> None:
    summary = [{"text": "They read a file."}] if undo == "uncompact" else []
    turns = [read("r0"), said("s0"), said("s1"), *summary, said("s2"), said("s3"), said("s4")]
    async with talking(tmp_path, *turns) as (agent, server):
        await done(agent, "read it")
        await done(agent, "what is it?")
        await (mask(agent) if undo == "unmask" else compact(agent))
        await done(agent, "and now?")
        if undo == "unmask":
            result = next(r.id for r in agent.session.records if r.type == "tool_result")
            await agent.context.overlay([Overlay(result, "full")])
        else:
            await agent.context.uncompact()
        await done(agent, "and then?")
        await done(agent, "and at last?")
        assert len(server.posts) == len(turns)
        # what was thought before comes back, what was thought since goes
        back = ["r0", "s0", "s1"]
        assert [thoughts(server, n) for n in (-2, -1)] == [back, [*back, "s3"]]


async def test_a_mask_in_mid_turn(tmp_path: Path) -> None:
    turns = [read("r1"), {**read("r2"), "delay_s": 0.01}, said("s1"), said("s2")]
    async with talking(tmp_path, *turns) as (agent, server):
        async for event in agent.send(parse("read it twice")):
            if isinstance(event, facts.RequestSent) and event.messages == 3:
                await mask(agent)
        await done(agent, "and now?")
        assert len(server.posts) == 4
        assert [thoughts(server, n) for n in range(4)] == [[], ["r1"], [], ["s1"]]


@pytest.mark.slow
async def test_tools_that_come_and_go(tmp_path: Path) -> None:
    ours = McpServer(command=(sys.executable, "-m", "tests.tools.mcp.server"))
    servers = Servers({"odd": ours}, cwd=ROOT, log_folder=tmp_path / "log")
    turns = [said("s1"), said("s2"), said("s3"), said("s4")]
    async with talking(tmp_path, *turns, servers=servers) as (agent, server):
        await done(agent, "one")
        agent.mcp.switch_tool(agent.mcp.all[0], "echo", on=False)
        await done(agent, "two")
        await done(agent, "three")
        agent.mcp.switch_tool(agent.mcp.all[0], "echo", on=True)
        await done(agent, "four")
        assert len(server.posts) == 4
        assert [thoughts(server, n) for n in range(4)] == [
            [],
            ["s1"],
            ["s1", "s2"],
            ["s1", "s2", "s3"],
        ]


async def test_a_tool_that_joins_is_added_at_the_end(tmp_path: Path) -> None:
    late: Json = {"thinking": "s2", "tools": [{"name": "elsewhere", "input": {}}]}
    turns = [said("s1"), late, said("s3")]
    sonnet = catalogue.model_info(SONNET.id)
    async with talking(tmp_path, *turns, first_party=True) as (agent, server):
        agent.models.use(sonnet)
        await done(agent, "one")
        tool = Gives(ToolOutput.text("done"))
        agent._ctx.toolbox.tools[tool.name] = tool  # pyright: ignore[reportPrivateUsage] - as of a server
        agent._requests.exchange((), [tool])  # pyright: ignore[reportPrivateUsage]
        await done(agent, "two")
        assert len(server.posts) == 3
        assert breaks(agent) == []
        last = server.posts[-1].body["messages"]
        (system,) = [message for message in last if message["role"] == "system"]
        assert [block["type"] for block in system["content"]] == ["text", "tool_addition"]
        assert server.posts[0].body["tools"] == server.posts[-1].body["tools"]
        assert "inline-tools-2026-09-15" in server.posts[-1].headers["anthropic-beta"]


async def test_a_switch_of_the_model_and_back_loses_nothing(tmp_path: Path) -> None:
    turns = [said("s1"), said("o1"), said("s2"), said("o2")]
    async with talking(tmp_path, *turns) as (agent, server):
        for n, model in enumerate((SONNET, OPUS, SONNET, OPUS)):
            agent.models.use(model)
            await done(agent, f"number {n}")
        assert len(server.posts) == 4
        assert [thoughts(server, n) for n in range(4)] == [[], [], ["s1"], ["o1"]]
        assert breaks(agent) == []


async def test_a_model_that_takes_over_is_not_sent_what_changed_either(tmp_path: Path) -> None:
    turns = [read("s1"), said("o1", faults=[{"status": 529}]), said("o2"), said("o3")]
    async with talking(tmp_path, *turns, fallbacks=(OPUS.id,)) as (agent, server):
        await done(agent, "read it")
        await mask(agent)
        await done(agent, "and now?")
        await done(agent, "and then?")
        assert [post.body["model"] for post in server.posts] == [SONNET.id] * 2 + [OPUS.id] * 3
        assert [thoughts(server, n) for n in range(5)] == [[], ["s1"], [], [], ["o2"]]
        assert breaks(agent) == [("mask", "person")]


@pytest.mark.parametrize(
    "text", [f"messages.1.content.0: {ELSEWHERE} {OTHER_SYSTEM}", CUT, CHANGED]
)
async def test_B17_B19_a_refusal_of_thinking_is_answered_by_one_request_without_it(
    tmp_path: Path, text: str
) -> None:
    refused = {"faults": [{"status": 400, "message": text}]}
    turns = [read("r1"), said("s1"), {**read("r2"), **refused}, said("s2"), said("s3")]
    async with talking(tmp_path, *turns) as (agent, server):
        await done(agent, "read it")
        seen = await done(agent, "read it again")
        (notice,) = [e.text for e in seen if isinstance(e, facts.Notice)]
        assert notice.startswith("The server rejected the reasoning in earlier answers.")
        assert not any(isinstance(e, facts.ErrorRaised) for e in seen)
        await done(agent, "and now?")
        assert len(server.posts) == len(turns) + 1
        assert [thoughts(server, n) for n in range(2, 6)] == [
            ["r1", "s1"],
            [],
            ["r2"],
            ["r2", "s2"],
        ]
        assert breaks(agent) == [("refused", "server")]


async def test_where_the_request_without_thinking_is_refused_too_the_turn_fails(
    tmp_path: Path,
) -> None:
    refused = {"faults": [{"status": 400, "message": CUT}] * 2}
    async with talking(tmp_path, said("s1"), said("s2", **refused)) as (agent, server):
        await done(agent, "one")
        seen = await asyncio.wait_for(events_of(agent, "two"), PATIENCE_S)
        (error,) = [e for e in seen if isinstance(e, facts.ErrorRaised)]
        assert error.error_class == "invalid_request"
        assert agent.context.repair_levels()[:1] == ("strict",)
        assert len(server.posts) == 3
        assert server.posts[1].raw != server.posts[2].raw


async def test_without_thinking_in_the_request_nothing_is_sent_again(tmp_path: Path) -> None:
    refused = {"faults": [{"status": 400, "message": CUT}]}
    async with talking(tmp_path, said("s1", **refused)) as (agent, server):
        seen = await asyncio.wait_for(events_of(agent, "one"), PATIENCE_S)
        assert any(isinstance(e, facts.ErrorRaised) for e in seen)
        assert len(server.posts) == 1
