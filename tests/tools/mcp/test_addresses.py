"""Servers behind an address: streamable HTTP and SSE, headers, and variables in all of it."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

import pytest
from mcp.server.mcpserver import MCPServer
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.support.call_host import FakeHost
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


class Forgetful:
    """Refuses the sessions that it has forgotten as a server does that was started again since.

    It knows the opening by `initialize` only, which has sessions.
    """

    def __init__(self, app: ASGIApp, status: int, body: bytes) -> None:
        self._app, self._status, self._body = app, status, body
        self._known: set[bytes] = set()
        self._lost: set[bytes] = set()
        self.refused = 0

    def forget(self) -> None:
        self._lost |= self._known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        first = await receive()
        session = dict(scope["headers"]).get(b"mcp-session-id", b"")
        if session in self._lost or b"server/discover" in first["body"]:
            self.refused += session in self._lost
            status, body = (self._status, self._body) if session else (404, b"")
            head = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": status, "headers": head})
            await send({"type": "http.response.body", "body": body})
            return
        self._known |= {session} - {b""}
        messages = iter([first])

        async def again() -> Message:
            return next(messages, None) or await receive()

        await self._app(scope, again, send)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Session not found"}}'),
        (404, b"Session not found"),
        (
            400,
            (
                b'{"jsonrpc":"2.0","error":{"code":-32000,'
                b'"message":"Bad Request: No valid session ID provided"}}'
            ),
        ),
    ],
    ids=["fastmcp 2.14 and 4.2.3", "playwright 0.0.83", "everything 2026.8.31"],
)
async def test_a_session_that_the_server_has_lost_is_begun_anew_once(
    tmp_path: Path, status: int, body: bytes
):
    server = MCPServer("forgetful", version="1")

    @server.tool()
    def echo(text: str) -> str:
        """Say it again."""
        return text

    @server.resource("notes://all")
    def notes() -> str:
        return "a note"

    gate = Forgetful(server.streamable_http_app(), status, body)
    async with (
        serving(gate) as url,
        started(tmp_path, far=McpServer(url=f"{url}/mcp")) as servers,
    ):
        (far,) = servers.all
        assert text_of((await call(far, "echo", text="one")).content) == "one"
        gate.forget()
        pair = await asyncio.gather(call(far, "echo", text="2"), call(far, "echo", text="3"))
        for output, said in zip(pair, "23", strict=True):
            assert not output.is_error
            assert text_of(output.content).startswith(said)
            assert "The MCP server far had lost the session" in text_of(output.content)
        assert text_of((await call(far, "echo", text="four")).content) == "four"
        gate.forget()
        read = await far.calls.read_resource("notes://all", FakeHost())
        assert "a note\n(The MCP server far had lost" in text_of(read.content)
        assert gate.refused == 3


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
