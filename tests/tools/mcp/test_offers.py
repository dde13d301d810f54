"""Resources, prompts, and what a server tells of itself, with a real server."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.support.call_host import FakeHost
from tests.support.clock import PATIENCE_S
from tests.tools.mcp.test_servers import OURS, call, started
from tui.core.config import McpServer
from tui.core.errors import ToolError
from tui.core.messages import ToolOutput, text_of
from tui.tools.mcp import McpPrompt, McpResource, Server, Servers

TELLING = McpServer(command=sys.executable, args=("-m", "tests.tools.mcp.telling_server"))
HANGS = McpServer(command=sys.executable, args=("-c", "import sys; sys.stdin.read()"))


async def read(server: Server, uri: str) -> ToolOutput:
    return await asyncio.wait_for(server.calls.read_resource(uri, FakeHost()), PATIENCE_S)


async def test_resources_and_prompts_are_listed_and_read(tmp_path: Path):
    async with started(tmp_path, odd=OURS) as servers:
        (odd,) = servers.all
        assert McpResource("note://all", "All notes") in odd.resources
        assert {one.uri for one in odd.resources} == {"note://all", "note://picture"}
        assert [one.uri for one in odd.templates] == ["note://{name}/text"]
        assert "]\nall of them" in text_of((await read(odd, "note://all")).content)
        assert "Dear Ann" in text_of((await read(odd, "note://Ann/text")).content)
        (image,) = (await read(odd, "note://picture")).content
        assert image["type"] == "image"
        with pytest.raises(ToolError, match="Reading other://x of the MCP server odd failed"):
            await read(odd, "other://x")

        (prompt,) = odd.prompts
        assert prompt == McpPrompt("review", "Review a file.", (("path", True), ("focus", False)))
        assert await odd.calls.prompt_text(prompt, "a.py", "") == "Review a.py for bugs."
        assert (
            await odd.calls.prompt_text(prompt, "a.py two words", "")
            == "Review a.py for two words."
        )
        with pytest.raises(ToolError, match="The prompt review needs: path"):
            await odd.calls.prompt_text(prompt, "", "")
    assert odd.resources == odd.templates == ()


async def test_prompts_that_join_are_listed_again(tmp_path: Path):
    async with started(tmp_path, telling=TELLING) as servers:
        (telling,) = servers.all
        assert telling.prompts == ()
        await call(telling, "grow_others")
        async with asyncio.timeout(PATIENCE_S):
            while not telling.prompts:  # noqa: ASYNC110 - it happens in a program of its own
                await asyncio.sleep(0.005)
        assert [prompt.name for prompt in telling.prompts] == ["later"]


async def test_what_a_server_tells_is_in_its_log_and_a_flood_does_no_harm(tmp_path: Path):
    async with started(tmp_path, telling=TELLING) as servers:
        (telling,) = servers.all
        assert text_of((await call(telling, "tells")).content) == "told"
        async with asyncio.timeout(PATIENCE_S):
            while "[warning] telling: careful now" not in telling.log_file.read_text():  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.005)
        assert len(await telling.log_end(1000)) == 1000


async def test_a_server_that_hangs_while_it_starts_can_be_stopped(tmp_path: Path):
    servers = Servers({"hangs": HANGS}, cwd=tmp_path, log_folder=tmp_path)
    servers.start()
    await asyncio.sleep(0)
    assert servers.all[0].state == "starting"
    await asyncio.wait_for(servers.close(), PATIENCE_S)
    assert servers.all[0].state == "off"
