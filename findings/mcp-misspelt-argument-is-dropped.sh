#!/usr/bin/env bash
# @modelcontextprotocol/sdk 1.32.2 with zod 3.25.76 (npm) and mcp 2.3.0 (PyPI), 2026-12-01: both
# official servers run a tool whose call has an argument that the tool doesn't have, without it. The
# one in TypeScript does so though the schema that it publishes forbids it.
#
# Best guesses, for remove(path, dry_run=false) and a call with `dryrun: true`:
#   1. TypeScript publishes `"additionalProperties": false`, so the call is refused, as one with a
#      wrong type is (`dry_run: "true"`).
#   2. Python publishes no such thing, but a function that is called with a keyword it doesn't have
#      raises TypeError; so the call is refused there, too.
#   3. At least the result, or the server's log, names what was left out.
#   4. An argument that is missing is refused by both.
#
# Seen: 1 and 2 run with dry_run false, is_error is not set, and nothing names `dryrun`. The wrong
# type is refused in TypeScript; in Python "true" counts as true, and "off" as false. 4 holds.
#
# Who is hurt: a model that misremembers an optional argument, which is the kind that limits what is
# done (a dry run, a folder, a number): all of it is done, and the model is not told. Only the client
# can see it, by a check of the arguments against the published schema and its properties.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{"private": true}' > package.json
npm install --silent --no-audit --no-fund @modelcontextprotocol/sdk@1.32.2 zod@3.25.76 >/dev/null 2>&1
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check mcp==2.3.0 2>/dev/null
echo '[{"path": "a", "dryrun": true}, {"path": "a", "dry_run": "true"}, {"dry_run": true}]' > calls.json
cat > call.mjs <<'JS'
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { z } from "zod";

const server = new McpServer({ name: "files", version: "1" });
const inputSchema = { path: z.string(), dry_run: z.boolean().default(false) };
server.registerTool("remove", { inputSchema }, async ({ path, dry_run }) => ({
  content: [{ type: "text", text: dry_run ? `would remove ${path}` : `removed ${path}` }],
}));
const [here, there] = InMemoryTransport.createLinkedPair();
const client = new Client({ name: "one", version: "1" });
await server.connect(there);
await client.connect(here);
const [tool] = (await client.listTools()).tools;
console.log("TypeScript, additionalProperties:", tool.inputSchema.additionalProperties);
for (const call of JSON.parse(readFileSync("calls.json"))) {
  const result = await client.callTool({ name: "remove", arguments: call });
  console.log(JSON.stringify(call), result.isError ? "refused" : result.content[0].text);
}
await client.close();
JS
cat > call.py <<'PY'
import asyncio
import json
import logging

from mcp import Client
from mcp.server.mcpserver import MCPServer

logging.disable(logging.CRITICAL)
server = MCPServer("files")


@server.tool()
def remove(path: str, dry_run: bool = False) -> str:
    return f"would remove {path}" if dry_run else f"removed {path}"


async def main() -> None:
    async with Client(server) as client:
        (tool,) = (await client.list_tools()).tools
        print("Python, additionalProperties:", tool.input_schema.get("additionalProperties"))
        for call in json.load(open("calls.json")):
            result = await client.call_tool("remove", call)
            text = "refused" if result.is_error else result.content[0].text
            print(json.dumps(call, separators=(",", ":")), text)


asyncio.run(main())
PY
seen=$(node call.mjs; env/bin/python call.py)
echo "$seen"
wanted='TypeScript, additionalProperties: false
{"path":"a","dryrun":true} removed a
{"path":"a","dry_run":"true"} refused
{"dry_run":true} refused
Python, additionalProperties: None
{"path":"a","dryrun":true} removed a
{"path":"a","dry_run":"true"} would remove a
{"dry_run":true} refused'
[ "$seen" = "$wanted" ] || { echo "a server has changed"; exit 1; }
