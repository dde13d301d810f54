#!/usr/bin/env bash
# html-to-markdown 3.21.2: a link inside a code block becomes Markdown inside the fence.
#
# Best guesses, written down before the run:
#   1. Inside <pre> the text of a link is kept and its address is dropped: Markdown has no links in
#      a fence, and bold or emphasis in there is dropped too.
#   2. `exclude_selectors` with a descendant ("pre a") would drop the link with its text.
#   3. `output_format` aside, no option concerns links in code.
#
# Seen: bold and emphasis lose their marks, as guessed; a link does not: the fence holds
# `[name](address)`, title and all, which is neither a link nor the code. The same two documents as
# rustdoc and Sphinx write them (each name in a signature or a grammar is a link) come out as code
# that does not compile.
#
# Who is hurt: whoever gives converted documentation to a reader that copies code from it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check "html-to-markdown==3.21.2" 2>/dev/null
"$folder/venv/bin/python" - <<'PY'
from html_to_markdown import convert

RUSTDOC = (
    '<pre class="rust item-decl"><code>pub fn first(all: &amp;[u8]) -&gt; <a class="struct"'
    ' href="vec.html" title="struct alloc::vec::Vec">Vec</a>&lt;u8&gt;</code></pre>'
)
GRAMMAR = '<pre><strong>expr</strong> ::= <a href="#term">term</a> <em>"+"</em></pre>'

rust, grammar = convert(RUSTDOC).content, convert(GRAMMAR).content
print(rust, grammar, sep="\n")
assert '[Vec](vec.html "struct alloc::vec::Vec")<u8>' in rust, "links in code are gone"
assert "**" not in grammar and '*"+"*' not in grammar, "bold in code is marked"
assert "[term](#term)" in grammar, "links in code are gone"
PY
