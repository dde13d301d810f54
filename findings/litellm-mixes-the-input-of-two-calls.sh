#!/usr/bin/env bash
# LiteLLM 1.110.2: as a Messages API before chat completions, it writes the arguments of two calls
# that arrive in turns into one.
#
# Chat completions stream tool calls in pieces; each piece has the `index` of its call, the first
# one its id and name. LiteLLM translates such a stream into `content_block_*` events.
#
# Best guesses, written down before the run:
#   1. Pieces that alternate (index 0, 1, 0, 1) arrive under the block of their own call: that is
#      what the index is for, and the Messages API has an index for each block, too.
#   2. LiteLLM's own `stream_chunk_builder` puts the same pieces together by their index.
#   3. The same two calls one after the other come out right.
#
# Seen: the second and the third hold. In the first case the first call's block is closed empty as
# soon as the second one begins, and all pieces follow under the second: read_file gets {} and
# read_file gets {"path":{"path": "a.py"} "b.py"}. No error, stop reason tool_use.
#
# Who is hurt: every agent before LiteLLM whose model's server sends parallel calls side by side: one
# call runs without its arguments, where its tool needs none, and the other one is not JSON.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check "litellm==1.110.2" 2>/dev/null
cat > "$folder/upstream.py" <<'PY'
"""A server of chat completions: the model "turns" sends two calls in turns, "row" in a row."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def piece(index, arguments, id_=None):
    head = {"id": id_, "type": "function"} if id_ else {}
    function = {"arguments": arguments} | ({"name": "read_file"} if id_ else {})
    return {"tool_calls": [{"index": index, **head, "function": function}]}


BEGIN = [piece(0, "", "call_a"), piece(1, "", "call_b")]
A, B = [piece(0, '{"path":'), piece(0, ' "a.py"}')], [piece(1, '{"path":'), piece(1, ' "b.py"}')]
SCRIPTS = {
    "turns": [*BEGIN, A[0], B[0], A[1], B[1]],
    "row": [BEGIN[0], *A, BEGIN[1], *B],
}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        for delta in [*SCRIPTS[asked["model"]], None]:
            end = "tool_calls" if delta is None else None
            choice = {"index": 0, "delta": delta or {}, "finish_reason": end}
            self.wfile.write(f"data: {json.dumps(head | {'choices': [choice]})}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
PY
cat > "$folder/ask.py" <<'PY'
import asyncio
import json
import sys
from importlib.metadata import version

import litellm

BASE = {"api_base": f"http://127.0.0.1:{sys.argv[1]}/v1", "api_key": "x", "max_tokens": 100}
SAID = [{"role": "user", "content": "Read both."}]
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


async def as_messages(model):
    tools = [{"name": "read_file", "description": "Read.", "input_schema": SCHEMA}]
    stream = await litellm.anthropic.messages.acreate(
        model=f"hosted_vllm/{model}", messages=SAID, tools=tools, stream=True, **BASE
    )
    names, inputs, data = {}, {}, b""
    async for chunk in stream:
        data += chunk if isinstance(chunk, bytes) else f"data: {json.dumps(chunk)}\n\n".encode()
    for line in data.decode().splitlines():
        event = json.loads(line[5:]) if line.startswith("data:") else {}
        if event.get("type") == "content_block_start":
            names[event["index"]] = event["content_block"]["id"]
            inputs[event["index"]] = ""
        elif event.get("type") == "content_block_delta":
            inputs[event["index"]] += event["delta"]["partial_json"]
    return {names[index]: text for index, text in inputs.items()}


async def as_completion(model):
    tool = {"name": "read_file", "description": "Read.", "parameters": SCHEMA}
    stream = await litellm.acompletion(
        model=f"hosted_vllm/{model}", messages=SAID, stream=True,
        tools=[{"type": "function", "function": tool}], **BASE,
    )
    whole = litellm.stream_chunk_builder([chunk async for chunk in stream])
    return {call.id: call.function.arguments for call in whole.choices[0].message.tool_calls}


async def main():
    print("litellm", version("litellm"))
    right = {"call_a": '{"path": "a.py"}', "call_b": '{"path": "b.py"}'}
    assert await as_completion("turns") == right, "its own chunk builder mixes them, too"
    assert await as_messages("row") == right, "calls in a row are wrong, too"
    mixed = await as_messages("turns")
    print("calls in turns, as messages:", mixed)
    assert mixed == {"call_a": "", "call_b": '{"path":{"path": "a.py"} "b.py"}'}, "changed"
    print("calls in a row, and its own chunk builder:", right)


asyncio.run(main())
PY
python3 "$folder/upstream.py" > "$folder/port" & upstream=$!
trap 'kill "$upstream" 2>/dev/null || true; rm -rf "$folder"' EXIT
until [ -s "$folder/port" ]; do sleep 0.1; done
export LITELLM_LOCAL_MODEL_COST_MAP=True HOME="$folder"
"$folder/venv/bin/python" "$folder/ask.py" "$(cat "$folder/port")" 2> "$folder/errors" \
  || { tail -5 "$folder/errors"; exit 1; }
