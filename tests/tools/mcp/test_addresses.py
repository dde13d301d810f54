"""Servers behind an address: streamable HTTP and SSE, headers, and variables in all of it."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

import pytest
from mcp.server.mcpserver import MCPServer

from tests.support.clock import PATIENCE_S
from tests.support.http_apps import HeaderGate, serving
from tests.tools.mcp.test_servers import call, started
from tui.core.config import McpServer
from tui.core.messages import text_of

SECRET = "Bearer tok-3f7a9b1c2d"


def app(kind: str) -> HeaderGate:
    server = MCPServer("behind an address", version="1")

    @server.tool()
    def echo(text: str) -> str:
        """Say it again."""
        return text

    inner = server.sse_app() if kind == "sse" else server.streamable_http_app()
    return HeaderGate(inner, "Authorization", SECRET)


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_headers_go_along_and_are_never_logged(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: str,
):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("MY_TOKEN", SECRET.removeprefix("Bearer "))
    gate = app(kind)
    async with serving(gate) as url:
        address = f"{url}/{'sse' if kind == 'sse' else 'mcp'}?key=hush"
        config = McpServer(
            url=address.replace("127.0.0.1", "${HOST_OF_MINE:-127.0.0.1}"),
            headers={"Authorization": "Bearer ${MY_TOKEN}"},
            type="sse" if kind == "sse" else "http",
        )
        async with started(tmp_path, far=config) as servers:
            (far,) = servers.all
            assert (far.state, far.detail) == ("ready", "behind an address 1")
            assert text_of((await call(far, "echo", text="grüß")).content) == "grüß"
            assert "hush" not in far.address
            assert far.address.endswith("with the headers Authorization")
    assert all(seen["authorization"] == SECRET for seen in gate.seen)
    assert SECRET.split()[1] not in caplog.text
    assert "MY_TOKEN" not in repr(config)


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (McpServer(command=("x", "${NOT_SET_HERE}")), "names ${NOT_SET_HERE}, which isn't set"),
        (McpServer(url="http://h/${NOT_SET_HERE}"), "names ${NOT_SET_HERE}, which isn't set"),
        (McpServer(url="${NOT_SET_HERE:-nonsense}"), "Its url isn't an address"),
        (McpServer(url="http://h", headers={"A": "${N:-a\nb}"}), "The header A can't be sent"),
        (McpServer(url="http://h", headers={"A b": "c"}), "The header A b can't be sent"),
    ],
    ids=str,
)
async def test_what_cannot_be_filled_in_fails_that_server_only(
    tmp_path: Path, config: McpServer, why: str
):
    async with started(tmp_path, odd=config) as servers:
        (odd,) = servers.all
        assert odd.state == "failed"
        assert why in odd.detail


async def test_a_command_gets_its_args_and_its_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DB_PASSWORD", "hush")
    config = McpServer(
        command="${PYTHON_OF_MINE:-" + sys.executable + "}",
        args=("-m", "tests.tools.mcp.server"),
        env={"DB_TOKEN": "${DB_PASSWORD}", "PLAIN_WORDS": "a ${EMPTY:-b}"},
    )
    async with started(tmp_path, odd=config) as servers:
        names = text_of((await call(servers.all[0], "environment")).content).split()
        assert {"DB_TOKEN", "PLAIN_WORDS"} <= set(names)


async def test_two_servers_with_names_like_paths_log_where_logs_are(tmp_path: Path):
    config = McpServer(command=(sys.executable, "-c", "import sys; sys.stderr.write('x' * 9)"))
    async with started(tmp_path, **{"../../a": config}) as servers:
        (server,) = servers.all
        assert server.log_file.parent == tmp_path / "log"
        assert await asyncio.wait_for(server.log_end(9), PATIENCE_S) == "x" * 9
