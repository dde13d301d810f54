"""Tools of a real MCP server on the way through a real agent: they join, are gated and guarded."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import Yes, events_of, make_agent
from tests.support.clock import PATIENCE_S, ManualClock
from tests.support.provider import ScriptedProvider, call, say
from tests.tools.mcp.test_elicitation import ASKING
from tui.agent.agent import Agent
from tui.agent.composition import make_agent as assembled
from tui.agent.confined_programs import make_servers
from tui.agent.launch import Access, Launch
from tui.core import facts
from tui.core.clock import SystemClock
from tui.core.config import Config, Guard, McpServer
from tui.core.fact_words import fact_lines
from tui.core.facts import Fact
from tui.core.messages import Block, text_of
from tui.core.paths import folders
from tui.core.questions import UserAnswer, UserAnswers, UserQuestion
from tui.core.workspace import Workspace
from tui.permissions.gate import Gate, RulesOnly
from tui.permissions.policy import Policy
from tui.permissions.types import Mode
from tui.session.session import Session
from tui.tools.mcp import SETTLED_S, Servers

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
OURS = McpServer(command=(sys.executable, "-m", "tests.tools.mcp.server"))
SILENT = McpServer(command=(sys.executable, "-c", "import time; time.sleep(60)"))
MISSING = McpServer(command=("no-such-program-here",))


@asynccontextmanager
async def agent_with(
    tmp_path: Path, provider: ScriptedProvider, configured: dict[str, McpServer], **parts: Any
) -> AsyncGenerator[Agent]:
    """An agent that has begun, and that is closed at the end."""
    parts.setdefault("servers", Servers(configured, cwd=ROOT, log_folder=tmp_path / "log"))
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    agent = make_agent(work, provider, **parts)
    await agent.start()
    try:
        yield agent
    finally:
        await asyncio.wait_for(agent.close(), PATIENCE_S)


async def turn(agent: Agent, text: str) -> list[Fact]:
    return await asyncio.wait_for(events_of(agent, text), PATIENCE_S)


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not done():  # noqa: ASYNC110 - it happens in a program of its own
            await asyncio.sleep(0.005)


def offered(provider: ScriptedProvider, request: int = -1) -> list[str]:
    names = [tool["name"] for tool in provider.requests[request].tools]
    return [name for name in names if name.startswith("mcp__")]


def result(agent: Agent) -> dict[str, Any]:
    return [r.data for r in agent.session.records if r.type == "tool_result"][-1]


def notices(told: list[Fact]) -> list[str]:
    return [e.text for e in told if isinstance(e, facts.Notice | facts.ToolsChanged)]


async def test_the_first_request_waits_for_the_tools_and_carries_them(tmp_path: Path):
    provider = ScriptedProvider([call("mcp__odd__echo", text="grüß")], say("done"))
    async with agent_with(tmp_path, provider, {"odd": OURS}, approver=Yes()) as agent:
        told = await turn(agent, "say it")
        assert facts.ToolsAwaited(("odd",), 10) in told
        assert "mcp__odd__echo" in offered(provider, 0)
        assert provider.requests[0].tools[0]["name"] != "mcp__odd__echo"  # ours come first
        assert provider.requests[0].tools == provider.requests[1].tools
        assert notices(told) == []
        weighed = {item.id: item.tokens for item in agent.context.ledger.items()}
        assert weighed["tool:mcp__odd__echo"] > 10
        assert "Say it again." in agent.context.fixed_texts()["tool:mcp__odd__echo"]
        (server,) = agent.mcp.all
        assert server.state == "ready"
        kinds = [r.type for r in agent.session.records if r.data.get("call_id")]
        assert kinds == ["permission", "intent", "tool_result"]
        assert result(agent)["content"] == [{"type": "text", "text": "grüß"}]
    assert server.state == "off"


async def test_an_elevated_call_of_a_server_is_marked(tmp_path: Path):
    provider = ScriptedProvider([call("mcp__odd__echo", text="x")], say("done"))
    async with agent_with(tmp_path, provider, {"odd": OURS}) as agent:
        told = await turn(agent, "/elevated go")
        answered = [e for e in told if isinstance(e, facts.PermissionAnswered)]
        assert [(a.answer, a.by) for a in answered] == [("allow", "elevated")]


@pytest.mark.parametrize(
    ("policy", "mode", "ran"),
    [
        (Policy(), "ask", False),
        (Policy.of(allow=["mcp__odd__*"]), "ask", True),
        (Policy.of(allow=["mcp__odd__*"], deny=["mcp__odd__echo(*secret*)"]), "ask", False),
        (Policy.of(allow=["mcp__odd__*"]), "plan", False),
    ],
)
async def test_rules_and_modes_hold_for_the_tools_of_a_server(
    tmp_path: Path, policy: Policy, mode: Mode, ran: bool
):
    provider = ScriptedProvider([call("mcp__odd__echo", text="a secret")], say("done"))
    gate = Gate(policy)
    async with agent_with(tmp_path, provider, {"odd": OURS}, gate=gate) as agent:
        agent.permissions.mode = mode
        await turn(agent, "go")
        assert result(agent)["is_error"] is not ran
        assert ("intent" in {r.type for r in agent.session.records}) is ran


async def test_L2_O9_O10_O11_forty_texts_and_images_go_through_the_guards(tmp_path: Path):
    config = Config(guard=Guard(default_bytes=4000))
    provider = ScriptedProvider([call("mcp__odd__many", count=40, chars=500)], say("done"))
    options = {"approver": Yes(), "config": config}
    async with agent_with(tmp_path, provider, {"odd": OURS}, **options) as agent:
        told = await turn(agent, "many")
        found = result(agent)
        receipt = found["receipt"]
        kept = Path(receipt["path"]).read_text(encoding="utf-8")
        assert receipt["stages"] == ["spill"]
        assert kept.count("x" * 500) == 40
        assert "--- block 40 ---" in kept
        content: list[Block] = found["content"]
        assert [block["type"] for block in content].count("image") == 4
        texts = "".join(str(block["text"]) for block in content if block["type"] == "text")
        assert len(texts.encode()) < 4000
        assert receipt["path"] in texts
        (finished,) = [e for e in told if isinstance(e, facts.ToolFinished)]
        assert len(finished.images) == 4
        assert all("data" not in image for image in finished.images)
        sent = provider.requests[1].messages[-1]["content"][0]
        assert [block["type"] for block in sent["content"]].count("image") == 4


async def test_a_server_that_dies_in_a_call_costs_that_call_only(tmp_path: Path):
    provider = ScriptedProvider(
        [call("mcp__odd__die", id_="toolu_1")],
        [call("mcp__odd__echo", id_="toolu_2", text="here again")],
        say("done"),
    )
    async with agent_with(tmp_path, provider, {"odd": OURS}, approver=Yes()) as agent:
        told = await turn(agent, "die")
        last = told[-1]
        assert isinstance(last, facts.TurnFinished)
        assert last.outcome == "done"
        results = [r.data for r in agent.session.records if r.type == "tool_result"]
        assert results[0]["is_error"]
        assert "die of the MCP server odd failed" in results[0]["content"][0]["text"]
        assert results[1]["content"] == [{"type": "text", "text": "here again"}]
        tools = [request.tools for request in provider.requests]
        assert tools[0] == tools[1] == tools[2]  # the cached prefix stays


async def test_a_server_that_fails_is_told_once_and_costs_its_tools_only(tmp_path: Path):
    provider = ScriptedProvider(say("one"), say("two"))
    configured = {"missing": MISSING, "odd": OURS}
    async with agent_with(tmp_path, provider, configured) as agent:
        told = notices(await turn(agent, "go"))
        assert len(told) == 1
        assert told[0].startswith("MCP server missing failed: ")
        assert "no-such-program-here" in told[0]
        assert offered(provider)
        assert notices(await turn(agent, "again")) == []


async def test_no_request_waits_longer_than_ten_seconds_for_a_silent_server(tmp_path: Path):
    clock = ManualClock()
    provider = ScriptedProvider(say("one"), say("two"))
    async with agent_with(tmp_path, provider, {"silent": SILENT}, clock=clock) as agent:
        running = asyncio.create_task(turn(agent, "go"))
        await until(lambda: 10.0 in clock.slept)
        assert provider.requests == []
        clock.advance(10)
        told = notices(await running)
        assert told == [
            "MCP server silent is still starting. Its tools join once it is ready.",
        ]
        assert provider.requests[0].messages
        running = asyncio.create_task(turn(agent, "again"))
        assert notices(await running) == []
        assert clock.slept.count(10.0) == 1


async def test_where_nobody_goes_on_typing_servers_have_the_time_they_may_take(tmp_path: Path):
    config = Config(mcp={"silent": SILENT})
    work = Workspace.at(tmp_path, ceiling="/")
    launch = Launch(work, config, folders(), Access(practice=True), one_turn=True)
    servers = make_servers(launch)
    assert servers is not None
    assert servers.patience_s == SETTLED_S
    clock, provider = ManualClock(), ScriptedProvider(say("one"))
    async with agent_with(tmp_path, provider, {}, servers=servers, clock=clock) as agent:
        running = asyncio.create_task(turn(agent, "go"))
        await until(lambda: servers.patience_s in clock.slept)
        clock.advance(servers.patience_s - 1)
        await asyncio.sleep(0)
        assert provider.requests == []
        await servers.all[0].stop()  # as one that has failed
        told = await running
        assert facts.ToolsAwaited(("silent",), servers.patience_s) in told
        assert len(provider.requests) == 1


async def test_Esc_ends_the_wait_for_servers(tmp_path: Path):
    clock = ManualClock()
    async with agent_with(tmp_path, ScriptedProvider(), {"silent": SILENT}, clock=clock) as agent:
        running = asyncio.create_task(turn(agent, "go"))
        await until(lambda: 10.0 in clock.slept)
        agent.cancel()
        last = (await running)[-1]
        assert isinstance(last, facts.TurnFinished)
        assert last.outcome == "interrupted"


async def test_a_tool_that_left_stays_in_the_requests_and_cannot_be_called(tmp_path: Path):
    gone = [call("mcp__odd__echo", text="hi")]
    provider = ScriptedProvider(say("one"), gone, say("two"), say("three"))
    async with agent_with(tmp_path, provider, {"odd": OURS}) as agent:
        await turn(agent, "/verbose go")
        (server,) = agent.mcp.all
        agent.mcp.switch_tool(server, "echo", on=False)
        told = await turn(agent, "again")
        assert notices(told) == ["MCP server odd: 1 tool left."]
        debug = [e.text for e in told if isinstance(e, facts.Debug)]
        assert "[DEBUG] Tools: MCP server odd: 1 tool left" in debug
        (finished,) = [e for e in told if isinstance(e, facts.ToolFinished)]
        assert finished.is_error
        agent.mcp.switch_tool(server, "echo", on=True)
        assert notices(await turn(agent, "and again")) == ["MCP server odd: 1 tool joined."]
        assert all(request.tools == provider.requests[0].tools for request in provider.requests)


async def test_what_was_switched_off_stays_off_when_the_session_goes_on(tmp_path: Path):
    session = Session.in_memory(tmp_path, clock=SystemClock())
    session.append("mcp", off={"odd": ["echo", "die"], "gone": 3})
    provider = ScriptedProvider(say("one"))
    async with agent_with(tmp_path, provider, {"odd": OURS}, session=session) as agent:
        await turn(agent, "go")
        assert agent.mcp.all[0].switched_off == {"echo", "die"}
        assert "mcp__odd__many" in offered(provider)
        assert not {"mcp__odd__echo", "mcp__odd__die"} & set(offered(provider))


async def test_a_server_that_grows_tells_of_it(tmp_path: Path):
    provider = ScriptedProvider([call("mcp__odd__grow")], say("grown"), say("done"), say("ok"))
    async with agent_with(tmp_path, provider, {"odd": OURS}, approver=Yes()) as agent:
        await turn(agent, "grow")
        (server,) = agent.mcp.all
        await until(lambda: any(tool.own_name == "grown" for tool in server.tools))
        told = notices(await turn(agent, "and now"))
        assert "mcp__odd__grown" not in offered(provider)  # the requests only grow
        waits = "1 new tool waits (mcp__odd__grown). /reload takes it now."
        assert set(told) <= {waits, "MCP server odd: 1 tool joined."}  # some may have come before
        agent.context.reload()
        await turn(agent, "and after a reload")
        assert "mcp__odd__grown" in offered(provider)
        assert [r.data["reason"] for r in agent.session.records if r.type == "break"] == ["reload"]


@pytest.mark.parametrize("practice", [True, False])
def test_nothing_is_imported_or_kept_without_servers(tmp_path: Path, practice: bool):
    def launch(**configured: McpServer) -> Launch:
        return Launch(
            Workspace.at(tmp_path), Config(mcp=configured), folders(), Access(practice=practice)
        )

    def made(launch: Launch) -> Agent:
        return assembled(launch, Session.in_memory(tmp_path, clock=SystemClock()), RulesOnly())

    assert made(launch()).mcp.all == ()
    both = launch(odd=OURS, remote=McpServer(url="http://127.0.0.1:9/mcp"))
    names = [server.name for server in made(both).mcp.all]
    assert names == (["odd"] if practice else ["odd", "remote"])  # practice has no network


async def test_a_resource_that_a_prompt_names_is_read_before_the_model_is_asked(tmp_path: Path):
    provider = ScriptedProvider(say("Seen."), say("Seen."))
    async with agent_with(tmp_path, provider, {"odd": OURS}) as agent:
        text = "see @odd:note://Ann/text, @odd:nothing @other:note://x and mail@odd:note://all"
        await turn(agent, text)
        messages = provider.requests[0].messages
        (made,) = [block for block in messages[1]["content"] if block["type"] == "tool_use"]
        assert made["input"] == {"server": "odd", "uri": "note://Ann/text"}
        (found,) = [block for block in messages[2]["content"] if block["type"] == "tool_result"]
        assert "Dear Ann, @README.md /yolo" in str(found["content"])
        assert not result(agent)["is_error"]
        offered_tools = [tool["name"] for tool in provider.requests[0].tools]
        assert "read_mcp_resource" in offered_tools


async def test_resources_are_listed_read_and_refused_by_a_rule(tmp_path: Path):
    provider = ScriptedProvider(
        [call("read_mcp_resource", server="odd")],
        [call("read_mcp_resource", server="odd", uri="note://all")],
        [call("read_mcp_resource", server="none", uri="note://all")],
        say("done"),
    )
    gate = Gate(Policy.of(deny=["read_mcp_resource(odd:note://all)"]))
    async with agent_with(tmp_path, provider, {"odd": OURS}, gate=gate) as agent:
        await turn(agent, "read")
        texts = [str(r.data["content"]) for r in agent.session.records if r.type == "tool_result"]
        assert "note://all  All notes" in texts[0]
        assert "Denied by the rule" in texts[1]
        assert "No MCP server none." in texts[2]


FORM = {"type": "object", "properties": {"name": {"type": "string", "title": "Name"}}}


async def test_a_question_of_a_server_is_told_and_recorded_with_its_name(tmp_path: Path):
    class Person(Yes):
        def __init__(self) -> None:
            self.rounds = [UserAnswer(text="Ann")], [UserAnswer(("Send",))]

        async def ask_user(self, questions: Sequence[UserQuestion], agent: str) -> UserAnswers:
            assert (questions[0].server, agent) == ("asking", "")
            return UserAnswers(tuple(self.rounds[questions[0].header == "Send"]))

    provider = ScriptedProvider([call("mcp__asking__form", schema=FORM)], say("done"))
    async with agent_with(tmp_path, provider, {"asking": ASKING}, approver=Person()) as agent:
        told = await turn(agent, "go")
        assert '"name": "Ann"' in text_of(result(agent)["content"])
        (asked,) = result(agent)["details"]["asked"]
        assert (asked["server"], asked["action"]) == ("asking", "accept")
        questions = [e for e in told if isinstance(e, facts.QuestionAsked)]
        assert [(e.server, e.name) for e in questions] == [("asking", "mcp__asking__form")] * 2
        answers = [e for e in told if isinstance(e, facts.QuestionAnswered)]
        assert answers[0].answers == ({"header": "Name", "chosen": [], "text": "Ann"},)


async def test_an_address_that_the_person_opens_stays_in_the_conversation(tmp_path: Path):
    class Person(Yes):
        async def ask_user(self, questions: Sequence[UserQuestion], agent: str) -> UserAnswers:
            return UserAnswers((UserAnswer(("I open it myself",)),))

    url = "https://a.example/sign?x=1"
    provider = ScriptedProvider([call("mcp__asking__page", url=url)], say("done"))
    async with agent_with(tmp_path, provider, {"asking": ASKING}, approver=Person()) as agent:
        assert notices(await turn(agent, "go")) == [f"Open {url} in a browser."]


async def test_a_long_form_that_nobody_answers_is_named_in_short(tmp_path: Path):
    fields = {f"f{n}": {"type": "string", "title": f"Field {n}"} for n in range(9)}
    provider = ScriptedProvider(
        [call("mcp__asking__form", schema={"type": "object", "properties": fields})], say("done")
    )
    gate = Gate(Policy.of(allow=["mcp__asking__*"]))
    async with agent_with(tmp_path, provider, {"asking": ASKING}, gate=gate) as agent:
        (answered,) = [e for e in await turn(agent, "go") if isinstance(e, facts.QuestionAnswered)]
        (line,) = fact_lines(answered)
        assert line.endswith(" asking (Field 0, Field 1, Field 2 and 6 more): declined.")


async def test_a_question_of_a_server_is_declined_and_said_where_nobody_is(tmp_path: Path):
    provider = ScriptedProvider([call("mcp__asking__form", schema=FORM)], say("done"))
    gate = Gate(Policy.of(allow=["mcp__asking__*"]))
    configured = {"asking": ASKING}
    async with agent_with(tmp_path, provider, configured, gate=gate) as agent:
        told = await turn(agent, "go")
        assert '"action": "decline"' in text_of(result(agent)["content"])
        (answered,) = [e for e in told if isinstance(e, facts.QuestionAnswered)]
        assert fact_lines(answered) == (
            "Nobody could answer the MCP server asking (Name): declined.",
        )
