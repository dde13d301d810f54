"""Servers with many tools: found by search, called under their own names and rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_mcp import OURS, agent_with, notices, offered, result, turn
from tests.support.agents import Yes
from tests.support.provider import ScriptedProvider, call, say
from tests.tools.mcp.test_wild_server import wild
from tui.app.mcp_offers import tools_of
from tui.core import facts
from tui.core.config import Config
from tui.core.messages import Block, text_of
from tui.permissions.gate import Gate
from tui.permissions.policy import Policy

pytestmark = pytest.mark.slow

MANY: list[Block] = [
    {
        "type": "tool_use",
        "id": "toolu_2",
        "name": "call_tool",
        "input": {"name": "mcp__many__fine", "input": {}},
    }
]
BY_SEARCH = Config(tool_search_tokens=0)


def listed(provider: ScriptedProvider, request: int = -1) -> set[str]:
    return {str(tool["name"]) for tool in provider.requests[request].tools}


def calling(tool: str, id_: str, **given: Any) -> list[Block]:
    made = {"name": f"mcp__odd__{tool}", "input": given}
    return [{"type": "tool_use", "id": id_, "name": "call_tool", "input": made}]


async def test_three_thousand_tools_take_no_room_and_are_found_and_called(tmp_path: Path):
    provider = ScriptedProvider(
        [call("search_tools", id_="toolu_1", query="t2345")],
        MANY,
        say("done"),
    )
    configured = {"many": wild("3000"), "odd": OURS}
    async with agent_with(tmp_path, provider, configured, approver=Yes()) as agent:
        told = await turn(agent, "go")
        many, odd = agent.mcp.all
        assert tools_of(agent, many) == "3,017 tools, by search"
        assert tools_of(agent, odd) == f"{len(odd.tools)} tools"
        assert all("mcp__odd__echo" in offered(provider, n) for n in range(3))
        assert not any(name.startswith("mcp__many__") for name in offered(provider))
        assert {"search_tools", "call_tool"} <= listed(provider)
        assert provider.requests[0].tools == provider.requests[2].tools
        (words,) = notices(told)
        assert words.startswith("MCP server many: its 3,017 tools would take ")
        assert words.endswith("finds them by search (tool_search_tokens).")
        results = [r.data for r in agent.session.records if r.type == "tool_result"]
        assert "mcp__many__t2345" in text_of(results[0]["content"])
        assert text_of(results[1]["content"]) == "fine"


async def test_a_call_has_the_rules_the_name_and_the_records_of_the_tool(tmp_path: Path):
    provider = ScriptedProvider(
        calling("echo", "toolu_1", text="grüß"),
        say("done"),
        calling("echo", "toolu_2", text="a secret"),
        say("denied"),
    )
    gate = Gate(Policy.of(allow=["mcp__odd__*"], deny=["mcp__odd__echo(*secret*)"]))
    options = {"config": BY_SEARCH, "gate": gate}
    async with agent_with(tmp_path, provider, {"odd": OURS}, **options) as agent:
        told = await turn(agent, "go")
        assert offered(provider) == []
        started = next(e for e in told if isinstance(e, facts.ToolStarted))
        assert (started.name, started.input) == ("mcp__odd__echo", {"text": "grüß"})
        (finished,) = (e for e in told if isinstance(e, facts.ToolFinished))
        assert (finished.name, finished.is_error) == ("mcp__odd__echo", False)
        (intent,) = (r.data for r in agent.session.records if r.type == "intent")
        assert (intent["tool"], intent["effect"]) == ("mcp__odd__echo", "run")
        (asked,) = (r.data for r in agent.session.records if r.type == "permission")
        assert asked["tool"] == "mcp__odd__echo"
        block = provider.requests[1].messages[-2]["content"][-1]
        assert block["name"] == "call_tool"  # what the model wrote goes back as it came
        await turn(agent, "again")
        assert "Denied by the rule mcp__odd__echo(*secret*)." in text_of(result(agent)["content"])


async def test_what_is_not_there_or_switched_off_says_so(tmp_path: Path):
    missing, off = calling("nothing", "toolu_1"), calling("echo", "toolu_2", text="x")
    provider = ScriptedProvider(missing, off, say("done"))
    options = {"config": BY_SEARCH, "approver": Yes()}
    async with agent_with(tmp_path, provider, {"odd": OURS}, **options) as agent:
        (server,) = agent.mcp.all
        await server.connection.settled()
        agent.mcp.switch_tool(server, "echo", on=False)
        await turn(agent, "go")
        texts = [
            text_of(r.data["content"]) for r in agent.session.records if r.type == "tool_result"
        ]
        assert all("There is no tool named" in text for text in texts)
        assert len(texts) == 2
        tool = next(one for one in server.tools if one.own_name == "fail")
        price = await agent.mcp.price_of_switch(tool)
        assert (price.text, price.reload) == ("the model finds it by search only, at no cost", "")


async def test_tools_that_requests_list_already_stay_there(tmp_path: Path):
    provider = ScriptedProvider(say("one"), [call("mcp__odd__grow")], say("two"), say("three"))
    options = {"approver": Yes()}
    async with agent_with(tmp_path, provider, {"odd": OURS}, **options) as agent:
        await turn(agent, "go")
        before = provider.requests[0].tools
        session = agent.session
    less = {"config": BY_SEARCH, "approver": Yes(), "session": session}
    async with agent_with(tmp_path, provider, {"odd": OURS}, **less) as agent:
        await turn(agent, "grow")
        assert provider.requests[-1].tools == before
        assert not any(r.type == "break" for r in session.records)
