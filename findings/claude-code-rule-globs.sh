#!/usr/bin/env bash
# Claude Code 2.1.332 (npm, 2026-11-28): `paths` of a file in .claude/rules are lines of a
# .gitignore, from which a last `/**` is taken off first.
#
# Guesses before it was run: `sub/**` names only what lies below the folder `sub` of the project, as
# its `src/api/**` does in every example; behind `**/*.py`, `!src/**` takes the files below src out;
# names keep their letters, as the file system does.
# Seen, for a read of src/sub/a.py: `sub/**` holds (any folder `sub`, since `sub` is what is left of
# it), `[**/*.py, !src/**]` holds (nothing is taken out), `SRC/**` holds, `./src/**` does not.
#
# Who is hurt: who writes rules for one folder (`test/**`) and gets them for every folder of that
# name, and who takes files out of a rule.
set -euo pipefail

work=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; rm -rf "$work"' EXIT
npm install --prefix "$work/npm" --silent --no-audit --no-fund @anthropic-ai/claude-code@2.1.332
mkdir -p "$work/home" "$work/project/.claude/rules" "$work/project/src/sub"
cd "$work/project"
echo 'x = 1' >src/sub/a.py
rule() { printf -- '---\npaths: %s\n---\nRULE-%s\n' "$2" "$1" >".claude/rules/$1.md"; }
rule plain 'src/**'
rule elsewhere 'docs/**'
rule below 'sub/**'
rule taken-out "['**/*.py', '!src/**']"
rule letters 'SRC/**'
rule dotted './src/**'

cat >"$work/server.py" <<'PY'
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

CALL = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}}
calls = []

class Handler(BaseHTTPRequestHandler):
    def log_message(self, *args): pass
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        open(sys.argv[1] + "/sent", "ab").write(body + b"\n")
        first = b'"tools":[{' in body and not calls
        calls.extend([1] * first)
        block = CALL if first else {"type": "text", "text": ""}
        delta = ({"type": "input_json_delta", "partial_json": '{"file_path": "src/sub/a.py"}'}
                 if first else {"type": "text_delta", "text": "done"})
        usage = {"input_tokens": 1, "output_tokens": 1}
        events = [
            {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant",
             "model": "m", "content": [], "usage": usage}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "usage": usage,
             "delta": {"stop_reason": "tool_use" if first else "end_turn"}},
            {"type": "message_stop"}]
        out = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(out)))
        self.end_headers()
        self.wfile.write(out)

server = HTTPServer(("127.0.0.1", 0), Handler)
open(sys.argv[1] + "/port", "w").write(str(server.server_port))
server.serve_forever()
PY
python3 "$work/server.py" "$work" &
server=$!
until [ -s "$work/port" ]; do sleep 0.1; done
HOME="$work/home" ANTHROPIC_API_KEY=x ANTHROPIC_BASE_URL="http://127.0.0.1:$(cat "$work/port")" \
  DISABLE_AUTOUPDATER=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 \
  "$work/npm/node_modules/.bin/claude" -p 'Read src/sub/a.py' </dev/null >/dev/null

held=$(grep -ao 'RULE-[a-z-]*' "$work/sent" | sort -u | tr '\n' ' ')
echo "Claude Code 2.1.332 sent with src/sub/a.py: $held"
[ "$held" = 'RULE-below RULE-letters RULE-plain RULE-taken-out ' ]
