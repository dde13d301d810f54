#!/usr/bin/env bash
# typescript-language-server 5.3.0 with TypeScript 5.9.3: an edit that leaves a clean file clean is
# answered by nothing, one that leaves an error where it was is answered again.
#
# Best guesses, written down before the run:
#   1. Each change of an open document is answered by one publishDiagnostics, an empty one if there
#      is nothing to say: a client cannot know otherwise that the server has looked.
#   2. If lists that did not change were left out, that would hold for lists with problems, too.
#   3. A list carries the version of the document, which LSP 3.15 has a field for, if the client says
#      that it supports it.
#
# Seen: none of the three. The first empty list is published; the next clean edits get none, for as
# long as one waits (3 s here). The same error at the same place is published with each edit. No list
# carries a version.
#
# Who is hurt: whoever waits for the answer to an edit: a client that takes silence for a server
# that hangs, or for one that has not looked yet.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true}' > package.json
npm install --silent --no-audit --no-fund typescript-language-server@5.3.0 typescript@5.9.3 > /dev/null 2>&1
mkdir work
echo '{"compilerOptions": {"strict": true}, "files": ["a.ts"]}' > work/tsconfig.json
printf 'export const a: number = 1;\n' > work/a.ts
cat > ask.mjs <<'JS'
import { spawn } from "node:child_process";
import { pathToFileURL } from "node:url";
const server = spawn("node_modules/.bin/typescript-language-server", ["--stdio"], { stdio: ["pipe", "pipe", "ignore"] });
const say = (message) => {
  const text = JSON.stringify({ jsonrpc: "2.0", ...message });
  server.stdin.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
};
const lists = [];
let ready;
const begun = new Promise((resolve) => (ready = resolve));
let buffer = Buffer.alloc(0);
server.stdout.on("data", (data) => {
  buffer = Buffer.concat([buffer, data]);
  for (;;) {
    const head = buffer.indexOf("\r\n\r\n");
    if (head < 0) return;
    const length = Number(/Content-Length: (\d+)/.exec(buffer.subarray(0, head).toString())[1]);
    if (buffer.length < head + 4 + length) return;
    const message = JSON.parse(buffer.subarray(head + 4, head + 4 + length).toString());
    buffer = buffer.subarray(head + 4 + length);
    if (message.id === 1 && message.result) ready();
    else if (message.method === "textDocument/publishDiagnostics") lists.push(message.params);
    else if (message.id !== undefined && message.method) say({ id: message.id, result: null });
  }
});
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const uri = pathToFileURL("work/a.ts").href;
say({ id: 1, method: "initialize", params: { processId: process.pid, rootUri: pathToFileURL("work").href,
  capabilities: { textDocument: { publishDiagnostics: { versionSupport: true } } } } });
await begun;
say({ method: "initialized", params: {} });
say({ method: "textDocument/didOpen", params: { textDocument: { uri, languageId: "typescript", version: 1, text: "export const a: number = 1;\n" } } });
say({ method: "textDocument/didChange", params: { textDocument: { uri, version: 2 }, contentChanges: [{ text: "export const a: number = 2;\n" }] } });
for (let waited = 0; !lists.length && waited < 60; waited++) await pause(500);
await pause(3000);
console.error(`first: ${JSON.stringify(lists)}`);
const told = {};
let version = 2;
for (const [name, text] of [
  ["clean", "export const a: number = 3;\n"],
  ["error", "export const a: number = 'x';\n"],
  ["same error", "export const a: number = 'x';\nexport const b = 1;\n"],
  ["mended", "export const a: number = 4;\n"],
  ["clean again", "export const a: number = 5;\n"],
]) {
  lists.length = 0;
  say({ method: "textDocument/didChange", params: { textDocument: { uri, version: ++version }, contentChanges: [{ text }] } });
  await pause(3000);
  told[name] = lists.map((one) => ({ problems: one.diagnostics.length, version: one.version ?? null }));
}
console.log(JSON.stringify(told));
server.kill();
JS
node ask.mjs | tee told.json
python3 - <<'PY'
import json

told = json.load(open("told.json"))
assert told["clean"] == told["clean again"] == [], "a clean edit is answered now"
for name, problems in (("error", 1), ("same error", 1), ("mended", 0)):
    assert told[name] and told[name][-1]["problems"] == problems, name
assert all(one["version"] is None for lists in told.values() for one in lists), "lists have versions now"
PY
