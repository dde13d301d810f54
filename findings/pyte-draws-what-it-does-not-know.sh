#!/usr/bin/env bash
# pyte 0.8.2 draws sequences that it doesn't know, and takes private ones for others.
#
# Best guesses, written down before the run:
#   1. A control sequence with a private prefix (CSI < u, CSI > 4 ; 2 m: keyboard protocols of every
#      newer editor and shell) shows nothing and changes no style.
#   2. A device control string (DCS + q …, a question of vim's) shows nothing up to its end.
#   3. CSI ? 1049 h and l leave the first screen as it was.
#
# Seen: CSI < u shows "u"; CSI > 4 ; 2 m underlines; the text of a DCS is drawn; there is no second
# screen, so an editor's last picture stays.
#
# Who is hurt: whoever shows vim, fish or a shell with keyboard protocols by way of pyte.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check "pyte==0.8.2" 2>/dev/null
"$folder/venv/bin/python" - <<'PY'
import pyte


def shown(text: str) -> tuple[str, bool]:
    screen = pyte.Screen(20, 2)
    pyte.Stream(screen).feed(text)
    return screen.display[0].rstrip(), screen.buffer[0][0].underscore


assert shown("\x1b[<u") == ("u", False), "CSI < u shows nothing now"
assert shown("\x1b[>4;2mx") == ("x", True), "CSI > m is no style any more"
assert shown("\x1bP+q544e\x1b\\")[0] == "+q544e", "a DCS isn't drawn any more"
assert shown("\x1b[?1049hfull\x1b[?1049l")[0] == "full", "there is a second screen now"
print("as seen")
PY
