#!/usr/bin/env bash
# tomlkit 0.15.2 (PyPI, 2026-12-01): a value appended to a list that ends in a comment line is written
# without a comma before it. The file is no TOML any more; the document in memory has the value.
#
# Best guesses, from "style-preserving", for a list with one value on each line:
#   1. The last value has no comma, and no comment follows: `append` sets one, and the file is valid.
#   2. A comment stands behind the last value, in its line: the same.
#   3. A comment has a line of its own before the bracket, as for a value that was switched off: the
#      same, with the comma behind the value, before or after the comment.
#   4. `insert(0, …)` in the same list: valid.
#   5. Whatever is written, `tomlkit.parse(tomlkit.dumps(document))` equals the document.
#
# Seen: 1, 2 and 4 hold. In 3 and 5 no comma is set, tomlkit itself and tomllib refuse what was
# written, and `extend` and `+=` do the same. With a comma behind the last value, which TOML allows,
# the same list is fine.
#
# Who is hurt: whoever adds a dependency to pyproject.toml or a rule to a list of settings with it, in
# a file that a person has written: nothing is raised, and the next program to read it fails.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check tomlkit==0.15.2 2>/dev/null
cat > add.py <<'PY'
import tomllib

import tomlkit

LISTS = {
    "1": '["click"]',
    "2": '[\n  "click"  # the shell\n]',
    "3": '[\n  "click"\n  # "rich"\n]',
    "a comma": '[\n  "click",\n  # "rich"\n]',
}
WAYS = {
    "append": lambda values: values.append("attrs"),
    "extend": lambda values: values.extend(["attrs"]),
    "+=": lambda values: values.__iadd__(["attrs"]),
    "insert": lambda values: values.insert(0, "attrs"),
}


def valid(text: str, parse: object) -> bool:
    try:
        return sorted(parse(text)["dependencies"]) == ["attrs", "click"]
    except ValueError:
        return False


for name, written in LISTS.items():
    seen = []
    for way, change in WAYS.items():
        document = tomlkit.parse(f"dependencies = {written}\n")
        change(document["dependencies"])
        assert sorted(document.unwrap()["dependencies"]) == ["attrs", "click"]
        text = tomlkit.dumps(document)
        both = valid(text, tomllib.loads), valid(text, tomlkit.parse)
        seen.append(f"{way} {'valid' if all(both) else 'partly' if any(both) else 'no TOML'}")
    print(f"{name}:", ", ".join(seen))
PY
seen=$(env/bin/python add.py)
echo "$seen"
wanted='1: append valid, extend valid, += valid, insert valid
2: append valid, extend valid, += valid, insert valid
3: append no TOML, extend no TOML, += no TOML, insert valid
a comma: append valid, extend valid, += valid, insert valid'
[ "$seen" = "$wanted" ] || { echo "tomlkit has changed"; exit 1; }
