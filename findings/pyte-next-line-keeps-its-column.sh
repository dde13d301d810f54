#!/usr/bin/env bash
# pyte 0.8.2: ESC E (NEL, next line) goes down but not to the first column.
#
# Best guesses, written down before the run:
#   1. NEL moves to the first column of the next line, in every mode: ECMA-48 and the VT100 manual
#      say so, and it is what tells it from IND (ESC D).
#   2. CSI E (CNL) does the same, by its count.
#   3. Only LF depends on the mode LNM.
#
# Seen: CSI E and LF are as guessed; ESC E is handled as an LF is, so without LNM it keeps its column
# and is the same as ESC D. tmux 3.3a goes to the first column.
#
# Who is hurt: whoever renders a terminal's output with pyte, or holds an own model against it: text
# after NEL moves to the right, line by line.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check "pyte==0.8.2" 2>/dev/null
"$folder/venv/bin/python" - <<'PY'
import pyte


def shown(text: str, *, lnm: bool = False) -> list[str]:
    screen = pyte.Screen(20, 3)
    if lnm:
        screen.set_mode(pyte.modes.LNM)
    pyte.Stream(screen).feed(text)
    return [row.rstrip() for row in screen.display[:2]]


seen = {name: shown(f"ab{code}c") for name, code in {"NEL": "\x1bE", "IND": "\x1bD", "CNL": "\x1b[E", "LF": "\n"}.items()}
print(seen)
assert seen["CNL"] == ["ab", "c"]
assert seen["IND"] == seen["LF"] == ["ab", "  c"]
assert seen["NEL"] == ["ab", "  c"], "NEL goes to the first column now"
assert shown("ab\x1bEc", lnm=True) == ["ab", "c"]
PY
