"""Which tools stand in every request, and how the others are found by words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import pytest
from mcp_types import Tool

from tests.support.call_host import UNCALLED
from tui.core.errors import ToolError
from tui.core.messages import as_meant, text_of
from tui.tools.base import ToolContext
from tui.tools.mcp.call_tool import CallTool
from tui.tools.mcp.search_tools import SearchTools
from tui.tools.mcp.tool import McpTool
from tui.tools.mcp.tool_search import DIRECT_MAX, ToolIndex, chosen

CONTEXT = cast("ToolContext", None)
"""Neither of these tools looks at it."""


def tool(name: str, about: str = "", server: str = "s", *arguments: str) -> McpTool:
    schema = {"type": "object", "properties": {one: {"type": "string"} for one in arguments}}
    return McpTool(server, Tool(name=name, description=about, input_schema=schema), UNCALLED)


TOOLS = (
    tool("create_issue", "Open a new issue in a repository.", "github", "title", "body"),
    tool("listPullRequests", "List the pull requests of a repository.", "github"),
    tool("query", "Run SQL on the database.", "pg", "sql"),
    tool("screenshot", "Take a picture of a page in the browser.", "browser"),
    *(tool(f"filler_{n}", "Does something to a repository.", "filler") for n in range(100)),
)


def names(tools: Iterable[McpTool]) -> list[str]:
    return [one.own_name for one in tools]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("create an issue", "create_issue"),
        ("issues", "create_issue"),
        ("pull request", "listPullRequests"),
        ("SQL", "query"),
        ("databases", "query"),
        ("browser picture", "screenshot"),
        ("pg", "query"),
    ],
)
def test_a_tool_is_found_by_the_words_of_its_name_its_description_and_its_arguments(
    query: str, first: str
) -> None:
    assert names(ToolIndex(TOOLS).find(query, 5))[0] == first


def test_a_word_in_no_tool_finds_none_and_the_most_is_kept_to() -> None:
    index = ToolIndex(TOOLS)
    assert index.find("weather", 5) == []
    assert index.find("", 5) == []
    assert len(index.find("repository", 7)) == 7


def test_the_lightest_servers_stand_in_the_requests_and_stay_there() -> None:
    tools = {name: [tool("x", server=name)] for name in "abc"}
    weights = {"a": 6.0, "b": 3.0, "c": 2.0}
    assert chosen(tools, weights, 10, ()) == {"b", "c"}
    assert chosen(tools, weights, 11, ()) == {"a", "b", "c"}
    assert chosen(tools, weights, 0, ()) == set()
    assert chosen(tools, weights, 9, {"a"}) == {"a", "c"}
    assert chosen(tools, weights, 0, {"a"}) == {"a"}
    many = {"a": [tool(f"x{n}") for n in range(DIRECT_MAX + 1)]}
    assert chosen(many, {"a": 1.0}, 100, ()) == set()


async def test_the_answer_has_what_it_takes_to_call_a_tool() -> None:
    search = SearchTools(lambda: {one.name: one for one in TOOLS})
    ctx = CONTEXT
    schema = '{"type":"object","properties":{"title":{"type":"string"},"body":{"type":"string"}}}'
    found = await search.run(search.parse({"query": "open issue", "limit": 1}), ctx)
    assert text_of(found.content).splitlines() == [
        "1 of 104 tools, the best first:",
        "",
        "mcp__github__create_issue: Open a new issue in a repository.",
        f"input_schema: {schema}",
    ]
    listed = await search.run(search.parse({}), ctx)
    assert "filler: 100 tools\ngithub: 2 tools\npg: 1 tool" in text_of(listed.content)
    only = await search.run(search.parse({"server": "pg", "query": "repository"}), ctx)
    assert text_of(only.content).startswith("No tool of 1 fits.")
    of_server = await search.run(search.parse({"server": "github"}), ctx)
    assert of_server.summary == "create_issue, listPullRequests"


def test_a_call_of_another_tool_is_that_tools_call() -> None:
    call = {"type": "tool_use", "id": "1", "name": "call_tool"}
    meant = as_meant({**call, "input": {"name": "mcp__s__x", "input": {"a": 1}}})
    assert meant == {"type": "tool_use", "id": "1", "name": "mcp__s__x", "input": {"a": 1}}
    assert as_meant({**call, "input": {"name": "mcp__s__x"}})["input"] == {}
    wrong: list[object] = [{"name": "run_command", "input": {}}, {}, "odd", {"name": 3}]
    for given in wrong:
        odd = {**call, "input": given}
        assert as_meant(odd) == odd


async def test_it_calls_no_other_tools() -> None:
    one = CallTool()
    with pytest.raises(ToolError, match="run_command isn't a tool of an MCP server"):
        await one.run(one.parse({"name": "run_command"}), CONTEXT)
