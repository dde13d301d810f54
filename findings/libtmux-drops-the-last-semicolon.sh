#!/usr/bin/env bash
# libtmux 0.62.0 (PyPI) with tmux 3.3a (Debian's tmux 3.3a-3, 2026-11-30): `pane.send_keys(text)`
# drops a semicolon at the text's end, with literal=True as well, and a backslash before it.
#
# Best guesses, from the names and the documentation of `send_keys` (nothing of semicolons there):
#   1. "SELECT 1;", literal: arrives as it is.
#   2. r"find . -exec cat {} \;": arrives as it is.
#   3. ";", literal, alone: arrives.
#   4. "a; b": arrives as it is.
#   5. "done;;", the end of a branch of `case`: arrives as it is.
#
# Seen: only 4 holds. 1 comes without its semicolon, 2 as "find . -exec cat {} ;", 3 not at all, 5
# with one of two. tmux takes the last semicolon of any argument for the end of its own command, if
# no shell has read it, too; libtmux, which builds the arguments, doesn't quote it.
#
# Who is hurt: agents that drive a terminal this way. SQL waits for ever for its semicolon, `find
# -exec` says that its argument is missing, and the model sees its own command without the character
# that it wrote. Until then: an extra backslash before a last semicolon.
set -euo pipefail
work=$(mktemp -d)
trap 'env/bin/python end.py 2>/dev/null || true; cd /; rm -rf "$work"' EXIT
cd "$work"
apt-get -qq download tmux=3.3a-3 libutempter0=1.2.1-3 >/dev/null 2>&1
apt-get -qq download 'libevent-core-2.1-7=2.1.12-stable-8*' >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
export PATH=$work/usr/bin:$PATH TMUX_TMPDIR=$work
export LD_LIBRARY_PATH
LD_LIBRARY_PATH=$(dirname "$work"/usr/lib/*/libutempter.so.0)
[ "$(tmux -V)" = "tmux 3.3a" ]
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check libtmux==0.62.0 2>/dev/null
cat > end.py <<'PY'
import libtmux

libtmux.Server(socket_name="semicolon", config_file="/dev/null").kill()
PY
cat > type.py <<'PY'
import pathlib
import time

import libtmux

TYPED = {
    "1": ("SELECT 1;", True),
    "2": (r"find . -exec cat {} \;", False),
    "3": (";", True),
    "4": ("a; b", True),
    "5": ("done;;", True),
    "escaped": (r"SELECT 1\;", True),
}
server = libtmux.Server(socket_name="semicolon", config_file="/dev/null")
pane = server.new_session("s", window_command="cat > received").active_pane
for text, literal in TYPED.values():
    pane.send_keys(text, literal=literal)
pane.send_keys("that is all")
received = pathlib.Path("received")
until = time.monotonic() + 20
while not received.exists() or "all\n" not in received.read_text():
    if time.monotonic() > until:
        raise SystemExit("nothing has arrived")
    time.sleep(0.05)
for name, line in zip(TYPED, received.read_text().splitlines()):
    print(f"{name} [{line}]")
PY
seen=$(env/bin/python type.py)
echo "$seen"
wanted='1 [SELECT 1]
2 [find . -exec cat {} ;]
3 []
4 [a; b]
5 [done;]
escaped [SELECT 1;]'
[ "$seen" = "$wanted" ] || { echo "libtmux or tmux has changed"; exit 1; }
