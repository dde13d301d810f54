"""MCP servers in the sandbox: real ones, with each engine that this machine lets run."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import msgspec
import pytest

from tests.support.call_host import FakeHost
from tests.support.clock import PATIENCE_S
from tui.agent.confined_programs import McpSandbox
from tui.core.config import McpServer, SandboxSettings
from tui.core.messages import text_of
from tui.core.workspace import Workspace
from tui.permissions.sandbox.confinement import Confinement
from tui.tools.mcp import Server, Servers

SCRIPT = """
import pathlib
from mcp.server import MCPServer
server = MCPServer("writer")

@server.tool()
def write(path: str) -> str:
    try:
        pathlib.Path(path).write_text("x")
    except OSError as error:
        return f"no: {error.strerror}"
    return "done"

server.run()
"""


def servers_in(tmp_path: Path, engine: str, level: str) -> Servers:
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    (work / "writer.py").write_text(SCRIPT)
    settings = msgspec.convert({"engine": engine}, SandboxSettings)
    confinement = Confinement(
        settings, Workspace.at(work, ceiling="/"), tmp_path / "session", tmp_path / "cache"
    )

    command = [sys.executable, str(work / "writer.py")]
    config = msgspec.convert({"command": command, "sandbox": level}, McpServer)
    return Servers(
        {"writer": config},
        cwd=work,
        log_folder=tmp_path / "log",
        environment=dict(os.environ),
        sandbox=McpSandbox(confinement),
    )


async def write(server: Server, path: Path | str) -> str:
    answer = server.calls.call("write", {"path": str(path)}, FakeHost())
    return text_of((await asyncio.wait_for(answer, PATIENCE_S)).content)


@pytest.mark.parametrize("engine", ["bubblewrap", "launcher"])
async def test_a_confined_server_writes_where_its_level_lets_it(
    tmp_path: Path, engine: str
) -> None:
    for level, may in (("read-only", False), ("workspace", True), ("network", True)):
        servers = servers_in(tmp_path, engine, level)
        servers.start()
        await asyncio.wait_for(servers.settled(), PATIENCE_S)
        (server,) = servers.all
        if "there is none" in server.detail:
            pytest.skip(server.detail)
        log = tmp_path / "log" / "mcp-writer.log"
        assert server.state == "ready", server.detail + log.read_text()
        await write(server, tmp_path / "outside")
        assert not (tmp_path / "outside").exists()
        assert await write(server, "/usr/made") == "no: Read-only file system"
        assert await write(server, "/tmp/made") == "done"
        said = await write(server, tmp_path / "work" / f"made {level}")
        assert (said == "done") is may
        assert (tmp_path / "work" / f"made {level}").exists() is may
        assert not Path("/tmp/made").exists()
        await asyncio.wait_for(servers.close(), PATIENCE_S)
        assert not (tmp_path / "session").exists()


async def test_a_server_that_cannot_be_confined_does_not_start(tmp_path: Path) -> None:
    servers = servers_in(tmp_path, "off", "workspace")
    servers.start()
    await asyncio.wait_for(servers.settled(), PATIENCE_S)
    (server,) = servers.all
    assert server.state == "failed"
    assert server.detail == ("It should run in the sandbox, but there is none: the sandbox is off.")
    await servers.close()
