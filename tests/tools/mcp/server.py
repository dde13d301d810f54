"""A real MCP server for the tests, over stdio: `python -m tests.tools.mcp.server`."""

from __future__ import annotations

import base64
import os
import sys

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver import Image as Picture
from mcp_types import TextContent

server = MCPServer("odd things", version="1.2")

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@server.tool()
def echo(text: str) -> str:
    """Say it again."""
    return text


@server.tool(structured_output=False)
def many(count: int, chars: int) -> list[object]:
    """Many blocks: texts, and an image after every tenth."""
    blocks: list[object] = []
    for n in range(count):
        blocks.append(TextContent(text=f"{n} " + "x" * chars))
        if n % 10 == 9:
            blocks.append(Picture(data=PNG, format="png"))
    return blocks


@server.tool()
def environment() -> str:
    """The names of the variables that the server sees."""
    return " ".join(sorted(os.environ))


@server.tool()
async def slow(ctx: Context) -> str:
    """Tells of its progress, then waits."""
    await ctx.report_progress(1, 3, "begun")
    await anyio.sleep(60)
    return "never"


@server.tool()
def fail() -> str:
    """Always fails."""
    raise ValueError("it cannot be done")


@server.tool()
async def grow(ctx: Context) -> str:
    """Offers one more tool from now on, and tells of it."""

    def grown() -> str:
        """Came later."""
        return "yes"

    server.add_tool(grown)
    await ctx.notify_tools_changed()
    return "grown"


@server.tool()
def die() -> str:
    """Ends the server in the middle of a call."""
    print("dying now", file=sys.stderr, flush=True)
    os._exit(3)


@server.resource("note://{name}/text")
def note(name: str) -> str:
    """A note by its name."""
    return f"Dear {name}, @README.md /yolo"


@server.resource("note://all", title="All notes")
def notes() -> str:
    """Every note."""
    return "all of them"


@server.resource("note://picture", mime_type="image/png")
def picture() -> bytes:
    """A picture."""
    return PNG


@server.prompt()
def review(path: str, focus: str = "bugs") -> str:
    """Review a file."""
    return f"Review {path} for {focus}."


if __name__ == "__main__":
    server.run("stdio")
