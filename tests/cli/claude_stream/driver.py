"""Plays the driver of a case: sends its lines in turn, and answers what it is asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.cli.claude_stream.cases import Case

Line = dict[str, Any]

TOOL = {
    "name": "add",
    "description": "Add two numbers",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    },
}


class Driver:
    """Sends the lines of a case by `send`, which takes None for the end of the input."""

    def __init__(self, case: Case, cwd: str, send: Callable[[Line | None], None]) -> None:
        self.case, self._send = case, send
        self._cwd = cwd
        self._waiting = list(case.lines)
        self._replies = {key: list(value) for key, value in case.replies.items()}
        self._on = dict(case.on)

    def begin(self) -> None:
        self._next()
        while self.case.at_once and self._waiting:
            self._next()

    def see(self, line: Line) -> None:
        """React to a line of the program."""
        kind = line["type"]
        event = line.get("event", {}).get("type", "") if kind == "stream_event" else ""
        key = f"{kind}/{event}" if event else kind
        for one in self._on.pop(key, []):
            self.send(one)
        if kind == "control_request":
            self._answer(line)
        elif self.case.at_once:
            if kind == "result":
                self._next()
        elif kind == "result" or (
            kind == "control_response" and line["response"]["request_id"] != "stop"
        ):
            self._next()

    def _next(self) -> None:
        if not self._waiting:
            self._send(None)
            return
        self.send(self._waiting.pop(0))

    def send(self, line: Line) -> None:
        self._send(json.loads(json.dumps(line).replace("{cwd}", self._cwd)))

    def _answer(self, line: Line) -> None:
        request = line["request"]
        if request["subtype"] == "mcp_message":
            response: Line = {"mcp_response": mcp_answer(request["message"])}
        else:
            waiting = self._replies.get(request["subtype"], [])
            response = waiting.pop(0) if waiting else {}
        body = {"subtype": "success", "request_id": line["request_id"], "response": response}
        if "error" in response:
            body = {"subtype": "error", "request_id": line["request_id"], **response}
        self.send({"type": "control_response", "response": body})


def mcp_answer(message: Line) -> Line:
    """Answer as an MCP server in the driver's own process: one tool, which adds."""
    match message.get("method"):
        case "initialize":
            version = message["params"]["protocolVersion"]
            result: Line = {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "calc", "version": "1.0.0"},
            }
        case "tools/list":
            result = {"tools": [TOOL]}
        case "tools/call":
            given = message["params"]["arguments"]
            result = {"content": [{"type": "text", "text": f"Sum: {given['a'] + given['b']}"}]}
        case method if "id" in message:
            error = {"code": -32601, "message": f"Method not found: {method}"}
            return {"jsonrpc": "2.0", "id": message["id"], "error": error}
        case _:
            result = {}
    answer: Line = {"jsonrpc": "2.0", "result": result}
    return answer | ({"id": message["id"]} if "id" in message else {})
