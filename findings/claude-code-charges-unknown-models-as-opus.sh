#!/usr/bin/env bash
# Claude Code 2.1.332 (npm, 2026-11-30): a model that it doesn't know, such as a local one behind a
# gateway, costs what Claude Opus 5.5 costs, and `--max-budget-usd` ends a run for it.
#
# Best guesses, for a Messages server of one's own (ANTHROPIC_BASE_URL) with `gpt-oss-20b`, which
# counts a million tokens of input:
#   1. `total_cost_usd` is 0, null or absent: no price is known, and nothing is paid here.
#   2. `--max-budget-usd 1` doesn't end the run, or says before it that it cannot be kept.
#   3. A gateway's name for a small model that isn't in the list, `my-haiku`: as 1.
#   4. `anthropic/claude-haiku-4.5`, as gateways call it: Haiku's price.
#
# Seen: only 4 holds. 1 and 3 are 4 dollars, as with claude-opus-5-5. 2 ends with exit 1,
# error_max_budget_usd, and without the answer, which had come. The one sign in the result is
# modelUsage's costBasis, "unknown" instead of "list".
#
# Who is hurt: whoever adds up costs of runs over other models, or guards a script with a budget: the
# sum is of money that nobody paid, and free runs fail.
set -euo pipefail
work=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; rm -rf "$work"' EXIT
npm install --prefix "$work/npm" --silent --no-audit --no-fund @anthropic-ai/claude-code@2.1.332
mkdir -p "$work/home" "$work/project"
cd "$work/project"
cat >"$work/server.py" <<'PY'
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        usage = {"input_tokens": 1_000_000, "output_tokens": 0}
        message = {"id": "m", "type": "message", "role": "assistant", "content": []}
        message |= {"model": asked["model"], "usage": usage}
        events = [
            {"type": "message_start", "message": message},
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
cat >"$work/cost.py" <<'PY'
import json, sys

result = json.load(sys.stdin)
(used,) = result["modelUsage"].values()
print(result["subtype"], result.get("result"), f"{result['total_cost_usd']:.2f}", used["costBasis"])
PY
python3 "$work/server.py" "$work" &
server=$!
until [ -s "$work/port" ]; do sleep 0.1; done
ask() {
  local code=0
  HOME="$work/home" ANTHROPIC_API_KEY=x ANTHROPIC_BASE_URL="http://127.0.0.1:$(cat "$work/port")" \
    DISABLE_AUTOUPDATER=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 \
    "$work/npm/node_modules/.bin/claude" -p hello --output-format json --model "$@" \
    </dev/null >"$work/answer" 2>/dev/null || code=$?
  echo "$*: exit $code, $(python3 "$work/cost.py" <"$work/answer")"
}
seen=$(
  ask claude-opus-5-5
  ask gpt-oss-20b
  ask gpt-oss-20b --max-budget-usd 1
  ask my-haiku
  ask anthropic/claude-haiku-4.5
)
echo "$seen"
wanted='claude-opus-5-5: exit 0, success ok 4.00 list
gpt-oss-20b: exit 0, success ok 4.00 unknown
gpt-oss-20b --max-budget-usd 1: exit 1, error_max_budget_usd None 4.00 unknown
my-haiku: exit 0, success ok 4.00 unknown
anthropic/claude-haiku-4.5: exit 0, success ok 1.00 list'
[ "$seen" = "$wanted" ] || { echo "Claude Code has changed"; exit 1; }
