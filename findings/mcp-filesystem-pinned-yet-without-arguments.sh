#!/usr/bin/env bash
# @modelcontextprotocol/server-filesystem 0.6.2 (2024), installed today by its exact version: its
# tools have lost their arguments.
#
# Best guesses, written down before the run:
#   1. A server that is pinned lists in 2026 what it listed in 2024: nine tools, all but one with
#      arguments ("path", "paths", "content" …), and `"type": "object"`.
#   2. If one of its own dependencies had moved on in a way that breaks it, it would not start.
#   3. A call with the arguments of old still works.
#
# Seen: it starts and the calls work, but their inputSchema is `{"$schema": …}` alone, without type or
# properties. It imports zod, which it does not name: npm puts 4.6.7 there, which is what its other
# dependency zod-to-json-schema 3.25.2 admits as a peer and turns into an empty schema, without a
# word. With zod 3.25.76 beside it all arguments are there. Exact versions of all three are set here,
# as npm chose them on 2026-11-28.
#
# Who is hurt: whoever pins a server for reproducibility: a client that demands `type` loses it, and
# any other shows a model tools without arguments.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/ask.mjs" <<'JS'
import { spawn } from "node:child_process";
const server = spawn("node", [process.argv[2], process.argv[3]], { stdio: ["pipe", "pipe", "ignore"] });
const say = (message) => server.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
let text = "";
const answers = {};
server.stdout.on("data", (data) => {
  text += data;
  for (const line of text.split("\n").slice(0, -1)) {
    const one = JSON.parse(line);
    answers[one.id] = one.result;
  }
  text = text.slice(text.lastIndexOf("\n") + 1);
  if (answers[1] && !answers.told) {
    answers.told = true;
    say({ method: "notifications/initialized" });
    say({ id: 2, method: "tools/list", params: {} });
    say({ id: 3, method: "tools/call", params: { name: "list_directory", arguments: { path: process.argv[3] } } });
  }
  if (answers[2] && answers[3]) {
    const tools = answers[2].tools;
    const described = tools.filter((tool) => Object.keys(tool.inputSchema.properties ?? {}).length).length;
    console.log(JSON.stringify({ tools: tools.length, described, works: answers[3].content[0].text.trim() }));
    server.kill();
  }
});
say({ id: 1, method: "initialize", params: { protocolVersion: "2024-11-05", capabilities: {}, clientInfo: { name: "a", version: "1" } } });
JS
mkdir "$folder/data"
echo text > "$folder/data/file.txt"
for zod in 4.6.7 3.25.76; do
  mkdir "$folder/$zod"
  (cd "$folder/$zod" && echo '{"private": true}' > package.json &&
    npm install --silent --no-audit --no-fund "@modelcontextprotocol/server-filesystem@0.6.2" \
      "zod@$zod" "zod-to-json-schema@3.25.2" > /dev/null 2>&1)
  node "$folder/ask.mjs" \
    "$folder/$zod/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js" \
    "$folder/data" > "$folder/$zod.json"
  echo "zod $zod: $(cat "$folder/$zod.json")"
done
python3 - "$folder" <<'PY'
import json, pathlib, sys

new, old = (json.loads((pathlib.Path(sys.argv[1]) / f"{zod}.json").read_text()) for zod in ("4.6.7", "3.25.76"))
assert new["tools"] == old["tools"] > 8
assert new["works"] == old["works"] == "[FILE] file.txt"
assert old["described"] == old["tools"] - 1, old
assert new["described"] == 0, "the arguments are back"
PY
