"""A server that says again what one said that was seen: `python replay.py NAME.jsonl`.

A request is answered as it was then, by its method and its params. One that ended the server ends
this one, and one that was never answered makes it silent.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def main(file: Path) -> None:
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    seen: list[dict[str, Any]] = [line for line in lines if "ask" in line]
    silent = False
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message or silent:
            continue
        params = dict(message.get("params") or {})
        meta = params.pop("_meta", {})
        entry = _answer(seen, message["method"], params)
        if entry is None:
            say({"id": message["id"], "error": {"code": -32601, "message": "was not asked then"}})
        elif entry.get("ended") in {"ignored", "silent"}:
            silent = entry["ended"] == "silent"
            if "progressToken" in meta:
                begun = {"progressToken": meta["progressToken"], "progress": 1}
                say({"method": "notifications/progress", "params": begun})
        elif "ended" in entry:
            os._exit(int(entry["ended"]) & 255)
        else:
            for other in entry.get("said", ()):
                print(other if isinstance(other, str) else json.dumps(other), flush=True)
            kind = "error" if "error" in entry else "result"
            say({"id": message["id"], kind: entry[kind]})


def _answer(
    seen: list[dict[str, Any]], method: str, params: dict[str, Any]
) -> dict[str, Any] | None:
    """The answer of then. What was asked several times is answered in turn."""
    for entry in seen:
        if entry["ask"] == method and (entry["params"] == params or method == "initialize"):
            if [one["ask"] for one in seen].count(method) > 1:
                seen.remove(entry)
                seen.append(entry)
            return entry
    return None


def say(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
