"""MCP against real servers: ours over stdio, and the published ones for time and git."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.call_host import FakeHost
from tests.support.clock import PATIENCE_S
from tui.core.config import McpServer
from tui.core.errors import ToolError
from tui.core.messages import ToolOutput, text_of
from tui.tools.mcp import Server, Servers
from tui.tools.mcp.tool import tool_name

ROOT = Path(__file__).parents[3]
OURS = McpServer(command=(sys.executable, "-m", "tests.tools.mcp.server"))


@asynccontextmanager
async def started(tmp_path: Path, **configured: McpServer) -> AsyncGenerator[Servers]:
    servers = Servers(configured, cwd=ROOT, log_folder=tmp_path / "log")
    servers.start()
    await asyncio.wait_for(servers.settled(), PATIENCE_S)
    try:
        yield servers
    finally:
        await asyncio.wait_for(servers.close(), PATIENCE_S)


async def call(server: Server, tool: str, **args: object) -> ToolOutput:
    return await asyncio.wait_for(server.calls.call(tool, dict(args), FakeHost()), PATIENCE_S)


async def test_a_server_lists_answers_fails_and_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    async with started(tmp_path, odd=OURS) as servers:
        (odd,) = servers.all
        assert (odd.state, odd.detail) == ("ready", "odd things 1.2")
        assert list(servers.tools()) == [
            f"mcp__odd__{name}"
            for name in ("die", "echo", "environment", "fail", "grow", "many", "slow")
        ]
        schema = servers.tools()["mcp__odd__echo"].schema()
        assert schema["description"] == "Say it again."
        assert schema["input_schema"]["required"] == ["text"]
        assert text_of((await call(odd, "echo", text="grüß")).content) == "grüß"

        many = await call(odd, "many", count=40, chars=3)
        kinds = [block["type"] for block in many.content]
        assert kinds.count("text") == 40
        assert kinds.count("image") == 4
        assert kinds[10] == "image"
        assert many.content[10]["source"]["media_type"] == "image/png"

        names = text_of((await call(odd, "environment")).content).split()
        assert "PATH" in names
        assert "ANTHROPIC_API_KEY" not in names
        assert "HOLDFAST_HOME" not in names

        failed = await call(odd, "fail")
        assert failed.is_error
        assert text_of(failed.content) == "Error executing tool fail"
        wrong = await call(odd, "echo", words=1)
        assert wrong.is_error

        told = asyncio.Event()
        host = FakeHost(on_output=told.set)
        waiting = asyncio.create_task(odd.calls.call("slow", {}, host))
        await asyncio.wait_for(told.wait(), PATIENCE_S)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert host.emitted[0] == "1 of 3 begun\n"

        with pytest.raises(ToolError, match="die of the MCP server odd failed"):
            await call(odd, "die")
        assert "dying now" in (tmp_path / "log" / "mcp-odd.log").read_text()
        again = await call(odd, "echo", text="back again")
        assert text_of(again.content) == "back again"

        odd.switched_off.add("echo")
        assert "mcp__odd__echo" not in servers.tools()
    assert odd.state == "off"
    assert servers.tools() == {}


async def test_a_server_that_cannot_start_says_why(tmp_path: Path):
    silent = McpServer(command=(sys.executable, "-c", "print('no protocol')"))
    missing = McpServer(command=("no-such-program-here",))
    nobody = McpServer(url="http://127.0.0.1:9/mcp")
    async with started(tmp_path, missing=missing, nobody=nobody, silent=silent) as servers:
        by_name = {server.name: server for server in servers.all}
        assert {server.state for server in servers.all} == {"failed"}
        assert "no-such-program-here" in by_name["missing"].detail
        assert by_name["nobody"].detail
        assert by_name["silent"].detail
        with pytest.raises(ToolError, match="The MCP server missing isn't running"):
            await call(by_name["missing"], "any")


async def test_the_published_time_server(tmp_path: Path):
    server = McpServer(command=(sys.executable, "-m", "mcp_server_time"))
    async with started(tmp_path, time=server) as servers:
        assert "mcp__time__get_current_time" in servers.tools()
        now = await call(servers.all[0], "get_current_time", timezone="Europe/Berlin")
        assert "Europe/Berlin" in text_of(now.content)


@pytest.mark.slow
async def test_the_published_git_server(tmp_path: Path):
    command = ["git", "init", "-q", str(tmp_path / "repo")]
    await asyncio.to_thread(subprocess.run, command, check=True)
    server = McpServer(command=(sys.executable, "-m", "mcp_server_git"))
    async with started(tmp_path, git=server) as servers:
        status = await call(servers.all[0], "git_status", repo_path=str(tmp_path / "repo"))
        assert "No commits yet" in text_of(status.content)


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("git", "git_status", "mcp__git__git_status"),
        ("my server", "a.b", "mcp__my_server__a_b_945b5944"),
    ],
)
def test_names_are_fit_for_the_api(server: str, tool: str, name: str):
    assert tool_name(server, tool) == name
    assert len(tool_name(server, tool * 40)) <= 64
    assert tool_name(server, tool * 40) != tool_name(server, tool * 41)
