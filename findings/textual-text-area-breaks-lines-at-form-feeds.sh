#!/usr/bin/env bash
# Textual 8.2.8 (PyPI, 2026-11-30): a TextArea's `text` is not the text that it was given. Form
# feeds, U+2028 and six more characters come back as line feeds, and of two kinds of line ends one
# is left.
#
# Best guesses, as an editor over TextArea that loads, shows and saves would rely on them:
#   1. `load_text(text)` without an edit: `text` is the same, whatever is in it.
#   2. LF and CR LF in one file: the same as well, or at least the lines that nobody touched.
#   3. A form feed (GNU's and Python's own sources have them between parts) is a character of its
#      line: `git`, `wc` and editors count no line there, nor do Python's files.
#   4. U+2028 in a JSON string is allowed there, and stays.
#
# Seen: none of the four. Lines are cut where `str.splitlines` cuts them, at eight characters
# besides CR and LF, and joined with the first of CR LF, LF and CR, in this order, that occurs.
#
# Who is hurt: whoever opens a file and saves it unchanged: a diff of lines that nobody edited, line
# numbers that differ from every other tool's, and JSON that no longer parses.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check textual==8.2.8 2>/dev/null
cat > edit.py <<'PY'
import asyncio
import json

from textual.app import App
from textual.widgets import TextArea

GIVEN = {
    "form feed": "import os\n\x0c\nclass A: ...\n",
    "form feed in a line": "one\x0ctwo\n",
    "line separator": '{"note": "one\u2028two"}\n',
    "mixed": "one\r\ntwo\nthree\n",
    "others": "a\x0bb\x1cc\x1dd\x1ee\x85f\u2029g",
    "plain": "one\n\ttwo\n\nthree",
}


class Editor(App[None]):
    def compose(self):
        yield TextArea()


async def main() -> None:
    app = Editor()
    async with app.run_test():
        area = app.query_one(TextArea)
        for name, text in GIVEN.items():
            area.load_text(text)
            same = "the same" if area.text == text else repr(area.text)
            print(f"{name}: {area.document.line_count} lines, {same}")
        area.load_text(GIVEN["line separator"])
        try:
            json.loads(area.text)
        except ValueError:
            print("json: no longer valid")


asyncio.run(main())
PY
seen=$(env/bin/python edit.py)
echo "$seen"
wanted="form feed: 5 lines, 'import os\n\n\nclass A: ...\n'
form feed in a line: 3 lines, 'one\ntwo\n'
line separator: 3 lines, '{\"note\": \"one\ntwo\"}\n'
mixed: 4 lines, 'one\r\ntwo\r\nthree\r\n'
others: 7 lines, 'a\nb\nc\nd\ne\nf\ng'
plain: 4 lines, the same
json: no longer valid"
[ "$seen" = "$wanted" ] || { echo "the text area has changed"; exit 1; }
