#!/usr/bin/env bash
# anthropic 2.14.0 with jiter 0.19.0 (PyPI, 2026-11-29): a tool call that max_tokens cuts off comes
# out of `messages.stream` with its strings whole or absent, but with half numbers and half lists,
# which look like any others.
#
# Best guesses, as a client that runs what it gets would rely on them:
#   1. Cut in a string: the string is left out.
#   2. Cut in a number (12 of 1200): left out, as it may go on.
#   3. Cut in a list ([1, 2 of [1, 2, 3]): only what a comma has ended, [1].
#   4. Cut in a list's object, before its second member: the object is left out.
#   5. Cut in `true`, or after "1.": left out.
#
# Seen: 1 and 5 hold. 2 gives the number 12, 3 gives [1, 2], 4 gives the object with one member.
#
# Who is hurt: whoever runs the calls of `get_final_message()`, or of a streamed snapshot, without a
# look at stop_reason: `{"timeout": 12}` is valid against any schema, as is a list of edits that
# lacks the last ones. Parsing the joined partial_json strictly tells them apart.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check anthropic==2.14.0 jiter==0.19.0
cat > cut.py <<'PY'
import http.server
import json
import threading

import anthropic

CUT = (
    '{"path": "src/ma',
    '{"timeout": 12',
    '{"rows": [1, 2',
    '{"edits": [{"old": "a", "new": "b"}, {"old": "c"',
    '{"all": tr',
    '{"share": 1.',
)
USAGE = {"input_tokens": 9, "output_tokens": 9}


class Server(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        call = {"type": "tool_use", "id": "toolu_1", "name": "work", "input": {}}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
        message |= {"model": "m", "stop_reason": None, "stop_sequence": None, "usage": USAGE}
        delta = {"type": "input_json_delta", "partial_json": request["messages"][0]["content"]}
        end = {"stop_reason": "max_tokens", "stop_sequence": None}
        for event in (
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": call},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": end, "usage": {"output_tokens": 9}},
            {"type": "message_stop"},
        ):
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
client = anthropic.Anthropic(api_key="none", base_url=url, max_retries=0)
for cut in CUT:
    asked = [{"role": "user", "content": cut}]
    with client.messages.stream(model="m", max_tokens=9, messages=asked) as stream:
        answer = stream.get_final_message()
    print(f"{cut} -> {json.dumps(answer.content[0].input)}, {answer.stop_reason}")
PY
seen=$(env/bin/python cut.py)
echo "$seen"
wanted='{"path": "src/ma -> {}, max_tokens
{"timeout": 12 -> {"timeout": 12}, max_tokens
{"rows": [1, 2 -> {"rows": [1, 2]}, max_tokens
{"edits": [{"old": "a", "new": "b"}, {"old": "c" -> {"edits": [{"old": "a", "new": "b"}, {"old": "c"}]}, max_tokens
{"all": tr -> {}, max_tokens
{"share": 1. -> {}, max_tokens'
[ "$seen" = "$wanted" ] || { echo "the stream has changed"; exit 1; }
