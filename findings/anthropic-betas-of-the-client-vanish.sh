#!/usr/bin/env bash
# anthropic 2.14.0 (PyPI, 2026-11-30): a beta that is set for the whole client (`default_headers=
# {"anthropic-beta": "a"}`) is gone in every request that names a beta of its own, also where the
# SDK names it by itself; and on Bedrock it is never switched on.
#
# Best guesses. The header is a list, and the SDK joins what comes together in one request:
#   1. No betas in the call: a.
#   2. `betas=["b"]` in the call: a and b.
#   3. `beta.messages.count_tokens(…)` without betas: a and the SDK's own, as the count is of the
#      request that will be sent with a.
#   4. Bedrock, which reads betas from the body (`anthropic_beta`): what stands in the header is
#      moved there, as it is for `betas=["b"]` and for a header of the call.
#   5. Bedrock, the client's default: the same.
#
# Seen: 1 and 4 hold. In 2 only b is sent, in 3 only token-counting. In 5 the header is sent, which
# the service doesn't read, and the body has no beta. No error in any of them.
#
# Who is hurt: whoever switches a beta on at one place (a longer context, a price, a way to cache)
# and adds another to one call: that one works, the first is off for this call. On Bedrock the first
# was never on. What is counted is another request than the one that is sent.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check anthropic==2.14.0 boto3==1.44.8 2>/dev/null
cat > ask.py <<'PY'
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import anthropic

sent = []


class Server(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        sent.append((self.headers["anthropic-beta"], body.get("anthropic_beta")))
        message = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
        message |= {"model": "m", "stop_reason": "end_turn", "stop_sequence": None}
        message |= {"usage": {"input_tokens": 9, "output_tokens": 9}, "input_tokens": 9}
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(message).encode())

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
place = {"base_url": f"http://127.0.0.1:{server.server_port}", "max_retries": 0}
ours = {"default_headers": {"anthropic-beta": "a"}}
keys = {"aws_access_key": "none", "aws_secret_key": "none", "aws_region": "us-east-1"}
api = anthropic.Anthropic(api_key="none", **place, **ours)
bedrock = anthropic.AnthropicBedrock(**keys, **place)
bedrock_ours = anthropic.AnthropicBedrock(**keys, **place, **ours)
asked = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
full = asked | {"max_tokens": 9}
api.beta.messages.create(**full)
api.beta.messages.create(**full, betas=["b"])
api.beta.messages.count_tokens(**asked)
bedrock.beta.messages.create(**full, betas=["b"])
bedrock.messages.create(**full, extra_headers={"anthropic-beta": "b"})
bedrock_ours.messages.create(**full)
bedrock_ours.beta.messages.create(**full, betas=["b"])
for number, (header, body) in zip(("1", "2", "3", "4", "4", "5", "2 and 5"), sent, strict=True):
    print(f"{number}: header {header}, body {body}")
PY
seen=$(env/bin/python ask.py)
echo "$seen"
wanted="1: header a, body None
2: header b, body None
3: header token-counting-2024-11-01, body None
4: header b, body ['b']
4: header b, body ['b']
5: header a, body None
2 and 5: header b, body ['b']"
[ "$seen" = "$wanted" ] || { echo "the client has changed"; exit 1; }
