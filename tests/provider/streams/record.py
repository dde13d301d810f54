"""Ask real gateways, and write down the answers: `python -m tests.provider.streams.record OUT`.

Not a part of the suite: needs the package registries. The gateways are installed in a temporary
folder, at the versions below, and started before an upstream of their own (chat completions and
responses, from the scripts here); each is asked once for each script. Names after OUT choose some.
What is new in OUT belongs beside this file, with the record that a person made of it.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from tests.support.server_script import Json, encoded, events_of

ASKED: Final[Json] = {
    "max_tokens": 4000,
    "stream": True,
    "messages": [{"role": "user", "content": [{"type": "text", "text": "Look at a.py."}]}],
    "tools": [
        {
            "name": "read_file",
            "description": "Read a file.",
            "input_schema": {
                "type": "object",
                "properties": {"path": {"type": "string"}},
                "required": ["path"],
            },
        }
    ],
}
USAGE: Final = {"prompt_tokens": 40, "completion_tokens": 9, "total_tokens": 49}


def said(text: str) -> Json:
    return {"content": text}


def thought(text: str) -> Json:
    return {"reasoning_content": text}


def call(index: int, arguments: str, id_: str | None = None, name: str = "read_file") -> Json:
    function: Json = {"arguments": arguments} | ({"name": name} if id_ else {})
    head: Json = {"id": id_, "type": "function"} if id_ else {}
    return {"tool_calls": [{"index": index, **head, "function": function}]}


_BROKEN: Final[Json] = {
    "error": {"message": "Provider returned error", "code": 502, "metadata": {"raw": "overloaded"}}
}

SCRIPTS: Final[dict[str, list[Any]]] = {
    "text": [said("I'll "), said("look "), said("at it."), "stop"],
    "call": [call(0, "", "call_a"), call(0, '{"path"'), call(0, ': "a.py"}'), "tool_calls"],
    "text_call": [
        said("I'll look."), call(0, "", "call_a"), call(0, '{"path": "a.py"}'), "tool_calls",
    ],
    "parallel": [
        call(0, "", "call_a"), call(0, '{"path": "a.py"}'),
        call(1, "", "call_b"), call(1, '{"path": "b.py"}'), "tool_calls",
    ],
    "interleaved": [
        call(0, "", "call_a"), call(1, "", "call_b"), call(0, '{"path":'), call(1, '{"path":'),
        call(0, ' "a.py"}'), call(1, ' "b.py"}'), "tool_calls",
    ],
    "same_index": [
        call(0, '{"path": "a.py"}', "call_a"), call(0, '{"path": "b.py"}', "call_b"), "tool_calls",
    ],
    "whole_call": [call(0, '{"path": "a.py"}', "call_a"), "tool_calls"],
    "call_text": [call(0, '{"path": "a.py"}', "call_a"), said("Then more."), "tool_calls"],
    "thinking": [thought("It is "), thought("small."), said("Done."), "stop"],
    "thinking_call": [
        thought("Read it."), said("I'll look."), call(0, "", "call_a"),
        call(0, '{"path": "a.py"}'), "tool_calls",
    ],
    "late_thinking": [said("First."), thought("Hm."), said("Second."), "stop"],
    "cut_call": [call(0, "", "call_a"), call(0, '{"path": "a'), "length"],
    "length": [said("It goes on and"), "length"],
    "filtered": [said("I"), "content_filter"],
    "nothing": ["stop"],
    "error": [said("It be"), _BROKEN],
    "cut": [said("It be"), call(0, "", "call_a"), call(0, '{"pa')],
    "no_usage": [said("Fine."), "stop", None],
}  # fmt: skip


MESSAGES: Final[dict[str, Json]] = {
    "passed": {
        "thinking": "Read it.", "text": "I'll look.",
        "tools": [{"name": "read_file", "id": "toolu_1", "input": {"path": "a.py"}}],
        "usage": {"input_tokens": 30, "cache_read_input_tokens": 900},
    },
    "passed_search": {
        "content": [
            {"search": "holdfast"},
            {"found": [{"url": "https://example.org/", "title": "Example"}]},
            {"text": "It holds.", "cites": [{"url": "https://example.org/", "title": "Example"}]},
        ],
    },
    "passed_error": {"text": "It be", "error": "overloaded_error"},
    "passed_cut": {"text": "It be", "error": ""},
}  # fmt: skip
"""Answers of an upstream that speaks the Messages API (see `tests.support.server_script`)."""


def events(turn: Json) -> list[str]:
    """An answer of `MESSAGES` as the lines of an upstream that streams them."""
    error = turn.get("error")
    given = {name: value for name, value in turn.items() if name != "error"}
    lines = [encoded(event).decode() for event in events_of(given, 0, "claude-sonnet-5-5")]
    if error is None:
        return lines
    said: Json = {"type": "error", "error": {"type": error, "message": "Overloaded"}}
    return [*lines[:4], *([encoded(said).decode()] if error else [])]


def chunks(script: list[Any]) -> list[str]:
    """A script as the lines of an upstream that streams chat completions."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    lines: list[Json] = []
    for step in script:
        if step is _BROKEN:
            return [f"data: {json.dumps(one)}\n\n" for one in [*lines, _BROKEN]]
        if isinstance(step, dict):
            role = {} if lines else {"role": "assistant"}
            choice: Json = {"index": 0, "delta": role | step, "finish_reason": None}
            lines.append(head | {"choices": [choice]})
        elif step is not None:
            lines.append(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": step}]})
    if isinstance(script[-1], dict):
        return [f"data: {json.dumps(one)}\n\n" for one in lines]
    if script[-1] is not None:
        lines.append(head | {"choices": [], "usage": USAGE})
    return [*(f"data: {json.dumps(one)}\n\n" for one in lines), "data: [DONE]\n\n"]


def responses(script: list[Any]) -> list[str]:
    """A script as the lines of an upstream that streams OpenAI's Responses."""
    items: dict[str, Json] = {}
    events: list[Json] = []

    def item(key: str, **fields: Any) -> Json:
        if key not in items:
            items[key] = {"id": key, "status": "in_progress", **fields}
            at = {"output_index": len(items) - 1}
            events.append({"type": "response.output_item.added", "item": {**items[key]}, **at})
        return {"item_id": key, "output_index": list(items).index(key)}

    steps: list[Json] = [one for one in script if isinstance(one, dict)]
    for step in steps:
        if step is _BROKEN:
            events.append({"type": "error", "code": "server_error", "message": "overloaded"})
        elif "content" in step:
            at = item("msg_1", type="message", role="assistant", content=[])
            kind = "response.output_text.delta"
            events.append({"type": kind, "content_index": 0, "delta": step["content"], **at})
        elif "reasoning_content" in step:
            at = item("rs_1", type="reasoning", summary=[])
            kind, text = "response.reasoning_summary_text.delta", step["reasoning_content"]
            events.append({"type": kind, "summary_index": 0, "delta": text, **at})
        else:
            one: Json = step["tool_calls"][0]
            name = f"fc_{one['index']}"
            given: Json = {"call_id": one.get("id"), "name": "read_file", "arguments": ""}
            at = item(name, type="function_call", **given)
            piece: str = one["function"]["arguments"]
            kind = "response.function_call_arguments.delta"
            events.append({"type": kind, "delta": piece, **at})
    whole: Json = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m"}
    begin: Json = whole | {"status": "in_progress", "output": []}
    lines: list[Json] = [{"type": "response.created", "response": begin}, *events]
    if not isinstance(script[-1], dict):
        for at, done in enumerate(items.values()):
            kind, over = "response.output_item.done", {**done, "status": "completed"}
            lines.append({"type": kind, "output_index": at, "item": over})
        usage = {"input_tokens": 40, "output_tokens": 9, "total_tokens": 49}
        cut = "length" in script
        status = "incomplete" if cut else "completed"
        why = {"incomplete_details": {"reason": "max_output_tokens"}} if cut else {}
        ended = whole | why | {"status": status, "output": list(items.values()), "usage": usage}
        lines.append({"type": f"response.{status}", "response": ended})
    numbered = [{**one, "sequence_number": n} for n, one in enumerate(lines)]
    return [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in numbered]


async def upstream(port: int) -> asyncio.Server:
    """Start the model's side: the name of the model is that of its script."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            lengths = [line for line in head.split("\r\n") if line.startswith("content-length:")]
            body = b""
            if head.startswith("get"):
                writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                writer.close()
                return
            if lengths:
                body = await reader.readexactly(int(lengths[0].split(":")[1]))
            else:
                while (size := int(await reader.readline() or b"0", 16)) > 0:
                    body += await reader.readexactly(size)
                    await reader.readline()
            name = str(json.loads(body or b"{}").get("model", "text"))
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
            writer.write(b"connection: close\r\n\r\n")
            if "/responses" in head.partition("\r\n")[0]:
                lines = responses(SCRIPTS[name])
            else:
                lines = chunks(SCRIPTS[name]) if name in SCRIPTS else events(MESSAGES[name])
            for line in lines:
                writer.write(line.encode())
                await writer.drain()
                await asyncio.sleep(0.02)
        writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", port)


@dataclass(frozen=True)
class Gateway:
    """A gateway: how it is installed and started, given its folder, its port and the upstream's."""

    package: str
    version: str
    start: Callable[[Path, int, int], list[str]]
    with_npm: bool = False
    also: tuple[str, ...] = ()
    model: Callable[[str], str] = str
    speaks_messages: bool = False
    """True if its upstream may speak the Messages API, too."""

    def install(self, folder: Path) -> None:
        if self.with_npm:
            subprocess.run(["npm", "init", "-y"], cwd=folder, check=True, capture_output=True)
            asked = [f"{self.package}@{self.version}"]
            subprocess.run(
                ["npm", "install", "--ignore-scripts", "--no-audit", *asked], cwd=folder, check=True
            )
            return
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        asked = [f"{self.package}=={self.version}", *self.also]
        subprocess.run([folder / "venv/bin/pip", "install", "-q", *asked], check=True)


def _litellm(folder: Path, port: int, up: int) -> list[str]:
    models = [
        {
            "model_name": f"{via}-{name}",
            "litellm_params": {
                "model": f"{via}/{name}",
                "api_base": f"http://127.0.0.1:{up}" + ("" if via == "anthropic" else "/v1"),
                "api_key": "x",
            },
        }
        for via in ("hosted_vllm", "openai", "anthropic")
        for name in (MESSAGES if via == "anthropic" else SCRIPTS)
    ]
    settings = {"dangerously_permit_weak_or_unset_master_key": True}
    config = {"model_list": models, "general_settings": settings}
    (folder / "config.yaml").write_text(json.dumps(config))
    program = [str(folder / "venv/bin/litellm"), "--config", str(folder / "config.yaml")]
    return [*program, "--host", "127.0.0.1", "--port", str(port)]


def _responses_model(name: str) -> str:
    return f"openai-{name}"


def _litellm_model(name: str) -> str:
    return f"{'hosted_vllm' if name in SCRIPTS else 'anthropic'}-{name}"


def _ccr(folder: Path, port: int, up: int) -> list[str]:
    home = folder / "home/.claude-code-router"
    home.mkdir(parents=True, exist_ok=True)
    provider = {
        "name": "up",
        "api_base_url": f"http://127.0.0.1:{up}/v1/chat/completions",
        "api_key": "x",
        "models": list(SCRIPTS),
    }
    config = {"PORT": port, "LOG": False, "Providers": [provider], "Router": {"default": "up,text"}}
    (home / "config.json").write_text(json.dumps(config))
    return [
        "node",
        str(folder / "node_modules/@musistudio/claude-code-router/dist/cli.js"),
        "start",
    ]


def _ant2oai(folder: Path, port: int, up: int) -> list[str]:
    at = f"http://127.0.0.1:{up}/v1/chat/completions"
    return [str(folder / "venv/bin/a2o"), "--upstream", at, "--port", str(port)]


def _wire(folder: Path, port: int, up: int) -> list[str]:
    models = "".join(
        f'[[models]]\nid = "{name}"\ntarget = "http://127.0.0.1:{up}"\n'
        f'upstream_api = "chat_completions"\n\n'
        for name in SCRIPTS
    )
    (folder / "models.toml").write_text(f'[proxy]\ndefault_model = "text"\n\n{models}')
    program = str(folder / "venv/bin/agent-wire-proxy")
    return [program, "--listen", f"127.0.0.1:{port}", "--config", str(folder / "models.toml")]


_LITELLM: Final = Gateway(
    "litellm", "1.110.2", _litellm, model=_litellm_model, speaks_messages=True,
    also=(
        "fastapi", "uvicorn", "orjson", "apscheduler", "backoff", "pyjwt", "python-multipart",
        "cryptography", "email-validator", "rich", "websockets", "gunicorn", "uvloop",
        "fastapi-sso", "pynacl", "boto3", "mcp", "litellm-enterprise", "litellm-proxy-extras",
        "redis", "semver", "expression", "soundfile",
    ),
)  # fmt: skip
GATEWAYS: Final = {
    "litellm": _LITELLM,
    "responses": replace(_LITELLM, model=_responses_model, speaks_messages=False),
    "ccr": Gateway(
        "@musistudio/claude-code-router", "2.0.0", _ccr, with_npm=True, model="up,{}".format
    ),
    "ant2oai": Gateway("ant2oai", "0.1.6", _ant2oai),
    "wire": Gateway("agent-wire-proxy", "0.2.0", _wire),
}
"""By the first part of the names of their answers; `responses` is LiteLLM before such an API."""


def ask(port: int, model: str) -> tuple[int, str, bytes]:
    """One request; status, content type and the bytes of the answer's body."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/messages",
        json.dumps(ASKED | {"model": model}).encode(),
        {"content-type": "application/json", "x-api-key": "x", "anthropic-version": "2023-06-01"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            body = b""
            with suppress(Exception):  # cut: what came counts
                while piece := answer.read1():
                    body += piece
            return answer.status, answer.headers.get("content-type", ""), body
    except urllib.error.HTTPError as error:
        return error.code, error.headers.get("content-type", ""), error.read()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


async def recorded(name: str, gateway: Gateway, folder: Path, out: Path) -> None:
    port, up = free_port(), free_port()
    model_side = await upstream(up)
    home = folder / "home"
    home.mkdir(exist_ok=True)
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    with (folder / "log.txt").open("wb") as log:
        program = subprocess.Popen(  # noqa: ASYNC220 - nothing else is under way
            gateway.start(folder, port, up), cwd=folder, env=env, stdout=log, stderr=log
        )
    try:
        for _ in range(600):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.1):
                break
            if program.poll() is not None:
                raise SystemExit(f"{name} ended: see {folder / 'log.txt'}")
            await asyncio.sleep(0.2)
        for script in [*SCRIPTS, *(MESSAGES if gateway.speaks_messages else ())]:
            try:
                status, kind, body = await asyncio.to_thread(ask, port, gateway.model(script))
            except OSError as error:
                print(name, script, error)
                continue
            print(name, script, status, kind, len(body))
            (out / f"{name}-{script}.sse").write_bytes(body)
            head = {"server": f"{gateway.package} {gateway.version}", "case": script}
            head |= {"status": status, "content_type": kind}
            (out / f"{name}-{script}.head.json").write_text(json.dumps(head))
    finally:
        program.terminate()
        program.wait(20)
        model_side.close()


def main() -> None:
    out, names = Path(sys.argv[1]), sys.argv[2:] or list(GATEWAYS)
    out.mkdir(exist_ok=True)
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            # Installed already, in a folder of that name: HOLDFAST_GATEWAYS says where.
            kept = os.environ.get("HOLDFAST_GATEWAYS")
            place = Path(kept) / name if kept else Path(folder)
            if not kept:
                GATEWAYS[name].install(place)
            asyncio.run(recorded(name, GATEWAYS[name], place, out))


if __name__ == "__main__":
    main()
