#!/usr/bin/env bash
# anthropic 2.14.0 (PyPI, 2026-11-29): `client.beta.messages.tool_runner` leaves the conversation at
# the server. Its second request holds the tool's result and nothing else, also where the server has
# never said that it keeps a thread.
#
# Best guesses, from `messages.create` and the runner's loop:
#   1. The second request has three messages: the prompt, the answer with the call, the result.
#   2. It names the tools and the system prompt again.
#   3. Where the answer doesn't mention a thread, as of a server or gateway that ignores the field,
#      the whole conversation is sent, or an error is raised.
#
# Seen: the first request asks for `"thread": {"type": "create"}`; the second has one message, the
# result, neither tools nor system, and `"thread": {"type": "continue", …}` with the answer's id. The
# server's silence about threads changes nothing: the loop ends well.
#
# Who is hurt: whoever points the runner at a gateway that passes over fields it doesn't know (the
# model then sees a result without a question, and nobody is told), or reads requests off the wire to
# see what is in the context. Own loops over `messages.create` send it all.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check anthropic==2.14.0
cat > run.py <<'PY'
import http.server
import json
import threading

import anthropic

requests = []
CALL = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Bergen"}}
ANSWERS = (([CALL], "tool_use"), ([{"type": "text", "text": "Rain."}], "end_turn"))


class Server(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        content, reason = ANSWERS[len(requests) - 1]
        answer = {"id": f"msg_{len(requests)}", "type": "message", "role": "assistant"}
        answer |= {"model": "m", "content": content, "stop_reason": reason, "stop_sequence": None}
        body = json.dumps(answer | {"usage": {"input_tokens": 9, "output_tokens": 9}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@anthropic.beta_tool
def weather(city: str) -> str:
    """Say how the weather is.

    Args:
        city: where
    """
    return "Rain."


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
client = anthropic.Anthropic(api_key="none", base_url=url, max_retries=0)
asked = [{"role": "user", "content": "Will I need a coat?"}]
runner = client.beta.messages.tool_runner(
    model="m", max_tokens=99, system="Be brief.", messages=asked, tools=[weather]
)
print("last:", runner.until_done().content[0].text)
for request in requests:
    kinds = [
        message["content"] if isinstance(message["content"], str) else message["content"][0]["type"]
        for message in request["messages"]
    ]
    has = [name for name in ("system", "tools") if name in request]
    print(kinds, has, json.dumps(request.get("thread")))
PY
seen=$(env/bin/python run.py)
echo "$seen"
wanted='last: Rain.
['"'Will I need a coat?'] ['system', 'tools'] "'{"type": "create"}
['"'tool_result'] [] "'{"type": "continue", "previous_message_id": "msg_1"}'
[ "$seen" = "$wanted" ] || { echo "the runner has changed"; exit 1; }
