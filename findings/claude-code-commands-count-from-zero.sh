#!/usr/bin/env bash
# Claude Code 2.1.332 (npm, 2026-11-28): words of a command count from zero, and a word that is
# missing stays as it is written.
#
# Best guesses, written down before the run, for `/go one "two words" three` and a body with each:
#   1. As in a shell and in older examples, $1 is `one`, $2 is `two words`, $0 the command's name.
#   2. $ARGUMENTS[1] is the second word, since brackets count from zero, without its quotes.
#   3. A word that is not given ($9) is empty.
#   4. `${CLAUDE_PROJECT_DIR}`, known from hooks, is left to the shell in a command's text.
#
# Seen: only the second holds. $0 is `one`, $1 is `two words`, $9 stays `$9`, and the folder of the
# project is put in.
#
# Who is hurt: whoever shares commands that were written for $1 with another agent, or takes them
# over: each word is the neighbour of what was meant.
set -euo pipefail
work=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; rm -rf "$work"' EXIT
npm install --prefix "$work/npm" --silent --no-audit --no-fund @anthropic-ai/claude-code@2.1.332
mkdir -p "$work/home" "$work/project/.claude/commands"
cd "$work/project"
cat > .claude/commands/go.md <<'MD'
BEGIN zero=$0; one=$1; nine=$9; bracket=$ARGUMENTS[1]; all=$ARGUMENTS; folder=${CLAUDE_PROJECT_DIR}; END
MD
cat >"$work/server.py" <<'PY'
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        with open(sys.argv[1] + "/sent", "ab") as file:
            file.write(body + b"\n")
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []}
        events = [
            {"type": "message_start", "message": {**message, "usage": usage}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ok"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "usage": usage, "delta": {"stop_reason": "end_turn"}},
            {"type": "message_stop"},
        ]
        out = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(out)))
        self.end_headers()
        self.wfile.write(out)


server = HTTPServer(("127.0.0.1", 0), Handler)
with open(sys.argv[1] + "/port", "w") as file:
    file.write(str(server.server_port))
server.serve_forever()
PY
python3 "$work/server.py" "$work" &
server=$!
until [ -s "$work/port" ]; do sleep 0.1; done
HOME="$work/home" ANTHROPIC_API_KEY=x ANTHROPIC_BASE_URL="http://127.0.0.1:$(cat "$work/port")" \
  DISABLE_AUTOUPDATER=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 \
  "$work/npm/node_modules/.bin/claude" -p '/go one "two words" three' </dev/null >/dev/null
python3 - "$work" <<'PY'
import json, re, sys

sent = [json.loads(line) for line in open(sys.argv[1] + "/sent", encoding="utf-8")]
texts = re.findall(r"BEGIN (.*?) END", " ".join(json.dumps(one["messages"]) for one in sent))
seen = dict(part.split("=", 1) for part in texts[0].rstrip(";").split("; "))
seen["folder"] = str(seen["folder"] == sys.argv[1] + "/project")
print("Claude Code 2.1.332:", seen)
assert (seen["zero"], seen["one"], seen["nine"]) == ("one", "two words", "$9"), "words count otherwise now"
assert seen["bracket"] == "two words"
assert seen["folder"] == "True", "the folder is left alone now"
PY
