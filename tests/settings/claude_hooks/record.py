"""Run the real Claude Code again on the cases of `hooks.jsonl`, and write down what it does:
`python -m tests.settings.claude_hooks.record OUT.jsonl [CASE …]` (beginnings of names).

Not a part of the suite: it installs the pinned program with npm in a temporary folder (or takes the
one that CLAUDE_CODE names), and starts it with a home of its own against a server on the loopback,
which answers by a script. Kept is what its hooks were given and what it sent, without paths.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from tests.settings.claude_hooks import ALLOW, EVENTS, LOG, USUAL, cases

PACKAGE: Final = "@anthropic-ai/claude-code@2.1.332"
SHOWN: Final = 400
"""Characters of a text that are kept."""
INPUTS: Final = ("case", "prompt", "settings", "files", "home", "env", "args", "turns")
COMMON: Final = {"session_id", "transcript_path", "cwd", "prompt_id", "hook_event_name"}
DENIED: Final[dict[str, Any]] = {
    "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": "by http",
    }
}
JUDGED: Final = '{"ok": false, "reason": "the judge says no"}'
"""The answer of a model that is not asked for the conversation."""
ERRORS: Final = {400: "invalid_request_error", 401: "authentication_error", 500: "api_error"}


class Server:
    """A Messages API that answers by a script, and keeps what it is asked."""

    def __init__(self, turns: Sequence[Any]) -> None:
        self.turns = list(turns)
        self.requests: list[dict[str, Any]] = []
        self.posts: list[dict[str, Any]] = []
        self.lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002 - its name

            def do_GET(self) -> None:
                self.answer({"data": [], "has_more": False})

            def do_POST(self) -> None:
                size = int(self.headers.get("content-length") or 0)
                body = json.loads(self.rfile.read(size) or b"{}")
                if self.path.startswith("/hook"):
                    token = self.headers.get("X-Token")
                    outer.posts.append({"path": self.path, "body": body, "token": token})
                    self.answer(DENIED)
                elif self.path.partition("?")[0].endswith("/messages"):
                    self.answer(*outer.answered(body), stream=bool(body.get("stream")))
                else:
                    self.answer({"input_tokens": 100})

            def answer(self, value: Any, status: int = 200, *, stream: bool = False) -> None:
                stream = stream and status == 200
                data = as_stream(value) if stream else json.dumps(value).encode()
                self.send_response(status)
                kind = "text/event-stream" if stream else "application/json"
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def answered(self, body: dict[str, Any]) -> tuple[dict[str, Any], int]:
        """The answer to a request, and its status."""
        tools: list[dict[str, Any]] = body.get("tools") or []
        main = bool({"Bash", "Read"} & {one.get("name") for one in tools})
        with self.lock:
            turn = self.turns.pop(0) if main and self.turns else [{"text": "done"}]
            self.requests.append(body | {"main": main})
            n = sum(one["main"] for one in self.requests)
        if not main:
            turn = [{"text": JUDGED}]
        if isinstance(turn, int):
            error = {"type": ERRORS[turn], "message": "scripted"}
            return {"type": "error", "error": error}, turn
        content = [
            {"type": "text", "text": one["text"]}
            if "text" in one
            else {
                "type": "tool_use",
                "id": f"toolu_{n:02}{i:02}",
                "name": one["tool"],
                "input": one["input"],
            }
            for i, one in enumerate(turn)
        ]
        calls = any(block["type"] == "tool_use" for block in content)
        return {
            "id": f"msg_{len(self.requests):04}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model"),
            "content": content,
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }, 200


def as_stream(message: dict[str, Any]) -> bytes:
    """A message as server-sent events."""
    begun: dict[str, Any] = {**message, "content": [], "stop_reason": None}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
    for n, block in enumerate(message["content"]):
        if block["type"] == "text":
            start: dict[str, Any] = {"text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            given = json.dumps(block["input"])
            start = {"input": {}}
            delta = {"type": "input_json_delta", "partial_json": given}
        events += [
            {"type": "content_block_start", "index": n, "content_block": block | start},
            {"type": "content_block_delta", "index": n, "delta": delta},
            {"type": "content_block_stop", "index": n},
        ]
    end = {key: message[key] for key in ("stop_reason", "stop_sequence")}
    events += [
        {"type": "message_delta", "delta": end, "usage": message["usage"]},
        {"type": "message_stop"},
    ]
    lines = (f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)
    return "".join(lines).encode()


def run(program: str, case: dict[str, Any], root: Path) -> dict[str, Any]:
    """Run one case in an empty folder; return its inputs and all that was seen."""
    home, work, log = root / "home", root / "work", root / "log"
    for folder in (home / ".claude", work / ".claude", log):
        folder.mkdir(parents=True)
    server = Server([])

    def placed(value: object) -> Any:
        text = json.dumps(value).replace("http://server", server.url)
        return json.loads(text.replace("/project", str(work)).replace("/home/", f"{home}/"))

    server.turns = placed(case["turns"])
    settings = case["settings"]
    if case["case"].startswith("all"):
        runs = {event: [{"hooks": [_kept(event)]}] for event in EVENTS}
        settings = settings | {"hooks": runs}
    write(home / ".claude/settings.json", placed(settings))
    for folder, files in ((work, "files"), (home, "home")):
        for name, content in case.get(files, {}).items():
            write(folder / name, placed(content))
    arguments = ["-p", case["prompt"], "--output-format", "stream-json", "--verbose"]
    done = subprocess.run(
        [program, *arguments, *case.get("args", [])],
        cwd=work,
        env=environment(home, log, server) | case.get("env", {}),
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    server.http.shutdown()
    places = [(work, "/project"), (home, "/home"), (root, "/root")]
    clean = _cleaner([*((str(path), name) for path, name in places), (server.url, "http://server")])
    printed = [one for one in done.stdout.splitlines() if one.startswith("{")]
    lines: list[dict[str, Any]] = list(map(json.loads, printed))
    inits = [one for one in lines if one.get("subtype") == "init"]
    init = inits[0] if inits else dict[str, Any]()
    results, said = heard(server, clean)
    seen = {
        **{key: case[key] for key in INPUTS if key in case},
        "given": {file.name: given_to(file, clean) for file in sorted(log.iterdir())},
        "results": results,
        "said": said,
        "notices": [
            one["content"][:SHOWN] for one in lines if one.get("subtype") == "informational"
        ],
        "ends": [
            [one.get("terminal_reason"), one.get("result", "")[:SHOWN]]
            for one in lines
            if one.get("type") == "result"
        ],
        "mode": init.get("permissionMode"),
        "model": init.get("model"),
        "posts": server.posts,
        "judged": sum(not request["main"] for request in server.requests),
        "exit": done.returncode,
        "stderr": done.stderr[-SHOWN:],
        "made": sorted(str(p.relative_to(work)) for p in work.rglob("*") if p.is_file()),
    }
    return json.loads(clean(json.dumps(seen)))


def environment(home: Path, log: Path, server: Server) -> dict[str, str]:
    return {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "HOOK_LOG": str(log),
        "ANTHROPIC_API_KEY": "x",
        "ANTHROPIC_BASE_URL": server.url,
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "MY_TOKEN": "t0k",
    }


def write(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))


def _kept(name: str) -> dict[str, str]:
    return {"type": "command", "command": LOG.format(name=name)}


def _cleaner(names: list[tuple[str, str]]) -> Callable[[str], str]:
    def clean(text: str) -> str:
        for path, name in names:
            text = text.replace(path, name).replace(path.replace("/", "-"), name.replace("/", "-"))
        text = re.sub(r"-tmp-cc-[\w-]*?-work", "-work", text)
        return re.sub(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID", text)

    return clean


def heard(server: Server, clean: Callable[[str], str]) -> tuple[dict[str, str], list[str]]:
    """The results that the model got by the ids of their calls, and what of hooks it was told."""
    results: dict[str, str] = {}
    said: dict[str, None] = {}
    messages = [m for r in server.requests if r["main"] for m in r["messages"]]
    for message in messages:
        content: list[dict[str, Any]] | str = message["content"]
        blocks = content if isinstance(content, list) else [{"text": content}]
        for block in blocks:
            value: object = block.get("content", block.get("text", ""))
            told = clean(value if isinstance(value, str) else json.dumps(value))
            if block.get("type") == "tool_result":
                results.setdefault(str(block.get("tool_use_id")), told[:SHOWN])
            elif message["role"] != "assistant" and "hook" in told[:200]:
                said[told[:SHOWN]] = None
    return results, list(said)


def given_to(file: Path, clean: Callable[[str], str]) -> list[Any]:
    """What a hook was given, a value a line; or the lines that it wrote."""
    lines = clean(file.read_text()).splitlines()
    try:
        return [json.loads(line) for line in lines]
    except ValueError:
        return lines


def reduced(seen: dict[str, Any]) -> dict[str, Any]:
    """A case without what is the same in all of them: of what hooks got, only the cases with every
    event keep more than how often. `[log NAME]` stands for the beginning of a hook."""
    given: dict[str, Any] = {}
    for name, runs in seen["given"].items():
        whole: list[dict[str, Any]] = [one for one in runs if isinstance(one, dict)]
        given[name] = len(whole) or [one for one in runs if not _of_one_run(str(one))]
        if seen["case"].startswith("all"):
            given[name] = {k: v for k, v in whole[-1].items() if k not in COMMON}
    text = json.dumps(seen | {"given": given}, ensure_ascii=False)
    text = re.sub(r"d=\$\(cat\); printf .{12,30}?HOOK_LOG/([\w ]+)\W*; ?", r"[log \1]", text)
    kept = json.loads(text)
    if kept["settings"].get("permissions") == ALLOW["permissions"]:
        del kept["settings"]["permissions"]
    kept = {k: v for k, v in kept.items() if v not in ([], {}, "", None)}
    return {k: v for k, v in kept.items() if k not in USUAL or USUAL[k] != v}


def _of_one_run(line: str) -> bool:
    return re.match(r"\w+_(TOKEN|SOCKET|PID|NOTES_DIR|KEY)=", line) is not None


@contextmanager
def installed() -> Generator[str]:
    """The pinned program."""
    if given := os.environ.get("CLAUDE_CODE"):
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "install", "--silent", "--no-save", PACKAGE], cwd=folder, check=True)
        yield f"{folder}/node_modules/.bin/claude"


def main(out: str, *names: str) -> None:
    with installed() as program, Path(out).open("w", encoding="utf-8") as file:
        for name, case in cases().items():
            if names and not name.startswith(names):
                continue
            with tempfile.TemporaryDirectory(prefix="cc-") as root:
                row = reduced(run(program, case, Path(root)))
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            file.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
