"""What only the API's own servers know: asked of them, said in words, and left out elsewhere."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import events_of, make_agent
from tests.support.clock import PATIENCE_S, FakeClock
from tests.support.provider import ScriptedProvider
from tests.support.server import LoopbackServer
from tests.support.server_binding import BINDING
from tests.support.server_script import Json
from tui.agent import answer_reports
from tui.agent.agent import Agent
from tui.agent.prompts import parse
from tui.context.notices import THINK_ON
from tui.context.request_replay import RequestReplay
from tui.core import facts
from tui.core.clock import SystemClock
from tui.core.config import Config, Thinking
from tui.core.fact_words import request_line
from tui.core.facts import Fact, Overlay
from tui.provider import catalogue
from tui.provider.anthropic import AnthropicProvider

SONNET, OLD = "claude-sonnet-5-5", "claude-sonnet-5"
UPDATES = "thinking-display-updates-2026-08-18"


@asynccontextmanager
async def talking(
    root: Path, *, model: str = SONNET, first_party: bool = True, **script: Any
) -> AsyncGenerator[tuple[Agent, LoopbackServer]]:
    parts = {name: script.pop(name) for name in ("config", "cache_life") if name in script}
    turns = [{"thinking": f"t{n}", "text": f"answer {n}"} for n in range(9)]
    played = {"turns": turns, "catalogue": True, "priced": True, **script}
    async with LoopbackServer(played) as server:
        provider = AnthropicProvider(api_key="k", clock=SystemClock(), base_url=server.url)
        info = catalogue.model_info(model)
        agent = make_agent(root, provider, model=info, first_party=first_party, **parts)
        await agent.start()
        try:
            yield agent, server
        finally:
            await asyncio.wait_for(agent.close(), PATIENCE_S)


async def turn(agent: Agent, prompt: str) -> list[Fact]:
    return await asyncio.wait_for(events_of(agent, prompt), PATIENCE_S)


def bodies(server: LoopbackServer) -> list[Json]:
    return [post.body for post in server.posts]


async def test_the_server_is_told_which_answer_a_request_goes_on_from(tmp_path: Path) -> None:
    async with talking(tmp_path) as (agent, server):
        await turn(agent, "one")
        seen = await turn(agent, "two")
        asked = [body["diagnostics"] for body in bodies(server)]
        assert asked == [{"previous_message_id": None}, {"previous_message_id": "msg_0000"}]
        (said,) = [e for e in seen if isinstance(e, facts.RequestExtended)]
        assert (said.n, said.last, said.broken, said.cache_miss) == (2, 1, "", "")
        assert "extends #1 ✓ · cache " in request_line(said)
        assert all(BINDING in post.headers["anthropic-beta"] for post in server.posts)


async def test_other_servers_see_none_of_it(tmp_path: Path) -> None:
    async with talking(tmp_path, first_party=False) as (agent, server):
        await turn(agent, "one")
        (post,) = server.posts
        assert "diagnostics" not in post.body
        assert "anthropic-beta" not in post.headers
        assert "ttl" not in str(post.body)


@pytest.mark.parametrize(
    ("lacks", "feature"),
    [("diagnostics", "diagnostics"), (BINDING, "binding_reports"), (UPDATES, "updates")],
)
async def test_what_a_gateway_refuses_is_left_out_from_then_on(
    tmp_path: Path, lacks: str, feature: str
) -> None:
    config = Config(thinking=Thinking(display="updates"))
    async with talking(tmp_path, lacks=[lacks], config=config) as (agent, server):
        seen = await turn(agent, "one")
        assert isinstance(seen[-1], facts.TurnFinished)
        assert seen[-1].outcome == "done"
        await turn(agent, "two")
        assert len(server.posts) == 3
        first, second, _ = server.posts
        assert (first.body, first.headers["anthropic-beta"]) != (
            second.body,
            second.headers.get("anthropic-beta"),
        )
        found = [r.data["feature"] for r in agent.session.records if r.type == "feature"]
        assert found == [feature]


async def test_what_is_refused_within_an_answer_is_left_out_too(tmp_path: Path) -> None:
    words = "messages.0.content.0.cache_control: Extra inputs are not permitted"
    fault = {"error_event": {"type": "invalid_request_error", "message": words}, "after": 3}
    async with talking(tmp_path, turns=[{"text": "one", "faults": [fault]}]) as (agent, server):
        seen = await turn(agent, "one")
        assert isinstance(seen[-1], facts.TurnFinished)
        assert seen[-1].outcome == "done"
        first, second = bodies(server)
        assert "cache_control" in str(first)
        assert "cache_control" not in str(second)
        found = [r.data["feature"] for r in agent.session.records if r.type == "feature"]
        assert found == ["cache_marks"]


async def test_everything_at_once_is_refused_and_still_answered(tmp_path: Path) -> None:
    config = Config(thinking=Thinking(display="updates"))
    lacks = ["diagnostics", BINDING, UPDATES]
    async with talking(tmp_path, lacks=lacks, config=config) as (agent, server):
        seen = await turn(agent, "one")
        assert isinstance(seen[-1], facts.TurnFinished)
        assert seen[-1].outcome == "done"
        assert len(server.posts) == 4


async def test_all_marks_have_one_life_and_it_stays_with_the_session(tmp_path: Path) -> None:
    async with talking(tmp_path, cache_life="1h") as (agent, server):
        await turn(agent, "one")
        await turn(agent, "two")
        for body in bodies(server):
            blocks = [*body["system"], *(b for m in body["messages"] for b in m["content"])]
            marks = [block["cache_control"] for block in blocks if "cache_control" in block]
            assert len(marks) > 1
            assert all(mark == {"type": "ephemeral", "ttl": "1h"} for mark in marks)
        assert await agent.context.reload_cost() is None  # it would say the same


async def test_a_gateway_without_an_hour_gets_five_minutes(tmp_path: Path) -> None:
    async with talking(tmp_path, cache_life="1h", lacks=["ttl"]) as (agent, server):
        seen = await turn(agent, "one")
        assert isinstance(seen[-1], facts.TurnFinished)
        assert seen[-1].outcome == "done"
        assert "ttl" not in str(bodies(server)[-1])


async def test_a_gateway_without_cache_marks_gets_none(tmp_path: Path) -> None:
    async with talking(tmp_path, lacks=["cache_control"]) as (agent, server):
        seen = await turn(agent, "one")
        assert isinstance(seen[-1], facts.TurnFinished)
        assert seen[-1].outcome == "done"
        (said,) = [e.text for e in seen if isinstance(e, facts.Notice)]
        assert said == (
            "The server doesn't support cache marks. Sending the request again without that."
        )
        await turn(agent, "two")
        assert ["cache_control" in str(body) for body in bodies(server)] == [True, False, False]
        assert breaks(seen) == []
        replay = RequestReplay(agent.session.records)
        assert [one.problem for one in replay.every()] == ["", "", ""]
        assert [one.request and "cache_control" in str(one.request) for one in replay.every()] == [
            True,
            False,
            False,
        ]


async def test_a_gateway_without_adaptive_thinking_is_asked_without(tmp_path: Path) -> None:
    async with talking(tmp_path, lacks=["thinking_type"]) as (agent, server):
        seen = await turn(agent, "/think one")
        assert isinstance(seen[-1], facts.TurnFinished)
        assert seen[-1].outcome == "done"
        assert ["thinking" in body for body in bodies(server)] == [True, False]
        assert breaks(seen) == []  # nothing was in the cache yet
        assert breaks(await turn(agent, "two")) == []
        assert "thinking" not in bodies(server)[-1]


async def test_a_field_of_the_frame_that_is_refused_later_is_a_break_with_its_price(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path) as (agent, server):
        await turn(agent, "one")
        server.script.lacks = ["thinking_type"]
        seen = await turn(agent, "two")
        assert isinstance(seen[-1], facts.TurnFinished)
        assert seen[-1].outcome == "done"
        told = [e for e in seen if isinstance(e, facts.ContextBroken) and e.billed_usd is None]
        assert [(e.reason, e.by) for e in told] == [("effort", "server")]


def levels(server: LoopbackServer) -> list[tuple[str | None, list[str]]]:
    """Of each request: the level that it asks for itself, and those within its messages."""
    return [
        (
            body.get("output_config", {}).get("effort"),
            [m["output_config"]["effort"] for m in body["messages"] if "output_config" in m],
        )
        for body in bodies(server)
    ]


def breaks(seen: list[Fact]) -> list[str]:
    told = [event for event in seen if isinstance(event, facts.ContextBroken)]
    return [event.reason for event in told if event.billed_usd is None]


async def test_an_effort_is_said_at_the_end_where_the_model_has_that(tmp_path: Path) -> None:
    async with talking(tmp_path) as (agent, server):
        await turn(agent, "one")
        assert agent.models.effort_cost("low") is None
        await agent.models.use_effort("low")
        seen = await turn(agent, "two")
        seen += await turn(agent, "/think three")
        seen += await turn(agent, "/think off four")
        assert levels(server) == [
            (None, []),
            (None, ["low"]),
            (None, ["low", "medium"]),
            (None, ["low", "medium", "low"]),
        ]
        assert breaks(seen) == []
        extended = [e for e in seen if isinstance(e, facts.RequestExtended)]
        assert [e.cache_miss for e in extended if e.cache_miss not in {"", "unavailable"}] == []
        shares = [e.cached / e.tokens for e in extended]
        assert min(shares) > 0.9


async def test_an_effort_has_a_price_where_the_model_has_it_for_all(tmp_path: Path) -> None:
    async with talking(tmp_path, model="claude-sonnet-5") as (agent, server):
        await turn(agent, "one")
        cost = agent.models.effort_cost("low")
        assert cost is not None
        assert (cost.reason, cost.by, cost.thoughts) == ("effort", "person", 0)
        assert agent.models.effort_cost("high") is None
        await agent.models.use_effort("low")
        assert breaks(await turn(agent, "two")) == ["effort"]
        assert breaks(await turn(agent, "three")) == []
        assert levels(server) == [(None, []), ("low", []), ("low", [])]


async def test_an_effort_waits_for_the_next_break(tmp_path: Path) -> None:
    async with talking(tmp_path, model="claude-sonnet-5") as (agent, server):
        await turn(agent, "one")
        await agent.models.use_effort("low", wait=True)
        assert (agent.models.effort, agent.models.effort_to_come) == ("high", "low")
        assert breaks(await turn(agent, "two")) == []
        assert breaks(await turn(agent, "/verbose three")) == []  # that is another choice
        assert (agent.models.effort, agent.models.effort_to_come) == ("high", "low")
        agent.context.reload()
        (tmp_path / "AGENTS.md").write_text("Be brief.")
        agent.session.append("break", reason="reload", by="program")
        assert breaks(await turn(agent, "four")) == ["reload"]  # one price, that of the break
        assert (agent.models.effort, agent.models.effort_to_come) == ("low", "")
        assert [level for level, _ in levels(server)] == [None, None, None, "low"]


async def test_an_effort_that_waits_survives_a_restart_and_is_taken_back(tmp_path: Path) -> None:
    async with talking(tmp_path, model="claude-sonnet-5") as (agent, server):
        await turn(agent, "one")
        await agent.models.use_effort("max", wait=True)
        again = make_agent(
            tmp_path, ScriptedProvider(), session=agent.session, model=catalogue.model_info(OLD)
        )
        assert (again.models.effort, again.models.effort_to_come) == ("high", "max")
        assert agent.models.effort_cost("high") is None
        await agent.models.use_effort("high")
        assert (agent.models.effort, agent.models.effort_to_come) == ("high", "")
        agent.session.append("break", reason="reload", by="program")
        await turn(agent, "two")
        assert [level for level, _ in levels(server)] == [None, None]


async def test_think_has_a_price_too_and_its_words_do_not_wait(tmp_path: Path) -> None:
    async with talking(tmp_path, model=OLD) as (agent, server):
        await turn(agent, "one")
        cost = agent.models.think_cost(True)
        assert cost is not None
        assert 0 < cost.tokens < 100  # the system prompt is read from the cache all the same
        assert agent.models.think_cost(False) is None
        told = agent.send(replace(parse("/think two"), waits=True))
        assert breaks([event async for event in told]) == []
        assert [level for level, _ in levels(server)] == [None, None]
        assert THINK_ON[:20] in str(bodies(server)[-1]["messages"])
        assert breaks(await turn(agent, "/think on three")) == ["effort"]
        assert levels(server)[-1] == ("xhigh", [])


async def test_think_costs_nothing_where_an_effort_can_be_said_at_the_end(tmp_path: Path) -> None:
    async with talking(tmp_path) as (agent, _):
        await turn(agent, "one")
        assert agent.models.think_cost(True) is None


async def test_thinking_that_is_switched_on_is_a_break_where_the_model_had_none(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path, model="claude-opus-4-8") as (agent, server):
        await turn(agent, "one")
        assert agent.models.think_cost(True) is not None
        assert breaks(await turn(agent, "/think two")) == ["effort"]
        assert ["thinking" in body for body in bodies(server)] == [False, True]


async def test_the_first_request_asks_for_the_configured_effort(tmp_path: Path) -> None:
    async with talking(tmp_path, config=Config(effort="xhigh")) as (agent, server):
        await turn(agent, "one")
        await turn(agent, "/effort max two")
        assert levels(server) == [("xhigh", []), ("xhigh", ["max"])]
        assert agent.directives.effort == "max"


async def test_a_level_that_the_model_lacks_is_not_asked_for(tmp_path: Path) -> None:
    config = Config(effort="xhigh")
    async with talking(tmp_path, model="claude-sonnet-4-6", config=config) as (agent, server):
        await turn(agent, "one")
        assert levels(server) == [(None, [])]


async def test_a_gateway_without_efforts_in_a_conversation_gets_one_for_all(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path, lacks=["message_effort"]) as (agent, server):
        await turn(agent, "one")
        await agent.models.use_effort("low")
        seen = await turn(agent, "two")
        assert isinstance(seen[-1], facts.TurnFinished)
        assert seen[-1].outcome == "done"
        assert levels(server) == [(None, []), (None, ["low"]), ("low", [])]


async def test_it_is_said_once_that_a_model_goes(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    clock = FakeClock()
    info = catalogue.model_info("claude-sonnet-4-5")
    agent = make_agent(tmp_path, provider, model=info, clock=clock)
    said = [e.text for e in await agent.start() if isinstance(e, facts.Notice)]
    assert said == ["claude-sonnet-4-5 retires on 2026-11-30. Choose another model with /model."]
    await agent.close()


async def test_a_refusal_says_why(tmp_path: Path) -> None:
    declined = {
        "text": "",
        "stop_reason": "refusal",
        "stop_details": {"type": "refusal", "category": "cyber", "explanation": "It scans ports."},
    }
    async with talking(tmp_path, turns=[declined]) as (agent, _):
        (error,) = [e for e in await turn(agent, "x") if isinstance(e, facts.ErrorRaised)]
        assert error.message == (
            "The model declined to answer (cyber: it may help to attack computers). It scans ports."
        )
        assert (error.category, error.explanation) == ("cyber", "It scans ports.")


async def test_what_became_of_the_requests_so_far(tmp_path: Path) -> None:
    async with talking(tmp_path) as (agent, _):
        records = agent.session.records
        assert answer_reports.past(records) == ["Nothing sent yet."]
        await turn(agent, "one")
        await turn(agent, "two")
        last, unbroken = answer_reports.past(agent.session.records)
        assert re.fullmatch(
            r"The last request, number 2, had [\d.]+k tokens, \d\d % from the cache\.", last
        )
        assert unbroken == "Every request so far extends the one before."
        first = next(record for record in agent.session.records if record.type == "user")
        await agent.context.overlay([Overlay(first.id, "masked", "person")])
        await turn(agent, "three")
        last, broken = answer_reports.past(agent.session.records)
        assert "number 3" in last
        assert broken == "The cache last restarted at request 3 (item hidden)."
