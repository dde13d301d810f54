"""Run Claude Code on small set-ups and write down what it sends:
`python -m tests.settings.claude_code.record [CASE…]`.

Not a part of the suite. Installs the pinned program in a temporary folder (`CLAUDE_CODE=PATH` takes
one that is there), starts it with a home of its own against a server on loopback, and writes
`seen.jsonl`: for each case of `cases.py` its files, what was typed, and what came with it beyond
what a folder without any files sends. A case is known by its name; those that are named are made
anew, all without any.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from tests.settings.claude_code.cases import CASES, Case

VERSION: Final = "2.1.332"
SEEN: Final = Path(__file__).parent / "seen.jsonl"
_SESSION = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_USUAL = ("Attribution for git commits", "Today's date is", "# Environment")


def main(names: list[str]) -> None:
    """Record the cases of those names, or all."""
    with tempfile.TemporaryDirectory() as folder:
        program = os.environ.get("CLAUDE_CODE") or _installed(folder)
        rows = {}
        if SEEN.exists():
            rows = {row["case"]: row for row in map(json.loads, SEEN.open())}
        plain = _Run(program, Case("go")).sent()
        wanted = names or list(CASES)
        with ThreadPoolExecutor(2) as pool:
            made = pool.map(partial(_row, program, plain), wanted)
            for name, row in zip(wanted, made, strict=True):
                rows[name] = row
                print(json.dumps(row, indent=1, ensure_ascii=False))
        lines = [json.dumps(rows[name], ensure_ascii=False) for name in CASES if name in rows]
        SEEN.write_text("\n".join(lines) + "\n")


def _installed(folder: str) -> str:
    package = f"@anthropic-ai/claude-code@{VERSION}"
    subprocess.run(["npm", "install", "--prefix", folder, "--silent", package], check=True)
    return f"{folder}/node_modules/.bin/claude"


def _row(program: str, plain: list[dict[str, Any]], name: str) -> dict[str, Any]:
    case = CASES[name]
    run = _Run(program, case)
    usual = set(_lines(plain))
    sent = [_without(request, usual, plain[0]["model"]) for request in run.sent()]
    row: dict[str, Any] = {"case": name, "files": case.files, "typed": case.typed}
    if case.args:
        row["args"] = list(case.args)
    row["sent"] = sent
    if run.out != "ok":
        row["out"] = run.out[:400]
    if run.problem:
        row["problem"] = run.problem[:400]
    return row


def _lines(requests: list[dict[str, Any]]) -> Iterator[str]:
    for request in requests:
        for text in [*request["system"], *request["messages"]]:
            yield from text.splitlines()
        yield from request["tools"]


def _without(request: dict[str, Any], usual: set[str], model: str) -> dict[str, Any]:
    """Keep what a folder without files does not send."""
    kept: dict[str, Any] = {} if request["model"] == model else {"model": request["model"]}
    for part in ("system", "messages"):
        texts = list[str]()
        for text in request[part]:
            if text.startswith("user") and not text.startswith("user: <system-reminder>"):
                texts.append(text)
                continue
            lines = [line for line in text.splitlines() if line not in usual and line.strip()]
            if lines and not text.startswith(
                tuple(f"user: <system-reminder>\n{u}" for u in _USUAL)
            ):
                texts.append("\n".join(lines))
        kept[part] = texts
    kept["tools"] = sorted(set(request["tools"]) - usual)
    for part in ("system", "messages"):
        kept[part] = [_short(text) for text in kept[part]]
    return {key: value for key, value in kept.items() if value}


def _short(text: str) -> str:
    """The beginning of a text, and of each of its lines: what is longer shows nothing new."""
    lines = [
        line if len(line) <= 300 else f"{line[:120]}… ({len(line)})" for line in text.split("\n")
    ]
    more = [f"… ({len(lines)} lines)"] if len(lines) > 25 else []
    return "\n".join(lines[:25] + more)


class _Run:
    """One start of the program."""

    def __init__(self, program: str, case: Case) -> None:
        self.requests: list[dict[str, Any]] = []
        self.answers = list(case.answers)
        with tempfile.TemporaryDirectory() as folder:
            self.home, self.work = Path(folder, "home"), Path(folder, "work")
            self._write(case)
            server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
            threading.Thread(target=server.serve_forever, daemon=True).start()
            environment = {
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "LANG": "C.UTF-8",
                "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_port}",
                "ANTHROPIC_API_KEY": "x",
                "DISABLE_AUTOUPDATER": "1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                **case.environment,
            }
            given = [arg.replace("<WORK>", str(self.work)) for arg in case.args]
            done = subprocess.run(
                [program, "-p", *given, "--", case.typed],
                cwd=self.work / case.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            server.shutdown()
            self.out = self._named(done.stdout.strip())
            self.problem = self._named(done.stderr.strip())

    def _write(self, case: Case) -> None:
        for folder in (self.home, self.work / case.folder):
            folder.mkdir(parents=True)
        projects = {str(self.work): {"hasTrustDialogAccepted": True}}
        state = {"hasCompletedOnboarding": True, "projects": projects}
        (self.home / ".claude.json").write_text(json.dumps(state))
        for name, text in case.files.items():
            where = self.home if name.startswith("~/") else self.work
            path = where / name.removeprefix("~/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        if case.repository:
            subprocess.run(["git", "init", "-q"], cwd=self.work, check=True)

    def sent(self) -> list[dict[str, Any]]:
        """What the main conversation and its sub-agents sent, each request without what an earlier
        one had."""
        found, earlier = list[dict[str, Any]](), set[str]()
        for request in self.requests:
            if not request.get("tools"):
                continue
            system = [block["text"] for block in request.get("system", [])]
            system = [text for text in system if not text.startswith("x-anthropic")]
            messages = [
                text for one in request["messages"] for text in _texts(one["role"], one["content"])
            ]
            new = {
                "model": request["model"],
                "system": [one for one in map(self._named, system) if one not in earlier],
                "messages": [one for one in map(self._named, messages) if one not in earlier],
                "tools": [f"tool {tool['name']}" for tool in request["tools"] if "name" in tool],
            }
            earlier.update([*new["system"], *new["messages"]])
            found.append(new)
        return found

    def _named(self, text: str) -> str:
        encoded = re.sub(r"[^A-Za-z0-9]", "-", str(self.work))
        text = text.replace(str(self.work), "<WORK>").replace(str(self.home), "<HOME>")
        return _SESSION.sub("<SESSION>", text.replace(encoded, "<PROJECT>"))


def _texts(role: str, content: Any) -> Iterator[str]:
    for block in [{"text": content}] if isinstance(content, str) else content:
        if "text" in block:
            yield f"{role}: {block['text']}"
        else:
            rest = {key: value for key, value in block.items() if key != "cache_control"}
            yield f"{role}: {json.dumps(rest, ensure_ascii=False)}"


def _handler(run: _Run) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base names it
            pass

        def do_GET(self) -> None:
            self._answer(b"{}", "application/json", 404)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
            if not self.path.split("?")[0].endswith("/v1/messages"):
                self._answer(b'{"input_tokens": 100}', "application/json")
                return
            run.requests.append(body)
            main = bool(body.get("tools"))
            answer = run.answers.pop(0) if main and run.answers else "ok"
            self._answer(_stream(answer), "text/event-stream")

        def _answer(self, data: bytes, kind: str, status: int = 200) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler


def _stream(answer: Any) -> bytes:
    """An answer: a text, or the name and the input of a call."""
    if isinstance(answer, str):
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta, stop = {"type": "text_delta", "text": answer}, "end_turn"
    else:
        name, given = answer
        block = {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": {}}
        delta, stop = {"type": "input_json_delta", "partial_json": json.dumps(given)}, "tool_use"
    usage = {"input_tokens": 10, "output_tokens": 5}
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
    }
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events).encode()


if __name__ == "__main__":
    main(sys.argv[1:])
