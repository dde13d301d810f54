#!/usr/bin/env bash
# tree-sitter-bash 0.25.1 (with tree-sitter 0.26.1, PyPI, 2026-11-29): a redirection after
# `a && b` hangs on the whole list, where bash gives it to `b` alone.
#
# Best guesses, by which a reader of command lines had been written long before the run:
#   1. `cd sub && echo hi > f`: the redirected statement holds `echo hi`, as bash has it.
#   2. `cd sub; echo hi > f`: the same.
#   3. `cd sub && echo hi > f && true`: the same; what follows changes nothing.
#
# Seen: only the second holds. In the first and third the statement's body is the list
# `cd sub && echo hi`. Bash writes sub/f in all three.
#
# Who is hurt: whoever reads from the tree into which folder a command line writes. A walk that
# takes the redirection before its body resolves it in the folder from before `cd`.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check tree-sitter==0.26.1 tree-sitter-bash==0.25.1
cat > read.py <<'PY'
import tree_sitter_bash
from tree_sitter import Language, Parser

parser = Parser(Language(tree_sitter_bash.language()))


def redirected(node):
    if node.type == "redirected_statement":
        yield node.child_by_field_name("body")
    for child in node.children:
        yield from redirected(child)


for line in (
    "cd sub && echo hi > f",
    "cd sub; echo hi > f",
    "cd sub && echo hi > f && true",
):
    tree = parser.parse(line.encode())
    assert not tree.root_node.has_error, line
    for body in redirected(tree.root_node):
        print(f"{line}: {body.type} `{body.text.decode()}`")
PY
seen=$(env/bin/python read.py)
echo "$seen"
wanted='cd sub && echo hi > f: list `cd sub && echo hi`
cd sub; echo hi > f: command `echo hi`
cd sub && echo hi > f && true: list `cd sub && echo hi`'
[ "$seen" = "$wanted" ] || { echo "the tree has changed"; exit 1; }
for line in 'cd sub && echo hi > f' 'cd sub; echo hi > f' 'cd sub && echo hi > f && true'; do
  rm -rf place && mkdir -p place/sub
  (cd place && bash -c "$line")
  [ -f place/sub/f ] && [ ! -e place/f ] || { echo "bash wrote elsewhere: $line"; exit 1; }
done
echo "bash $BASH_VERSION: each of the three wrote sub/f"
