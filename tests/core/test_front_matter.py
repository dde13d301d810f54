"""Front matter as people write it: YAML, nearly YAML, and what only looks like it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.core.front_matter import MarkdownFile, parse


def test_yaml_fields_and_the_text_below():
    found = parse(
        b"---\nname: reviewer\nDescription: >\n  Reviews\n  changes.\n"
        b"tools: [Read, Grep]\nallowed-tools: Read, Bash(git add:*, git commit:*)\n---\n\nBody\n"
    )
    assert found.body == "Body"
    assert found.text("description") == "Reviews changes."
    assert found.names("tools") == ("Read", "Grep")
    assert found.names("allowed-tools") == ("Read", "Bash(git add:*, git commit:*)")
    assert found.names("model") is None
    assert found.text("model") == ""


def test_what_is_not_quite_yaml_is_read_line_by_line():
    found = parse(
        b"---\nname: reviewer\ndescription: Use it when: a change is done.\n"
        b'  Example: user: "review"\ntools:\n  - Read\n  - \'Grep\'\nmodel: "haiku"\n---\nBody'
    )
    assert found.text("description") == ('Use it when: a change is done.\nExample: user: "review"')
    assert found.names("tools") == ("Read", "Grep")
    assert found.text("model") == "haiku"


def test_a_quoted_value_is_what_stands_between_its_quotes() -> None:
    file = parse(b'---\nname: x\nargument-hint: "[BRANCH|PATH]: #1"\n---\nDo it.')
    assert file.fields == {"name": "x", "argument-hint": "[BRANCH|PATH]: #1"}


@pytest.mark.parametrize("sign", ["[", "{", "[]", "[a,", "{a: "])
def test_what_nests_too_deeply_is_no_yaml(sign: str):
    """PyYAML 6.0.3 takes time that is quadratic in the depth: seconds for 3 KB of brackets."""
    found = parse(f"---\nname: a: b\nodd: {sign * 500}\n---\nBody".encode())
    assert found.body == "Body"
    assert found.text("name") == "a: b"
    assert found.text("odd") == (sign * 500).strip()


def test_a_rule_keeps_its_commas_and_a_stray_parenthesis_its_list():
    found = parse(b"---\ntools: Bash(a, b), (c, Read,,) d, E(, F\n---\n")
    assert found.names("tools") == ("Bash(a, b)", "(c, Read,,) d", "E(", "F")


@pytest.mark.parametrize(
    ("data", "body", "fields"),
    [
        (b"\xef\xbb\xbf# Title\r\n\r\nText", "# Title\n\nText", {}),
        (b"---\nno end", "---\nno end", {}),
        (b"---\n---\nText", "Text", {}),
        (b"---\njust words\n---\nText", "Text", {}),
        (b"", "", {}),
        (b"---\na: &x [1]\nb: *x\n---\nText", "Text", {"a": "&x [1]", "b": "*x"}),
        (b"---\na: " + b"[" * 3000 + b"\n---\nText", "Text", {"a": "[" * 3000}),
    ],
)
def test_odd_files(data: bytes, body: str, fields: dict[str, str]):
    assert parse(data) == MarkdownFile(body, fields)


@given(st.binary() | st.text().map(lambda t: f"---\n{t}\n---\n{t}".encode("utf-8", "replace")))
def test_nothing_raises(data: bytes):
    found = parse(data)
    for name in found.fields:
        found.text(name)
        found.names(name)


@pytest.mark.parametrize("half", [r"\ud800", r"\uDFFF", r"\U0000d800", r"\ud83d\ude00"])
def test_half_a_character_stays_as_it_is_written(half: str) -> None:
    file = parse(f'---\nname: s\ndescription: "a {half} b: c"\nlist: ["{half}"]\n---\n'.encode())
    assert file.text("description") == f"a {half} b: c"
    str(file.fields).encode()
