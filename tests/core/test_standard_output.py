"""The door to the standard streams: text for people steers nothing, data is exact."""

from __future__ import annotations

import os
import subprocess
import sys
import unicodedata
from typing import TextIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.cli.main import TerminalStream
from tui.core.standard_output import note, print_data, print_text

PIECES = st.sampled_from(
    [
        "\x1b[2J",
        "\x1b]52;c;QUJD\x07",
        "\x1bP1$r",
        "\x9b31m",
        "\x9d0;t\x9c",
        "\x1b",
        "\x07",
        "\b",
        "\x0e",
        "\x7f",
        "\u202e",
        "\u2028",
        "\ud83d",
        "\udc9b",
        "\udcff",
        "\r",
        "\0",
        "\x1bc",
        "\x85",
    ]
)  # fmt: skip
TEXTS = st.lists(st.one_of(PIECES, st.text(max_size=20)), max_size=12).map("".join)


def steers(text: str) -> bool:
    """Whether a text holds anything but characters, tabs and newlines."""
    bidi = {"RLO", "LRO", "RLE", "LRE", "PDF", "RLI", "LRI", "FSI", "PDI"}
    return any(
        (unicodedata.category(c) in {"Cc", "Cs"} and c not in "\t\n")
        or unicodedata.bidirectional(c) in bidi
        for c in text
    )


@given(TEXTS)
def test_what_is_for_people_steers_nothing(text: str) -> None:
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", _Told(said))
        patch.setattr(sys, "stderr", _Told(said))
        print_text(text)
        note(text)
    assert not [one for one in said if steers(one)]
    assert all(one.encode() for one in said)


class _Told:
    """A stream that keeps what it is given."""

    def __init__(self, said: list[str]) -> None:
        self.said = said

    def write(self, text: str) -> int:
        self.said.append(text)
        return len(text)


@given(TEXTS)
def test_data_is_exact_but_for_half_characters(text: str) -> None:
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", _Told(said))
        print_data(text, end="")
    whole = "".join("?" if 0xD800 <= ord(c) <= 0xDFFF else c for c in text)
    assert said == [whole]


@given(TEXTS)
def test_a_terminal_gets_data_cleaned(text: str) -> None:
    said: list[str] = []
    stream = TerminalStream(cast("TextIO", _Told(said)))
    stream.write(text)
    assert not steers("".join(said))


@given(st.text(st.characters(exclude_categories=["C", "Z"]), max_size=50))
def test_no_character_is_lost(text: str) -> None:
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", _Told(said))
        print_text(text)
    assert said == [f"{text}\n"]


@pytest.mark.parametrize("words", [("help",), ("-p",), ("sessions", "show"), ("--model",), ("-C",)])
def test_a_cut_character_in_argv_is_no_crash(words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [os.fsencode(sys.executable), b"-m", b"tui", *map(str.encode, words), b"caf\xc3\x1b[2J"],
        capture_output=True, check=False, stdin=subprocess.DEVNULL, env={**os.environ},
    )  # fmt: skip
    said = (done.stdout + done.stderr).decode()
    assert "Traceback" not in said
    assert "a bug" not in said
    assert not steers(said)
