"""The server's search of the web: offered by rule, shown, cited, paid for, sent back unchanged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from math import isclose
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
from tui.core.facts import Fact
from tui.permissions.gate import Gate
from tui.permissions.policy import Policy
from tui.provider import catalogue
from tui.provider.anthropic import AnthropicProvider

SONNET = "claude-sonnet-5-5"
PAGES = [
    {"url": "https://docs.python.org/3/library/asyncio.html", "title": "asyncio"},
    {"url": "https://peps.python.org/pep-3156/", "title": "PEP 3156", "age": "March 2014"},
]
SEARCHED = [
    {"thinking": "Look it up."},
    {"search": "python event loop"},
    {"found": PAGES},
    {"text": "The loop is "},
    {"text": "described in a PEP", "cites": [PAGES[1]]},
    {"text": "."},
]
ANSWER = "The loop is described in a PEP."
ALLOW = Policy.of(allow=["web_search"])


@asynccontextmanager
async def talking(
    root: Path, turns: Sequence[Json], *, policy: Policy = ALLOW, **script: Any
) -> AsyncGenerator[tuple[Agent, LoopbackServer]]:
    parts = {name: script.pop(name) for name in ("first_party", "session") if name in script}
    played = {"turns": list(turns), "catalogue": True, **script}
    async with LoopbackServer(played) as server:
        provider = AnthropicProvider(api_key="k", clock=SystemClock(), base_url=server.url)
        info = catalogue.model_info(SONNET)
        parts.setdefault("first_party", True)
        agent = make_agent(root, provider, model=info, gate=Gate(policy), **parts)
        await agent.start()
        try:
            yield agent, server
        finally:
            await asyncio.wait_for(agent.close(), PATIENCE_S)


async def turn(agent: Agent, prompt: str) -> list[Fact]:
    return await asyncio.wait_for(events_of(agent, prompt), PATIENCE_S)


def offered(body: Json) -> list[Json]:
    return [tool for tool in body["tools"] if tool["name"] == "web_search"]


async def test_a_search_is_a_call_with_its_pages_and_the_answer_names_its_sources(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path, [{"content": SEARCHED}, {"text": "Gladly."}]) as (agent, server):
        seen = await turn(agent, "how does the loop work?")
        started = next(e for e in seen if isinstance(e, facts.ToolStarted))
        assert (started.name, started.label) == ("web_search", "python event loop")
        ended = next(e for e in seen if isinstance(e, facts.ToolFinished))
        assert (ended.id, ended.summary, ended.is_error) == (started.id, "2 pages", False)
        assert "PEP 3156 · https://peps.python.org/pep-3156/ · March 2014" in ended.text
        said = next(e for e in seen if isinstance(e, facts.AssistantMessage))
        assert said.text == ANSWER
        cited = next(e for e in seen if isinstance(e, facts.SourcesCited))
        assert cited.sources == ({"url": PAGES[1]["url"], "title": "PEP 3156"},)
        finished = next(e for e in seen if isinstance(e, facts.TurnFinished))
        assert finished.usage.web_search_requests == 1
        await turn(agent, "thanks")  # all goes back as it came, or the server would refuse it
        assert len(server.posts) == 2
        assert offered(server.posts[1].body) == offered(server.posts[0].body)


async def test_each_search_is_paid_for(tmp_path: Path) -> None:
    async with talking(tmp_path, [{"content": SEARCHED}, {"text": "Gladly."}]) as (agent, _):
        first = (await turn(agent, "search"))[-1]
        second = (await turn(agent, "thanks"))[-1]
        assert isinstance(first, facts.TurnFinished)
        assert isinstance(second, facts.TurnFinished)
        assert first.cost_usd is not None
        assert second.cost_usd is not None
        assert isclose(first.cost_usd - second.cost_usd, 0.01)


@pytest.mark.parametrize(
    ("rules", "domains"),
    [
        ({}, None),
        ({"allow": ["*"]}, None),
        ({"allow": ["web_search"], "deny": ["web_search"]}, None),
        ({"allow": ["web_search"], "ask": ["web_search"]}, None),
        ({"allow": ["web_search"], "deny": ["*"]}, None),
        ({"allow": ["web_search"]}, {}),
        (
            {"allow": ["web_search(docs.rs)", "web_search(*.python.org/*)"]},
            {"allowed_domains": ["docs.rs", "python.org"]},
        ),
        (
            {"allow": ["web_search"], "deny": ["web_search(Example.com)"]},
            {"blocked_domains": ["example.com"]},
        ),
        (
            {"allow": ["web_search(a.org)", "web_search(b.org)"], "deny": ["web_search(x.a.org)"]},
            {"allowed_domains": ["b.org"]},
        ),
        ({"allow": ["web_search(a.org)"], "deny": ["web_search(a.org)"]}, None),
        ({"allow": ["web_search(https://a.org)"]}, None),
    ],
)
async def test_it_is_offered_as_the_rules_say(
    tmp_path: Path, rules: dict[str, list[str]], domains: Json | None
) -> None:
    policy = Policy.of(**rules)  # pyright: ignore[reportArgumentType] - lists of rules
    async with talking(tmp_path, [{"text": "Hi."}], policy=policy) as (agent, server):
        await turn(agent, "hello")
        found = [
            {k: v for k, v in tool.items() if k.endswith("_domains")}
            for tool in offered(server.posts[0].body)
        ]
        assert found == ([] if domains is None else [domains])


async def test_servers_of_another_kind_are_not_asked_for_it(tmp_path: Path) -> None:
    async with talking(tmp_path, [{"text": "Hi."}], first_party=False) as (agent, server):
        await turn(agent, "hello")
        assert offered(server.posts[0].body) == []


async def test_where_it_is_switched_off_the_request_goes_once_more_without_it(
    tmp_path: Path,
) -> None:
    turns = [{"text": "Hi."}, {"text": "Still here."}]
    async with talking(tmp_path, turns, lacks=["web_search"]) as (agent, server):
        seen = await turn(agent, "hello")
        said = [e.text for e in seen if isinstance(e, facts.Notice)]
        assert any("searching the web" in text for text in said)
        await turn(agent, "again")
        assert [bool(offered(post.body)) for post in server.posts] == [True, False, False]
        assert isinstance(seen[-1], facts.TurnFinished)
        assert seen[-1].outcome == "done"


async def test_a_search_that_fails_is_a_call_that_failed(tmp_path: Path) -> None:
    content = [{"search": "x" * 9}, {"found": "too_many_requests"}, {"text": "No luck."}]
    async with talking(tmp_path, [{"content": content}]) as (agent, _):
        seen = await turn(agent, "search")
        ended = next(e for e in seen if isinstance(e, facts.ToolFinished))
        assert (ended.is_error, ended.summary) == (True, "the server's search is busy")
        assert isinstance(seen[-1], facts.TurnFinished)
        assert seen[-1].usage.web_search_requests == 0


async def test_beside_another_call_its_result_comes_with_the_next_answer(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha")
    tool = {"name": "read_file", "input": {"path": "a.txt"}}
    turns = [
        {"content": [{"text": "Both."}, {"search": "alpha", "id": "srvtoolu_1"}, {"tool": tool}]},
        {"content": [{"found": PAGES, "id": "srvtoolu_1"}, {"text": "Read and found."}]},
        {"text": "Next."},
    ]
    async with talking(tmp_path, turns) as (agent, server):
        seen = await turn(agent, "both at once")
        ended = {e.name: e for e in seen if isinstance(e, facts.ToolFinished)}
        assert not ended["read_file"].is_error
        assert ended["web_search"].summary == "2 pages"
        last = server.posts[1].body["messages"][-1]
        assert {block["type"] for block in last["content"]} == {"tool_result"}
        await turn(agent, "go on")
        breaks = [r for r in agent.session.records if r.type == "break"]
        assert (len(server.posts), breaks) == (3, [])


@pytest.mark.parametrize("first", [{"thinking": "Where?"}, {"text": "Looking."}])
async def test_a_paused_turn_goes_on_as_it_is(tmp_path: Path, first: Json) -> None:
    turns = [
        {
            "content": [first, {"search": "alpha", "id": "srvtoolu_1"}],
            "stop_reason": "pause_turn",
        },
        {
            "content": [
                {"found": PAGES, "id": "srvtoolu_1"},
                {"thinking": "There."},
                {"text": "Found."},
            ]
        },
        {"text": "Next."},
    ]
    async with talking(tmp_path, turns) as (agent, server):
        seen = await turn(agent, "look")
        assert server.posts[1].body["messages"][-1]["role"] == "assistant"
        said = [e.text for e in seen if isinstance(e, facts.AssistantMessage)]
        assert said == [first.get("text", ""), "Found."]
        await turn(agent, "go on")
        breaks = [r for r in agent.session.records if r.type == "break"]
        assert (len(server.posts), breaks) == (3, [])


async def test_a_rule_that_is_taken_back_holds_at_once_when_the_session_goes_on(
    tmp_path: Path,
) -> None:
    turns = [{"content": SEARCHED}]
    async with talking(tmp_path, turns) as (agent, _):
        await turn(agent, "search")
        session = agent.session
    async with talking(tmp_path, [{"text": "Hi."}], policy=Policy(), session=session) as (
        agent,
        server,
    ):
        await turn(agent, "hello")
        assert offered(server.posts[0].body) == []
        (why,) = [r.data for r in agent.session.records if r.type == "break"]
        assert "searching the web" in why["why"]


async def test_the_context_is_measured_by_the_last_round(tmp_path: Path) -> None:
    rounds = [
        {"type": "message", "input_tokens": 4_000, "output_tokens": 100},
        {"type": "message", "input_tokens": 9_000, "output_tokens": 300},
    ]
    usage = {"input_tokens": 13_000, "output_tokens": 400, "iterations": rounds}
    async with talking(tmp_path, [{"content": SEARCHED, "usage": usage}]) as (agent, _):
        seen = await turn(agent, "search")
        said = next(e for e in seen if isinstance(e, facts.AssistantMessage))
        assert (said.usage.context, said.usage.total) == (9_300, 13_400)
        measured = [e for e in seen if isinstance(e, facts.ContextMeasured)][-1]
        assert measured.tokens == 9_300


async def test_a_rule_that_comes_later_waits_for_a_new_frame(tmp_path: Path) -> None:
    async with talking(tmp_path, [{"text": "Hi."}], policy=Policy()) as (agent, _):
        await turn(agent, "hello")
        session = agent.session
    turns = [{"text": "Hi."}, {"text": "Hi again."}]
    async with talking(tmp_path, turns, session=session) as (agent, server):
        seen = await turn(agent, "hello")
        said = [e.text for e in seen if isinstance(e, facts.Notice)]
        assert said == ["1 new tool waits (web_search). /reload takes it now."]
        agent.context.reload()
        await turn(agent, "and now?")
        assert [bool(offered(post.body)) for post in server.posts] == [False, True]
