#!/usr/bin/env bash
# anthropic 2.14.0 with pydantic 2.14.4 (PyPI, 2026-11-30): `messages.parse(output_format=Model)`
# turns a field `dict[str, int]` into a schema that nothing but {} fits, and sends it.
#
# Best guesses, from the model's own schema ({"type": "object", "additionalProperties": {"type":
# "integer"}}) and from what the SDK does with other keywords that the API doesn't take:
#   1. A limit (`ge=1`) moves into the description: the model can still keep to it.
#   2. `dict[str, int]` is refused before anything is sent, as a field of type Any is, or what its
#      values are moves into the description, too.
#   3. A model with `extra="allow"` stays open, or is refused.
#   4. `tuple[int, str]` keeps its members' types in `prefixItems` or `items`.
#
# Seen: 1 holds, and a field of type Any raises ValueError. In 2 and 3 additionalProperties becomes
# false, without a word anywhere: the object of the dict has no property, so the constrained answer
# can be {} alone, which `parsed_output` takes for a valid one. 4 is a list of anything, with a
# description of its members.
#
# Who is hurt: whoever has a model count, label or map (counts by file, translations by key): each
# answer is empty, is billed, and looks like "there was nothing". A list of pairs, as objects with
# two named fields, works.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check anthropic==2.14.0 pydantic==2.14.4 2>/dev/null
cat > ask.py <<'PY'
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import anthropic
from pydantic import BaseModel, ConfigDict, Field

sent = []


class Server(BaseHTTPRequestHandler):
    def do_POST(self):
        sent.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        answer = {"counts": {}, "size": 1, "pair": [1, "a"], "open": {}}
        text = {"type": "text", "text": json.dumps(answer)}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [text]}
        message |= {"model": "m", "stop_reason": "end_turn", "stop_sequence": None}
        body = json.dumps(message | {"usage": {"input_tokens": 9, "output_tokens": 9}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Words(BaseModel):
    counts: dict[str, int]
    size: int = Field(ge=1)
    pair: tuple[int, str]
    open: Open


class Anything(BaseModel):
    value: Any


server = HTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
client = anthropic.Anthropic(api_key="none", base_url=url, max_retries=0)
asked = [{"role": "user", "content": "Count the words of each file."}]
answer = client.messages.parse(model="m", max_tokens=9, messages=asked, output_format=Words)
schema = sent[0]["output_config"]["format"]["schema"]


def shown(name, part):
    part = {key: value for key, value in part.items() if key != "title"}
    print(name, json.dumps(part, sort_keys=True).replace("'", ""))


for name in ("counts", "size", "pair"):
    shown(name, schema["properties"][name])
shown("open", schema["$defs"]["Open"])
print("parsed", answer.parsed_output.counts)
try:
    client.messages.parse(model="m", max_tokens=9, messages=asked, output_format=Anything)
except ValueError:
    print("Any is refused;", len(sent), "request was sent")
PY
seen=$(env/bin/python ask.py)
echo "$seen"
wanted='counts {"additionalProperties": false, "properties": {}, "type": "object"}
size {"description": "{minimum: 1}", "type": "integer"}
pair {"description": "{maxItems: 2, prefixItems: [{type: integer}, {type: string}], minItems: 2}", "type": "array"}
open {"additionalProperties": false, "properties": {}, "type": "object"}
parsed {}
Any is refused; 1 request was sent'
[ "$seen" = "$wanted" ] || { echo "the schema has changed"; exit 1; }
