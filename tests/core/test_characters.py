"""A character is a grapheme cluster, by the rules of UAX #29."""

from __future__ import annotations

import pytest
import regex

from tui.core import characters
from tui.core.characters import (
    boundaries,
    clusters,
    next_end,
    previous_start,
    skeleton,
    whole_after,
    whole_before,
)
from tui.core.terminal_input import is_text

WHOLE = {
    "accent": "e\u0301",
    "variation selector": "❤\ufe0f",
    "keycap": "1\ufe0f\u20e3",
    "skin tone": "👍🏽",
    "joined": "👨\u200d👩\u200d👧",
    "flag": "🇩🇪",
    "flag by tags": "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "jamo": "\u1112\u1161\u11ab",
    "syllable and jamo": "하\u11ab",
    "Devanagari conjunct": "क्षि",
    "Thai": "ก\u0e33",
    "Tamil": "நி",
    "kana with a mark": "か\u3099",
    "halfwidth kana with a mark": "ｶ\uff9e",
    "letter before a joiner": "ی\u200c",
}


@pytest.mark.parametrize("one", WHOLE.values(), ids=WHOLE)
def test_what_is_taken_for_one_is_one(one: str) -> None:
    assert clusters(f"a{one}b{one}{one}") == ["a", one, "b", one, one]
    text = f"x\n{one}y"
    end = 2 + len(one)
    assert next_end(text, 2) == end
    assert previous_start(text, end) == 2
    for inside in range(3, end):
        assert (whole_before(text, inside), whole_after(text, inside)) == (2, end)
    assert skeleton(one) == one[0]


def test_lines_bound_characters() -> None:
    text = "a\n\u0301b"
    assert [previous_start(text, at) for at in range(5)] == [0, 0, 1, 2, 3]
    assert [next_end(text, at) for at in range(5)] == [1, 2, 3, 4, 4]


def test_what_needs_no_library_joins_nothing_there() -> None:
    whole = regex.compile(r"\X")
    single = regex.compile(characters.SINGLE)
    for code in range(0x20, 0x110000):
        one = chr(code)
        if single.fullmatch(one):
            assert len(whole.findall(f"a{one}{one}한{one}😀{one}")) == 7, hex(code)


@pytest.mark.parametrize("text", ["", "plain", "каша", "日本語", "naïve – “x”", "안녕"])
def test_most_texts_are_single_characters(text: str) -> None:
    assert boundaries(text) == tuple(range(len(text) + 1))


@pytest.mark.parametrize(
    "typed",
    [*"\u3000\xa0\u202f\u200d\u200c\u200f\u2067\xad\ue0b0\U0001fae9"],
)
def test_what_people_type_is_text(typed: str) -> None:
    assert is_text(typed)


@pytest.mark.parametrize("typed", ["\x1b", "\x00", "\x7f", "\x85", "\u2028", "\ud83d"])
def test_what_controls_is_no_text(typed: str) -> None:
    assert not is_text(typed)
