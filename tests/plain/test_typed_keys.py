"""Keys that were typed before a line was read, as the lines that they make."""

from __future__ import annotations

import pytest

from tui.plain.tty import meant


@pytest.mark.parametrize(
    ("keys", "lines"),
    [
        ("one\rtwo", "one\ntwo"),
        ("onf\x7fe\r", "one\n"),
        ("one\r\x7f\x7ftwo", "one\ntwo"),
        ("one\rtwo\x15three", "one\nthree"),
        ("e\u0301\x7fa❤\ufe0f\x7f🇩🇪\x7f\tb", "a\tb"),
        ("\u3000\xa0\x07\x1b[A", "\u3000\xa0"),
    ],
)
def test_what_keys_make(keys: str, lines: str) -> None:
    assert meant(keys) == lines
