#!/usr/bin/env bash
# rich 15.0.0 (PyPI, 2026-11-30): `Text.from_ansi` and `AnsiDecoder` make every line that ends in
# CR LF an empty one. A pseudo-terminal ends each line so: of its output only the last, unfinished
# line is left. rich 14.1.0 shows all of it.
#
# Best guesses, for what they are made for, a program's coloured output:
#   1. Lines that end in LF: their text, with its style.
#   2. Lines that end in CR LF: the same, as it is the output of the same program in a terminal.
#   3. A progress line ("10%", CR, "20%"): only what was written last, "20%".
#   4. Whatever is made of a CR, the length of a log's text is not 0 if it has letters.
#
# Seen: 1 and 3 hold. Of CR LF nothing is kept but the LF, without an error; what stands before the
# last CR of a line is dropped, and that CR may be the one that ends it.
#
# Who is hurt: whoever shows output of `pty`, pexpect, `docker exec -t`, ssh -t or a CI's log with
# rich, or in a Textual RichLog by way of it: an empty box for a command that printed pages. Text
# whose CR LF is replaced by LF first comes out whole.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv env
cat > show.py <<'PY'
import os
import pty
from importlib.metadata import version

from rich.ansi import AnsiDecoder
from rich.text import Text


def in_a_terminal(*argv: str) -> str:
    """The output of a program as its terminal gives it."""
    child, terminal = pty.fork()
    if not child:
        os.execvp(argv[0], argv)
    output = b""
    try:
        while piece := os.read(terminal, 4096):
            output += piece
    except OSError:  # Linux says so when the program has ended
        pass
    os.waitpid(child, 0)
    return output.decode()


real = in_a_terminal("printf", r"\033[31mtwo failed\033[0m\nfive passed\n$ ")
print("rich", version("rich"))
print("LF", Text.from_ansi(real.replace("\r", "")).plain.split("\n"))
print("CR LF", Text.from_ansi(real).plain.split("\n"))
print("decoded", [line.plain for line in AnsiDecoder().decode(real)])
print("progress", Text.from_ansi("10%\r20%").plain.split("\n"))
PY
seen=$(
  for version in 14.1.0 15.0.0; do
    env/bin/pip install -q --disable-pip-version-check rich==$version 2>/dev/null
    env/bin/python show.py
  done
)
echo "$seen"
wanted="rich 14.1.0
LF ['two failed', 'five passed', '$ ']
CR LF ['two failed', 'five passed', '$ ']
decoded ['two failed', 'five passed', '$ ']
progress ['10%', '20%']
rich 15.0.0
LF ['two failed', 'five passed', '$ ']
CR LF ['', '', '$ ']
decoded ['', '', '$ ']
progress ['20%']"
[ "$seen" = "$wanted" ] || { echo "rich has changed"; exit 1; }
