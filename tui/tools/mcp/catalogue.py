"""The catalogue of an MCP server: its tools, resources and prompts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from tui.core.dataclass import dataclass
from tui.core.formatting import size
from tui.tools.mcp.tool import LEFT_OUT, SCHEMA_MAX, McpTool, ServerCalls

if TYPE_CHECKING:
    from mcp import Client

PAGES_MAX: Final = 50
TOOLS_MAX: Final = 10_000
"""Number of tools of one server."""
NAMED_MAX: Final = 10
"""Tools that are named where tools are left out."""
OTHERS_MAX: Final = 1000
"""Resources, and prompts, of one server that are known by name."""


class _Paged(Protocol):
    next_cursor: str | None


_Page = TypeVar("_Page", bound=_Paged)


@dataclass(frozen=True, slots=True)
class McpResource:
    """Something that a server offers to be read."""

    uri: str
    title: str


@dataclass(frozen=True, slots=True)
class McpPrompt:
    """A prompt that a server offers. `arguments` are names, and whether each is required."""

    name: str
    description: str
    arguments: tuple[tuple[str, bool], ...] = ()


async def list_tools(
    client: Client, server: str, globs: Sequence[str], calls: ServerCalls
) -> tuple[tuple[McpTool, ...], str]:
    """The tools it offers, sorted by name: the order that a server lists them in may change. Then
    which of them the model cannot get, and why.

    Tools that only run as tasks of the protocol are left out: it would refuse our calls.
    """
    tools: list[McpTool] = []
    odd: list[str] = []
    async for page in _pages(client.list_tools):
        tools += [
            McpTool(server, tool, calls)
            for tool in page.tools
            if tool.execution is None or tool.execution.task_support != "required"
        ]
        odd += (page.meta or {}).get(LEFT_OUT) or ()
    return await asyncio.to_thread(_choose, tools, odd, server, globs)


def _choose(
    tools: Sequence[McpTool], odd: Sequence[str], server: str, globs: Sequence[str]
) -> tuple[tuple[McpTool, ...], str]:
    """The tools that the settings name and that a request can carry, and why others are not among
    them."""
    wanted = [
        tool for tool in tools if not globs or any(fnmatchcase(tool.own_name, g) for g in globs)
    ]
    small = [tool for tool in wanted if len(json.dumps(tool.schema())) <= SCHEMA_MAX]
    taken = sorted(small, key=lambda tool: tool.name)[:TOOLS_MAX]
    parts = [f"left out, not valid tools: {_some(odd)}"] if odd else []
    if large := {tool.own_name for tool in wanted} - {tool.own_name for tool in small}:
        parts.append(f"left out, with a schema above {size(SCHEMA_MAX)}: {_some(large)}")
    if more := len(small) - len(taken):
        parts.append(
            f"uses only {TOOLS_MAX} of {len(small):,} tools ({more:,} left out); name the "
            f'ones you need with tools = ["…"] under [mcp.{server}]'
        )
    return tuple(taken), "; ".join(parts)


def _some(names: Collection[str]) -> str:
    """The first names, and how many more there are."""
    first = [f"{name:.60}" for name in sorted(names)[:NAMED_MAX]]
    more = len(names) - len(first)
    return ", ".join(first) + (f" and {more} more" if more else "")


async def list_resources(client: Client) -> list[McpResource]:
    resources: list[McpResource] = []
    async for page in _pages(client.list_resources):
        resources += [
            McpResource(str(one.uri), one.title or one.description or one.name)
            for one in page.resources
        ]
        if len(resources) >= OTHERS_MAX:
            break
    return resources[:OTHERS_MAX]


async def list_templates(client: Client) -> list[McpResource]:
    page = await client.list_resource_templates()
    return [
        McpResource(one.uri_template, one.title or one.description or one.name)
        for one in page.resource_templates[:OTHERS_MAX]
    ]


async def list_prompts(client: Client) -> list[McpPrompt]:
    prompts: list[McpPrompt] = []
    async for page in _pages(client.list_prompts):
        for one in page.prompts:
            arguments = tuple((each.name, bool(each.required)) for each in one.arguments or ())
            prompts.append(McpPrompt(one.name, one.description or one.title or "", arguments))
        if len(prompts) >= OTHERS_MAX:
            break
    return prompts[:OTHERS_MAX]


async def _pages(ask: Callable[..., Awaitable[_Page]]) -> AsyncGenerator[_Page]:
    """The pages of a list, up to a number that no list needs."""
    cursor: str | None = None
    for _ in range(PAGES_MAX):
        page = await ask(cursor=cursor, cache_mode="bypass")
        yield page
        cursor = page.next_cursor
        if not cursor:
            return
