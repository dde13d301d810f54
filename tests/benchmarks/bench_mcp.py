"""Starting an MCP server of 200 tools, beside one of a single tool: until both are in a request."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tui.core.config import McpServer
from tui.tools.mcp import Servers

RUNS = 7
TOOLS = 200
SEEN = Path(__file__).parents[1] / "tools" / "mcp" / "seen"

_SERVER = """
import json, sys
import mcp.server  # as published ones in Python do
tools = open(sys.argv[1]).read()
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] == "initialize":
        version = asked["params"]["protocolVersion"]
        info = {"name": "many", "version": "1"}
        answer["result"] = {
            "protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info
        }
    elif asked["method"] == "tools/list":
        result = '{"tools": %s}' % tools
        print('{"jsonrpc": "2.0", "id": %d, "result": %s}' % (asked["id"], result), flush=True)
        continue
    else:
        answer["error"] = {"code": -32601, "message": "unknown"}
    print(json.dumps(answer), flush=True)
"""


def run() -> list[tuple[str, float, float]]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        one, many = (_config(place, count) for count in (1, TOOLS))
        asyncio.run(_start(place, many))  # imports the SDK
        singles, lots = list[float](), list[float]()
        for _ in range(RUNS):  # in turns, so that both meet the same noise
            singles.append(asyncio.run(_start(place, one)))
            lots.append(asyncio.run(_start(place, many)))
    ratio = min(lots) / min(singles)  # the quickest: a busy machine only adds to it
    return [(f"an MCP server of {TOOLS} tools starts, beside one of a single tool", ratio, 1.5)]


def _config(place: Path, count: int) -> McpServer:
    """A server of tools as published ones have them."""
    listed: list[dict[str, Any]] = []
    for file in sorted(SEEN.glob("*.jsonl")):
        for line in map(json.loads, file.read_text().splitlines()):
            if line.get("ask") == "tools/list":
                listed += line["result"]["tools"]
    tools = [{**listed[n % len(listed)], "name": f"tool_{n}"} for n in range(count)]
    file = place / f"{count}.json"
    file.write_text(json.dumps(tools))
    return McpServer(command=(sys.executable, "-I", "-c", _SERVER, str(file)))


async def _start(place: Path, config: McpServer) -> float:
    """Seconds from the start until its tools stand in a request."""
    servers = Servers({"many": config}, cwd=place, log_folder=place)
    begun = time.perf_counter()
    servers.start()
    await servers.settled()
    schemas = [tool.schema() for tool in servers.tools().values()]
    seconds = time.perf_counter() - begun
    assert schemas, servers.all[0].detail
    await servers.close()
    return seconds
