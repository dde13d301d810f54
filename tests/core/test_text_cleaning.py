"""Text from outside can neither steer the terminal nor disguise itself."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.core.text_cleaning import as_typed, one_line, printed_text, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("rm -rf x\x1b[2K\rls", "rm -rf x\\x1b[2K\\x0dls"),
        ("a\u202eb", "a\\u202eb"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("soft\xadhyphen", "soft\\xadhyphen"),
        ("line one\r\nline two\n", "line one\nline two\n"),
        ("\tindented", "    indented"),
        ("naïve 日本語 ✓", "naïve 日本語 ✓"),
        ("\x07\x08", "\\x07\\x08"),
        ("rm\u3164x \uffa0 \u115f \u1160", "rm\\u3164x \\uffa0 \\u115f \\u1160"),
        ("a\u2800b\xa0c\u2003d\u202fe", "a\\u2800b\\xa0c\\u2003d\\u202fe"),
        ("x\ufe01y\ufe0f \u2714\ufe0f", "x\\ufe01y\\ufe0f \u2714\ufe0f"),
        ("g\u0456t push", "g\\u0456t push"),
        ("\u0455\u0455\u04bb host", "\\u0455\\u0455\\u04bb host"),
        ("# он и она сор", "# он и она сор"),
        (
            "cat /\u0435tc/p\u0430sswd; ls \u2212l\u037e",
            "cat /\\u0435tc/p\\u0430sswd; ls \\u2212l\\u037e",
        ),
        ("\uff52\uff4d x", "\\uff52\\uff4d x"),
        ("\U0001d42b\U0001d426 x", "\\U0001d42b\\U0001d426 x"),
        ("echo 終了！ Ω ≤ 3 – “naïve”", "echo 終了！ Ω ≤ 3 – “naïve”"),
    ],
)
def test_what_a_person_decides_about_cannot_hide(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_nothing_invisible_is_left(text: str) -> None:
    left = {unicodedata.category(c) for c in visible(text) if c != "\n"}
    assert not left & {"Cc", "Cs", "Zl", "Zp"}
    assert not {c for c in visible(text) if unicodedata.bidirectional(c) in {"RLO", "LRO", "RLI"}}


@given(st.text())
def test_titles_are_one_line_without_control_characters(text: str) -> None:
    line = one_line(text)
    assert "\n" not in line
    assert not {unicodedata.category(c) for c in line} & {"Cc", "Cs"}


def test_a_title_loses_its_escape_sequences() -> None:
    assert one_line("\x1b[31mred\x1b[0m \n title") == "red title"


def test_what_a_command_printed_comes_without_the_notes_about_it() -> None:
    end, walls = "[exit code 1 · 0.9 s]", "[ran at the level workspace: it could write /tmp]"
    left = "[processes that it left running were stopped; start such a command with x]"
    assert printed_text(f"1 failed\n{end}\n{walls}") == "1 failed"
    assert printed_text(f"1 failed\n{left}\n{end}\n") == "1 failed"
    assert printed_text(f"(no output)\n{end}\n{walls}") == ""
    assert printed_text("[1, 2]\n[3]") == "[1, 2]\n[3]", "its own brackets stay"
    assert printed_text(f"[1, 2]\n{end}") == "[1, 2]"
    assert printed_text("") == ""


@pytest.mark.parametrize(
    ("pasted", "text"),
    [
        ("a\r\nb\rc\x0cd\u2028e", "a\nb\nc\nd\ne"),
        ("\x1b[31mred\x1b[m\x07\t!", "red\t!"),
        ("\u200fא\u2067\xad\ufeff\ue0b0\u3000", "\u200fא\u2067\xad\ufeff\ue0b0\u3000"),
        ("\ud83d", "\ufffd"),
    ],
)
def test_a_paste_keeps_every_character_that_controls_nothing(pasted: str, text: str) -> None:
    assert as_typed(pasted) == text
