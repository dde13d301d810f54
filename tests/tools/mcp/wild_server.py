"""An MCP server that breaks every rule: `python -m tests.tools.mcp.wild_server [TOOLS [OPENING]]`.

OPENING says what `server/discover` does to it: "dies", or "silent" for ever.

It speaks the protocol by hand, for no library would send what it sends.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

ODD_TOOLS: list[dict[str, Any]] = [
    {"name": "one of", "inputSchema": {"type": "object", "oneOf": [{"required": ["a"]}]}},
    {"name": "a list", "inputSchema": {"type": "array"}},
    {"name": "n" * 300, "inputSchema": {"type": "object"}},
    {"name": "n" * 299 + "m", "inputSchema": {"type": "object"}},
    {"description": "without a name", "inputSchema": {"type": "object"}},
    {"name": "no schema"},
    {"name": "no type", "inputSchema": {"properties": {"a": {"type": "string"}}}},
    {"name": "odd output", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}},
    {"name": 7, "inputSchema": {"type": "object"}},
    {"name": "a.b", "inputSchema": {"type": "object"}},
    {"name": "a_b", "inputSchema": {"type": "object"}},
    {"name": "long", "description": "d" * 2_000_000, "inputSchema": {"type": "object"}},
    {"name": "big", "inputSchema": {"type": "object", "description": "s" * 2_000_000}},
]


ANSWERS: dict[str, dict[str, Any]] = {
    "fine": {"content": [{"type": "text", "text": "fine"}], "isError": False},
    "unknown": {"content": [{"type": "hologram", "data": "?"}]},
    "mixed": {
        "content": [{"type": "text", "text": "good"}, {"type": "video", "data": "?"}],
        "structuredContent": [1],
    },
    "promises": {"content": [{"type": "text", "text": "no structure"}]},
    "lies": {"content": [], "structuredContent": {"b": 1}},
    "bare": {"content": "bare"},
    "backtracking": {
        "content": [{"type": "text", "text": "matched"}],
        "structuredContent": {"a": "a" * 60 + "!"},
    },
}
counted = 0


def say(data: bytes) -> None:
    sys.stdout.buffer.write(data + b"\n")
    sys.stdout.buffer.flush()


def answer(id_: object, result: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id_, "result": result}).encode()


def text(id_: object, said: str) -> bytes:
    return answer(id_, {"content": [{"type": "text", "text": said}], "isError": False})


def call(id_: object, tool: str) -> None:
    match tool:
        case "surrogate":
            say(text(id_, "half \ud800 a character"))
        case "bytes":
            say(text(id_, "a XY b").replace(b"XY", b"\xff\xfe"))
        case "nul":
            say(text(id_, "a\0b"))
        case "chatter":
            say(b"Listening on port 3000 {")
            say(b"[1, 2]")
            say(text(id_, "after the chatter"))
        case "long":
            say(text(id_, "x" * 40_000_000))
        case "broken":
            say(text(id_, "never ends")[:-20])
        case "deep":
            say(b'{"jsonrpc": "2.0", "id": 1, "result": ' + b"[" * 200_000)
        case "count":
            global counted  # noqa: PLW0603 - the state that a restart would lose
            counted += 1
            say(text(id_, str(counted)))
        case "dies":
            sys.stdout.buffer.write(text(id_, "half")[:20])
            sys.stdout.buffer.flush()
            os._exit(3)
        case "refuses":
            error = {"code": -32000, "message": "no " * 200 + "end", "data": {"why": ["here"]}}
            say(json.dumps({"jsonrpc": "2.0", "id": id_, "error": error}).encode())
        case _:
            say(answer(id_, ANSWERS.get(tool, ANSWERS["fine"])))


def main(count: int, opening: str) -> None:
    names = (
        "fine",
        "surrogate",
        "bytes",
        "nul",
        "chatter",
        "long",
        "broken",
        "deep",
        "unknown",
        "dies",
        "mixed",
        "promises",
        "lies",
        "bare",
        "refuses",
        "count",
    )
    tools: list[dict[str, Any]] = [
        {"name": name, "inputSchema": {"type": "object"}} for name in names
    ]
    matched = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    tools.append({**tools[0], "name": "backtracking", "outputSchema": matched})
    promised = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    for tool in tools:
        if tool["name"] in {"promises", "lies"}:
            tool["outputSchema"] = promised
    tools = ODD_TOOLS if count < 0 else tools
    tools += [{"name": f"t{n}", "inputSchema": {"type": "object"}} for n in range(count)]
    for line in sys.stdin:
        asked = json.loads(line)
        id_, method = asked.get("id"), asked.get("method")
        if id_ is None:
            continue
        print(method, file=sys.stderr, flush=True)
        if method == "server/discover" and opening:
            if opening == "dies":
                sys.exit("expected initialize")
            sys.stdin.read()
        elif method == "initialize":
            print(json.dumps(asked["params"]["clientInfo"]), file=sys.stderr, flush=True)
            version = asked["params"]["protocolVersion"]
            info = {"name": "wild", "version": "0"}
            capabilities: dict[str, Any] = {"tools": {}}
            known = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}
            say(answer(id_, known))
        elif method == "tools/list":
            say(answer(id_, {"tools": tools}))
        elif method == "tools/call":
            call(id_, asked["params"]["name"])
        else:
            error = {"code": -32601, "message": "unknown"}
            say(json.dumps({"jsonrpc": "2.0", "id": id_, "error": error}).encode())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0, "".join(sys.argv[2:]))
