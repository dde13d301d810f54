"""TOML that lies in a file: no depth of it holds a program up."""

from __future__ import annotations

import pytest

from tui.core.toml_files import parse_toml

DEEP = 100_000


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a" + ".a" * DEEP + " = 1", r"a key has too many parts \(at line 1\)"),
        ("b = 1\n[a" + ".a" * DEEP + "]", r"too many parts \(at line 2\)"),
        ("[[ a" + " . 'a'" * DEEP + "]]", "too many parts"),
        ("a = {b = 1, c" + '."a"' * DEEP + " = 1}", "too many parts"),
        ("a = " + "[" * DEEP + "]" * DEEP, "it is nested too deeply"),
        ("a = " + "{a=" * DEEP + "1" + "}" * DEEP, "it is nested too deeply"),
        ("a = ", "Invalid value"),
    ],
    ids=lambda _: "",
)
def test_what_nests_too_deeply_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_toml(text)


def test_texts_with_dots_are_no_keys() -> None:
    dots = "a" + ".a" * 200
    text = f'a.b = "{dots}"\nc = ["{dots}", "{dots}"] # {dots}\n'
    assert parse_toml(text) == {"a": {"b": dots}, "c": [dots, dots]}
