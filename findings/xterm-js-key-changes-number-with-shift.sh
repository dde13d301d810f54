#!/usr/bin/env bash
# xterm.js 6.1.0-beta.337 with the kitty keyboard protocol: on a Greek keyboard one key has two
# numbers, the Greek letter's without Shift and the Latin letter's with it, and Alt does not keep it
# from having a text.
#
# Best guesses, written down before the run:
#   1. A key's number is that of its letter without Shift, always: the protocol says that the key
#      with Shift is reported beside it, behind a colon.
#   2. So Alt+Β (with Shift) is 946, like Alt+β, with 914 behind the colon.
#   3. With Alt no text is reported, as kitty 0.26.5 reports none: a program that types what is
#      reported as text would type a letter for Alt+B.
#
# Seen: none of the three. Alt+β is 946 and Alt+Shift+β is 98, the Latin b, and both bring their
# letter as text.
#
# Who is hurt: whoever binds Alt+Shift and a letter, or both Alt and Alt+Shift, on a keyboard that is
# not Latin; and whoever types all that comes as text.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true}' > package.json
npm install --silent --no-audit --no-fund @xterm/xterm@6.1.0-beta.337 esbuild@0.25.12 > /dev/null 2>&1
node_modules/.bin/esbuild node_modules/@xterm/xterm/src/common/input/KittyKeyboard.ts --bundle \
  --format=esm --outfile=kitty.mjs --log-level=error
cat > ask.mjs <<'JS'
import { KittyKeyboard } from "./kitty.mjs";
const flags = 1 | 4 | 8 | 16; // all keys as sequences, with the alternate keys and the text
const pressed = (key, shiftKey) => ({ type: "keydown", code: "KeyB", keyCode: 66, key, shiftKey,
  altKey: true, ctrlKey: false, metaKey: false, repeat: false, location: 0 });
const sent = (...event) => new KittyKeyboard().evaluate(pressed(...event), flags, 1).key.slice(2, -1);
const [plain, shifted] = [sent("β", false), sent("Β", true)];
console.log({ plain, shifted });
const number = (one) => Number.parseInt(one, 10);
if (number(plain) === number(shifted)) throw new Error("the key has one number now");
if (plain.split(";").length < 3) throw new Error("no text is reported with Alt now");
JS
node ask.mjs
