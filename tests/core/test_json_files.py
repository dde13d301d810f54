"""JSON that lies in a file: what is no text is refused with its place, all else is as it was."""

from __future__ import annotations

import re

import pytest

from tui.core.json_files import parse_json


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"a":\n"\\ud800"}', r"line 2 has half a character (\ud800)"),
        (b'{"\\uDFFF": 1}', r"line 1 has half a character (\uDFFF)"),
        (b'["\\ud800\\u0041"]', r"line 1 has half a character (\ud800)"),
        (b'["\\ude00\\ud83d"]', r"line 1 has half a character (\ude00)"),
        (b'["\\\\\\ud800"]', r"line 1 has half a character (\ud800)"),
        (b'\n["\xff"]', "line 2 is no UTF-8 text"),
        (b'["\xed\xa0\x80"]', "line 1 is no UTF-8 text"),
        ('["x"]'.encode("utf-16"), "line 1 is no UTF-8 text"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b"{", "Expecting property name"),
    ],
    ids=lambda _: "",
)
def test_what_is_no_text_is_refused_with_its_place(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        parse_json(data)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'["\\ud83d\\ude00"]', ["😀"]),
        (b'["\\\\ud800"]', ["\\ud800"]),
        ("\ufeff[1]".encode(), [1]),
        (b'["\\u00e9\\n"]', ["é\n"]),
    ],
)
def test_all_else_is_read(data: bytes, value: object) -> None:
    assert parse_json(data) == value
