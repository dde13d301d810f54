#!/usr/bin/env bash
# mcp 2.3.0 (PyPI, 2026-11-29): a server's tool with a parameter `str | None` takes a string that
# happens to be JSON for JSON. "null" arrives as None, and an object or list is refused, though the
# schema that the server publishes allows any string.
#
# Best guesses, from the published schema (anyOf string, null; the caller sends strings):
#   1. `text: str`: every string arrives as it was sent.
#   2. `text: str | None`: the same; only a JSON null, not "null", gives None.
#   3. `text: str | list[str]`: a string arrives as a string.
#
# Seen: 1 holds. In 2, "null" arrives as None, '["x"]' and '{"k": 1}' are refused as "not a valid
# string"; "5", "true" and '"quoted"' arrive as sent. In 3, '["x"]' arrives as a list.
#
# Who is hurt: a model that writes a JSON file by a tool of such a server: the optional contents are
# refused with an error that speaks of a type it never sent, or are lost without one. `text: str = ""`
# instead of `str | None` avoids it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check mcp==2.3.0
cat > call.py <<'PY'
import asyncio
import logging

from mcp import Client
from mcp.server.mcpserver import MCPServer

logging.disable(logging.CRITICAL)
server = MCPServer("writer")


@server.tool()
def plain(text: str) -> str:
    return repr(text)


@server.tool()
def optional(text: str | None = None) -> str:
    return repr(text)


@server.tool()
def either(text: str | list[str]) -> str:
    return repr(text)


async def main() -> None:
    async with Client(server) as client:
        schema = (await client.list_tools()).tools[1].input_schema
        print([kind["type"] for kind in schema["properties"]["text"]["anyOf"]])
        for text in ("null", "5", "true", '"quoted"', '["x"]', '{"k": 1}'):
            results = [
                await client.call_tool(name, {"text": text})
                for name in ("plain", "optional", "either")
            ]
            print(text, *("refused" if r.is_error else r.content[0].text for r in results), sep=" | ")


asyncio.run(main())
PY
seen=$(env/bin/python call.py)
echo "$seen"
wanted="['string', 'null']
null | 'null' | None | refused
5 | '5' | '5' | '5'
true | 'true' | 'true' | 'true'
\"quoted\" | '\"quoted\"' | '\"quoted\"' | '\"quoted\"'
[\"x\"] | '[\"x\"]' | refused | ['x']
{\"k\": 1} | '{\"k\": 1}' | refused | refused"
[ "$seen" = "$wanted" ] || { echo "the server has changed"; exit 1; }
