#!/usr/bin/env bash
# vscode-langservers-extracted 4.10.0 (vscode-css-language-server): a client that answers
# workspace/configuration with null, as the protocol asks of one that has no such setting, is told
# that every file is free of problems.
#
# Best guesses, written down before the run:
#   1. null for the section "css" means: the server's own defaults.
#   2. So a mistake in a file is found, as it is with {} for the same section; and what could not be
#      checked is answered with an error, not with a list.
#
# Seen: with {} the pulled report of `a { color: }` has a problem. With null it is "full" and empty,
# as for a file without any mistake; the reason ("Cannot read properties of null") is only logged.
#
# Who is hurt: editors and agents without settings for CSS; their files seem clean for ever.
# Answering {} for whole sections that nobody has set costs nothing and is understood.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{}' > package.json
npm install --silent --ignore-scripts --no-audit --no-fund vscode-langservers-extracted@4.10.0
cat > ask.mjs <<'JS'
// Opens a broken file, asks for its problems, and answers the server's question for settings.
import { spawn } from "node:child_process";
const setting = JSON.parse(process.argv[2]);
const server = spawn("node_modules/.bin/vscode-css-language-server", ["--stdio"]);
const uri = "file:///project/a.css";
let buffer = Buffer.alloc(0), logged = "";
const send = (message) => {
  const body = JSON.stringify({ jsonrpc: "2.0", ...message });
  server.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
};
const take = (message) => {
  if (message.method === "workspace/configuration")
    send({ id: message.id, result: message.params.items.map(() => setting) });
  else if (message.method === "window/logMessage") logged = message.params.message;
  else if (message.method && message.id !== undefined) send({ id: message.id, result: null });
  else if (message.id === 1) {
    send({ method: "initialized", params: {} });
    const textDocument = { uri, languageId: "css", version: 1, text: "a { color: }\n" };
    send({ method: "textDocument/didOpen", params: { textDocument } });
    send({ id: 2, method: "textDocument/diagnostic", params: { textDocument: { uri } } });
  } else if (message.id === 2) {
    const { kind, items } = message.result;
    console.log(JSON.stringify({ kind, problems: items.length, logged: logged.split(": ")[1] ?? "" }));
    server.kill();
  }
};
server.stdout.on("data", (data) => {
  buffer = Buffer.concat([buffer, data]);
  for (;;) {
    const end = buffer.indexOf("\r\n\r\n");
    if (end < 0) return;
    const length = Number(/Content-Length: (\d+)/i.exec(buffer.subarray(0, end))[1]);
    if (buffer.length < end + 4 + length) return;
    const body = buffer.subarray(end + 4, end + 4 + length).toString();
    buffer = buffer.subarray(end + 4 + length);
    take(JSON.parse(body));
  }
});
const capabilities = {
  workspace: { configuration: true },
  textDocument: { diagnostic: {} },
};
send({ id: 1, method: "initialize", params: { processId: null, rootUri: null, capabilities } });
JS
with_object=$(node ask.mjs '{}')
with_null=$(node ask.mjs null)
echo "vscode-css-language-server of vscode-langservers-extracted 4.10.0, a { color: }"
echo "settings {}:   $with_object"
echo "settings null: $with_null"
grep -q '"kind":"full","problems":1' <<< "$with_object"
grep -q '"kind":"full","problems":0' <<< "$with_null"
echo "null for the settings makes a broken file look clean"
