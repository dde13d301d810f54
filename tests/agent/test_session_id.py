"""The session's id, where its processes and servers are told it: each time the right one."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.support.agents import Yes, events_of, make_agent
from tests.support.call_host import FakeHost
from tests.support.clock import PATIENCE_S
from tests.support.http_apps import HeaderGate, serving
from tests.support.provider import ScriptedProvider, call, say
from tests.tools.mcp.session_server import server as over_http
from tui.agent.agent import Agent
from tui.app import user_shell
from tui.core.clock import SystemClock
from tui.core.config import McpServer
from tui.core.messages import text_of
from tui.core.otlp import SpanContext
from tui.session.records import Record
from tui.session.session import Session
from tui.settings import hook_files
from tui.tools.mcp import Servers

ROOT = Path(__file__).parents[2]
STDIO = McpServer(
    command=(sys.executable, "-m", "tests.tools.mcp.session_server"),
    env={"MINE": "of ${HOLDFAST_SESSION_ID}"},
)
SPAN = SpanContext("c1" * 16, "d2" * 8).traceparent
ECHO = "echo $HOLDFAST_SESSION_ID $CLAUDE_CODE_SESSION_ID"


class Spans:
    """Makes spans that are named by their calls."""

    prompt_fields: Mapping[str, str] = MappingProxyType({})

    def recorded(self, record: Record) -> None:
        pass

    def of_sub_agent(self, session: Session) -> Spans:
        return self

    def traceparent(self, call_id: str) -> str:
        return f"of {call_id or 'turn'}"


@pytest.fixture(autouse=True)
def _around(monkeypatch: pytest.MonkeyPatch) -> None:
    """The id of a session around this one, which must not get through."""
    monkeypatch.setenv("HOLDFAST_SESSION_ID", "theirs")
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "theirs")


def results(agent: Agent) -> list[str]:
    found = (one.data for one in agent.session.records if one.type == "tool_result")
    return [text_of(one["content"]) for one in found]


async def test_commands_jobs_and_the_persons_own_have_it(tmp_path: Path) -> None:
    provider = ScriptedProvider([call("run_command", "1", command=f"{ECHO}; true")], say("ok"))
    agent = make_agent(tmp_path, provider, approver=Yes())
    await events_of(agent, "go")
    assert results(agent)[0].startswith(f"{agent.session.id} {agent.session.id}\n")
    own = await user_shell.run(
        ECHO, tmp_path, SystemClock(), lambda _: None, keeping=agent.jobs.output
    )
    assert f"{agent.session.id} {agent.session.id}" in own
    await agent.close()


async def test_hooks_have_the_id_that_they_are_given(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    line = f"cat > {seen}.json; {ECHO} > {seen}"
    hooks = {"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": line}]}]}}
    (tmp_path / "hooks.json").write_text(json.dumps(hooks))

    def find() -> hook_files.Hooks:
        return hook_files.load([tmp_path / "hooks.json"])

    agent = make_agent(tmp_path, ScriptedProvider(say("ok")), find_hooks=find)
    await events_of(agent, "go")
    given = json.loads(Path(f"{seen}.json").read_text())["session_id"]
    assert seen.read_text().split() == [given, given] == [agent.session.id] * 2
    await agent.close()


async def test_hooks_continue_the_span_of_what_they_are_about(tmp_path: Path) -> None:
    line = f"echo $HOLDFAST_SESSION_ID $TRACEPARENT >> {tmp_path / 'seen'}"
    run = [{"hooks": [{"type": "command", "command": line}]}]
    (tmp_path / "hooks.json").write_text(json.dumps({"hooks": {"PreToolUse": run, "Stop": run}}))
    answers = [[call("list_dir", "c1", path=".")], say("ok")]
    agent = make_agent(
        tmp_path,
        ScriptedProvider(*answers),
        find_hooks=lambda: hook_files.load([tmp_path / "hooks.json"]),
    )
    agent.session.follower = Spans()
    await events_of(agent, "go")
    lines = (tmp_path / "seen").read_text().splitlines()
    assert lines == [f"{agent.session.id} of c1", f"{agent.session.id} of turn"]
    await agent.close()


async def called(tmp_path: Path, config: McpServer, session: str) -> Any:
    """What the server says of a session to an agent that has it, and to whoever shares it."""
    servers = Servers({"one": config}, cwd=ROOT, log_folder=tmp_path, session=session)
    servers.start()
    try:
        async with asyncio.timeout(PATIENCE_S):
            await servers.settled()
            (one,) = servers.all
            assert one.state == "ready", one.detail
            host = FakeHost(session="of the call", span=SPAN)
            said = json.loads(text_of((await one.calls.call("session", {}, host)).content))
            read = text_of((await one.calls.read_resource("session://now", host)).content)
            (prompt,) = one.prompts
            assert json.loads(read.splitlines()[-1])[1] == "of the call"
            assert await one.calls.prompt_text(prompt, "", "of the person") == '"of the person"'
            return said
    finally:
        await asyncio.wait_for(servers.close(), PATIENCE_S)


@pytest.mark.slow
async def test_a_servers_process_has_it_and_each_request_says_it(tmp_path: Path) -> None:
    assert await called(tmp_path, STDIO, "a1") == ["a1", "a1", "of a1", "of the call", SPAN]


@pytest.mark.slow
async def test_a_server_of_several_sessions_has_none_but_each_request(tmp_path: Path) -> None:
    said = await called(tmp_path, STDIO, "")
    assert said == [None, None, "of ", "of the call", SPAN]


@pytest.mark.slow
async def test_over_http_requests_say_it_and_a_header_may(tmp_path: Path) -> None:
    gate = HeaderGate(over_http.streamable_http_app(), "x-session", "a1")
    async with serving(gate) as url:
        far = McpServer(url=f"{url}/mcp", headers={"X-Session": "${HOLDFAST_SESSION_ID}"})
        assert (await called(tmp_path, far, "a1"))[3:] == ["of the call", SPAN]
