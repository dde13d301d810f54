"""A server of the older protocol that asks the person: `python -m tests.tools.mcp.asking_server`.

It speaks the protocol by hand: `form` asks with the schema that it is called with and answers with
what it got, `page` wants an address opened, `locked` demands that before it can be called, and
`grows` asks until it is refused.
"""

from __future__ import annotations

import json
import sys
from typing import Any

ANY: dict[str, Any] = {"type": "object"}
TOOLS = ("form", "page", "locked", "grows")


def say(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def hear() -> dict[str, Any]:
    return json.loads(sys.stdin.readline() or sys.exit(0))


def ask(**params: Any) -> dict[str, Any]:
    """The answer to a question; a call that was taken back meanwhile is forgotten."""
    say(id="q1", method="elicitation/create", params=params)
    while (heard := hear()).get("id") != "q1":
        pass
    return heard


def call(id_: object, name: str, given: dict[str, Any]) -> None:
    if name == "locked":
        page = {
            "mode": "url",
            "elicitationId": "e1",
            "url": given["url"],
            "message": "Sign the form.",
        }
        error = {"code": -32042, "message": "a page first", "data": {"elicitations": [page]}}
        say(id=id_, error=error)
        return
    count, heard = 0, {}
    match name:
        case "form":
            heard = ask(message="A form.", requestedSchema=given["schema"])
        case "page":
            heard = ask(mode="url", message="Look.", url=given["url"], elicitationId="e1")
        case _:
            while (heard := ask(message="More?", requestedSchema=ANY | {"properties": {}})).get(
                "result", {}
            ).get("action") == "accept":
                count += 1
    said = json.dumps({"count": count, **heard.get("error", heard.get("result", {}))})
    say(id=id_, result={"content": [{"type": "text", "text": said}], "isError": False})


def main() -> None:
    while True:
        heard = hear()
        match heard.get("method"):
            case "initialize":
                version = heard["params"]["protocolVersion"]
                info = {"name": "asking", "version": "1"}
                result: dict[str, Any] = {
                    "protocolVersion": version,
                    "capabilities": {"tools": {}},
                    "serverInfo": info,
                }
                say(id=heard["id"], result=result)
            case "tools/list":
                tools = [{"name": name, "inputSchema": ANY} for name in TOOLS]
                say(id=heard["id"], result={"tools": tools})
            case "tools/call":
                call(heard["id"], heard["params"]["name"], heard["params"].get("arguments", {}))
            case _ if "id" in heard and "method" in heard:
                say(id=heard["id"], error={"code": -32601, "message": "no such method"})
            case _:
                pass


if __name__ == "__main__":
    main()
