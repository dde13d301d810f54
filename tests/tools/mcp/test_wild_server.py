"""A server that breaks the rules: every call ends, in words, and the next one works."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest

from tests.support.clock import PATIENCE_S
from tests.tools.mcp.test_servers import ROOT, call, started
from tui import __version__
from tui.core.config import McpServer
from tui.core.errors import ToolError
from tui.core.messages import text_of
from tui.tools.mcp import Servers, connection
from tui.tools.mcp.tool import NAME_MAX


def wild(*arguments: str, tools: tuple[str, ...] = ()) -> McpServer:
    command = (sys.executable, "-m", "tests.tools.mcp.wild_server", *arguments)
    return McpServer(command=command, tools=tools)


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("surrogate", "half \ufffd a character"),
        ("bytes", "a \ufffd\ufffd b"),
        ("nul", "a\0b"),
        ("chatter", "after the chatter"),
        ("backtracking", "matched"),
    ],
)
async def test_45_what_can_be_read_is_the_answer(tmp_path: Path, tool: str, said: str) -> None:
    async with started(tmp_path, wild=wild()) as servers:
        (server,) = servers.all
        assert text_of((await call(server, tool)).content) == said
        fine = servers.tools()["mcp__wild__fine"].parse({"text": "\ud800"})
        assert text_of((await call(server, "fine", **fine.arguments)).content) == "fine"
        with pytest.raises(ToolError, match="isn't a valid message"):
            await call(server, "fine", text="\ud800")
        assert text_of((await call(server, "fine")).content) == "fine"


@pytest.mark.parametrize(
    ("tool", "why"),
    [
        ("long", "its answer is longer than 32.0 MB"),
        ("broken", "its answer isn't a valid message"),
        ("deep", "its answer isn't a valid message"),
        ("dies", "failed: "),
    ],
)
async def test_45_what_cannot_be_read_is_an_error_at_once(
    tmp_path: Path, tool: str, why: str
) -> None:
    async with started(tmp_path, wild=wild()) as servers:
        (server,) = servers.all
        with pytest.raises(ToolError) as failed:
            await call(server, tool)
        assert re.search(why, failed.value.message)
        assert len(failed.value.message) < 500
        assert text_of((await call(server, "fine")).content) == "fine"


async def test_22_thousands_of_tools_are_kept_and_can_be_narrowed(tmp_path: Path) -> None:
    chosen = wild("3000", tools=("t29*", "fine"))
    async with started(tmp_path, many=wild("3000"), some=chosen) as servers:
        many, some = servers.all
        assert len(many.tools) == 3017
        assert many.left_out == ""
        assert {tool.own_name for tool in some.tools} == {
            *("fine", "t29"), *(f"t29{n}" for n in range(10)), *(f"t29{n:02}" for n in range(100)),
        }  # fmt: skip
        assert some.left_out == ""


async def test_22_odd_tools_are_wrapped_renamed_or_left_out(tmp_path: Path) -> None:
    async with started(tmp_path, odd=wild("-1")) as servers:
        (server,) = servers.all
        schemas = [tool.schema() for tool in server.tools]
        assert server.left_out == (
            "left out, not valid tools: 7, one without a name; "
            "left out, with a schema above 64.0 KB: big"
        )
        assert {tool.own_name[:9] for tool in server.tools} == {
            *("one of", "a list", "n" * 9, "a.b", "a_b", "long"),
            *("no schema", "no type", "odd outpu"),
        }  # fmt: skip
        names = [schema["name"] for schema in schemas]
        assert len({*names}) == len(names) == 10
        assert all(re.fullmatch(rf"[A-Za-z0-9_-]{{1,{NAME_MAX}}}", name) for name in names)
        for schema in schemas:
            assert schema["input_schema"]["type"] == "object"
            assert not {"oneOf", "anyOf", "allOf"} & schema["input_schema"].keys()
            assert len(json.dumps(schema)) < 70_000


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        (
            "mixed",
            """good
{"type": "video", "data": "?"}
[Problems with the answer: a part of the type "video" is shown as it came; its field \
structuredContent doesn't fit the protocol.]""",
        ),
        (
            "unknown",
            """{"type": "hologram", "data": "?"}
[Problems with the answer: a part of the type "hologram" is shown as it came.]""",
        ),
        (
            "promises",
            """no structure
[Problems with the answer: its outputSchema promises structured output, but there is none.]""",
        ),
        (
            "lies",
            """{
 "b": 1
}
[Problems with the answer: its structured output breaks its outputSchema: the whole lacks a.]""",
        ),
        ("bare", "bare"),
    ],
)
async def test_an_odd_answer_is_kept_and_the_server_goes_on(
    tmp_path: Path, tool: str, said: str
) -> None:
    async with started(tmp_path, wild=wild()) as servers:
        (server,) = servers.all
        assert text_of((await call(server, "count")).content) == "1"
        assert text_of((await call(server, tool)).content) == said
        assert text_of((await call(server, "count")).content) == "2", "it wasn't started anew"


async def test_an_error_arrives_whole_with_its_data(tmp_path: Path) -> None:
    async with started(tmp_path, wild=wild()) as servers:
        (server,) = servers.all
        with pytest.raises(ToolError) as failed:
            await call(server, "refuses")
        assert failed.value.message.endswith('no no end\nIts data:\n{\n "why": [\n  "here"\n ]\n}')
        assert server.state == "ready"


@pytest.mark.parametrize("opening", ["dies", "silent"])
async def test_a_server_that_discover_loses_begins_with_initialize_from_then_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opening: str
) -> None:
    monkeypatch.setattr(connection, "PROBE_S", 1.0)
    for _ in range(2):
        config = {"wild": wild("0", opening)}
        servers = Servers(config, cwd=ROOT, log_folder=tmp_path, cache=tmp_path / "cache")
        servers.start()
        await asyncio.wait_for(servers.settled(), PATIENCE_S)
        assert [one.state for one in servers.all] == ["ready"]
        await asyncio.wait_for(servers.close(), PATIENCE_S)
    log = (tmp_path / "mcp-wild.log").read_text().splitlines()
    openings = [line for line in log if line in {"server/discover", "initialize"}]
    assert openings == ["server/discover", "initialize", "initialize"]
    name = next(json.loads(line) for line in log if line.startswith("{"))
    assert name == {"name": "holdfast", "title": "Holdfast", "version": __version__}


async def test_a_server_that_ends_at_once_says_why(tmp_path: Path) -> None:
    script = "import sys; sys.exit('NOTES_TOKEN is not set')"
    config = McpServer(command=(sys.executable, "-c", script))
    async with started(tmp_path, notes=config) as servers:
        assert servers.all[0].detail == "it ended: NOTES_TOKEN is not set"
