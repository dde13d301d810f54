#!/usr/bin/env bash
# anthropic 2.14.0 with httpx2 2.16.2 (PyPI, 2026-11-30): what goes wrong within a stream is none of
# the SDK's errors that say so. Two of four are no AnthropicError, one has the status 200, one is
# no error at all.
#
# Best guesses, from "all errors inherit from APIError", for `with client.messages.stream(…)` and an
# answer that has begun:
#   1. The connection breaks: APIConnectionError, as before the first byte.
#   2. Nothing comes for longer than `timeout`: APITimeoutError.
#   3. The event `error` with overloaded_error: the class of that error, as if it had come at once
#      (OverloadedError, 529), so that handlers by class and by status work.
#   4. The answer ends without message_stop, as when a proxy closes it in good order: an error.
#
# Seen: 1 is httpx2.RemoteProtocolError and 2 httpx2.ReadTimeout, raised past the SDK, and not what
# `except httpx.HTTPError` catches either. 3 is an APIStatusError with status_code 200. In 4
# `get_final_message()` returns the half as a message, its stop_reason None. None is tried again,
# whatever max_retries is; before the answer begins, 1, 2 and 3 are, and end as guessed.
#
# Who is hurt: an agent whose loop catches `anthropic.APIError`, or waits and tries again for some
# classes or a status of 500 and more: long answers, the ones that break, end its loop. The fourth
# goes on with half an answer, or half a call.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check anthropic==2.14.0 httpx2==2.16.2 2>/dev/null
cat > ask.py <<'PY'
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anthropic

MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
MESSAGE |= {"stop_reason": None, "stop_sequence": None}
TEXT = {"type": "text", "text": ""}
ERROR = {"type": "overloaded_error", "message": "Overloaded"}
asked = []


class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        when, how = request["messages"][0]["content"].split()
        asked.append(how)
        self.close_connection = True
        if when == "within" or how == "overloaded":
            self.send_response(200 if when == "within" else 529)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
        if when == "within":
            usage = {"input_tokens": 9, "output_tokens": 1}
            self.tell({"type": "message_start", "message": MESSAGE | {"usage": usage}})
            self.tell({"type": "content_block_start", "index": 0, "content_block": TEXT})
            delta = {"type": "text_delta", "text": "half of"}
            self.tell({"type": "content_block_delta", "index": 0, "delta": delta})
        if how == "overloaded":
            self.tell({"type": "error", "error": ERROR})
        if how in ("overloaded", "ends"):
            self.wfile.write(b"0\r\n\r\n")
        if how == "silent":
            time.sleep(1)

    def tell(self, event):
        data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
client = anthropic.Anthropic(api_key="none", base_url=url, max_retries=1, timeout=0.5)
WAYS = ("breaks", "silent", "overloaded")
for case in (*(f"before {how}" for how in WAYS), *(f"within {how}" for how in (*WAYS, "ends"))):
    asked.clear()
    question = [{"role": "user", "content": case}]
    try:
        with client.messages.stream(model="m", max_tokens=9, messages=question) as stream:
            answer = stream.get_final_message()
        seen = f"{answer.content[0].text!r}, {answer.stop_reason}"
    except Exception as error:
        ours = "" if isinstance(error, anthropic.AnthropicError) else ", no AnthropicError"
        status = getattr(error, "status_code", "")
        seen = f"{type(error).__module__}.{type(error).__name__} {status}".strip() + ours
    print(f"{case}: {seen}; asked {len(asked)} times")
PY
seen=$(env/bin/python ask.py 2>/dev/null)
echo "$seen"
wanted="before breaks: anthropic.APIConnectionError; asked 2 times
before silent: anthropic.APITimeoutError; asked 2 times
before overloaded: anthropic.OverloadedError 529; asked 2 times
within breaks: httpx2.RemoteProtocolError, no AnthropicError; asked 1 times
within silent: httpx2.ReadTimeout, no AnthropicError; asked 1 times
within overloaded: anthropic.APIStatusError 200; asked 1 times
within ends: 'half of', None; asked 1 times"
[ "$seen" = "$wanted" ] || { echo "the SDK has changed"; exit 1; }
