"""Cutting by bytes and lines: never inside a character, never more than asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.tools.limits.clamp import (
    byte_length,
    encode,
    head_bytes,
    head_lines,
    line_count,
    tail_bytes,
    tail_lines,
)

WILD = st.text(alphabet=st.characters(), max_size=60)  # lone surrogates too
LIMITS = st.integers(-2, 250)


@given(WILD, LIMITS)
def test_L28_the_longest_prefix_that_fits(text: str, limit: int) -> None:
    kept = head_bytes(text, limit)
    assert text.startswith(kept)
    assert byte_length(kept) <= max(0, limit)
    if kept != text:
        assert byte_length(text[: len(kept) + 1]) > limit


@given(WILD, LIMITS)
def test_L28_the_longest_suffix_that_fits(text: str, limit: int) -> None:
    kept = tail_bytes(text, limit)
    assert text.endswith(kept)
    assert byte_length(kept) <= max(0, limit)
    if kept != text:
        assert byte_length(text[len(text) - len(kept) - 1 :]) > limit


@given(WILD)
def test_a_length_is_that_of_the_bytes(text: str) -> None:
    assert byte_length(text) == len(encode(text))


LINES = st.lists(st.text("ab é", max_size=4), max_size=8)


@given(LINES, st.booleans(), st.integers(-1, 9))
def test_O8_the_first_and_the_last_lines(lines: list[str], end: bool, limit: int) -> None:
    text = "\n".join(lines) + ("\n" if end and lines else "")
    count = line_count(text)
    first, last = head_lines(text, limit), tail_lines(text, limit)
    assert text.startswith(first)
    assert text.endswith(last)
    if limit >= count:
        assert (first, last) == (text, text)
    elif limit <= 0:
        assert (first, last) == ("", "")
    else:
        split = text.split("\n")
        assert first == "\n".join(split[:limit])
        assert last == "\n".join(split[count - limit :])


@pytest.mark.parametrize(("text", "count"), [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n", 1)])
def test_O8_a_final_newline_begins_no_line(text: str, count: int) -> None:
    assert line_count(text) == count
