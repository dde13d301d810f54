#!/usr/bin/env bash
# anthropic 2.14.0 (PyPI, 2026-11-30): a block of a type that the SDK doesn't know is an instance of
# TextBlock, and a change to one is a TextDelta.
#
# Best guesses. The API says that new types come, and the SDK has a class for each that it knows:
#   1. `isinstance(block, TextBlock)` is False for a block whose type is "hologram".
#   2. So `[b.text for b in answer.content if isinstance(b, TextBlock)]` is the answer's text.
#   3. In a stream `isinstance(event.delta, TextDelta)` tells text from other changes.
#   4. `case TextBlock(text=text)` matches blocks of text alone.
#   5. The block goes back to the server as it came.
#
# Seen: only 5 holds. The first class of the union is taken for what fits none, with the foreign
# type. Where the block has a `text` of its own, that counts as the answer's, in 3 and 4 as well;
# where it has none, `text`, which is declared as str, is None. `block.type` tells them apart, but
# a type checker takes it for "text" and what follows for unreachable.
#
# Who is hurt: whoever filters by class, as a checker likes it: an answer of a newer model or of
# another server, with one more kind of block, shows what never was for the reader, or ends in a
# TypeError at the first `join`.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check anthropic==2.14.0 2>/dev/null
cat > ask.py <<'PY'
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import anthropic
from anthropic.types import TextBlock, TextDelta

USAGE = {"input_tokens": 9, "output_tokens": 9}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "usage": USAGE}
MESSAGE |= {"stop_reason": None, "stop_sequence": None, "content": []}
END = {"stop_reason": "end_turn", "stop_sequence": None}
BLOCKS = [
    {"type": "text", "text": "answer"},
    {"type": "hologram", "text": "inner"},
    {"type": "hologram", "data": [1]},
]
EVENTS = [{"type": "message_start", "message": MESSAGE}]
for index, kind in enumerate(("text", "hologram")):
    block = {"type": kind, "text": ""}
    delta = {"type": f"{kind}_delta", "text": BLOCKS[index]["text"]}
    EVENTS += [
        {"type": "content_block_start", "index": index, "content_block": block},
        {"type": "content_block_delta", "index": index, "delta": delta},
        {"type": "content_block_stop", "index": index},
    ]
EVENTS += [{"type": "message_delta", "delta": END, "usage": USAGE}, {"type": "message_stop"}]


class Server(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        stream = asked.get("stream", False)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if stream else "application/json")
        self.end_headers()
        if stream:
            text = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in EVENTS)
        else:
            text = json.dumps(MESSAGE | END | {"content": BLOCKS})
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
client = anthropic.Anthropic(api_key="none", base_url=url, max_retries=0)
asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]}
answer = client.messages.create(**asked)
for block in answer.content:
    match block:
        case TextBlock(text=text):
            print(block.type, type(block).__name__, "with the text", text)
        case _:
            print(block.type, type(block).__name__)
print("as it came:", answer.content[2].to_dict() == BLOCKS[2])
with client.messages.stream(**asked) as stream:
    deltas = [e.delta for e in stream if e.type == "content_block_delta"]
print("shown:", [delta.text for delta in deltas if isinstance(delta, TextDelta)])
PY
seen=$(env/bin/python ask.py)
echo "$seen"
wanted="text TextBlock with the text answer
hologram TextBlock with the text inner
hologram TextBlock with the text None
as it came: True
shown: ['answer', 'inner']"
[ "$seen" = "$wanted" ] || { echo "the SDK has changed"; exit 1; }
