"""What a terminal sends becomes keys and pastes, however it is cut into pieces."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.message import Message

from tui.ui.toolkit.key_parser import KeyParser

START, END = "\x1b[200~", "\x1b[201~"

WILD = st.text(st.sampled_from("ab \r\n\t\x00\x03\x07\x1b[]0123;~?OMm<é日!"), max_size=60).filter(
    lambda text: END not in text + END[:-1]
)
"""Pasted texts: keys, beginnings of sequences, marks of a beginning."""


def told(messages: Iterable[Message]) -> list[str]:
    """What was heard: keys by name, pastes with their text."""
    heard: list[str] = []
    for message in messages:
        if isinstance(message, events.Paste):
            heard.append(f"paste {message.text!r}")
        elif isinstance(message, events.Key):
            heard.append(message.character or message.key)
    return heard


def hear(*pieces: str) -> list[str]:
    keyboard = KeyParser(lambda text: text)
    return [one for piece in pieces for one in told(keyboard.feed(piece.encode()))]


@pytest.mark.parametrize(
    "pasted",
    [
        "a\x1b[31mred\x07",
        "\x1b[3!touch x\r",
        "\x1b[200~ again \x1b[200",
        "\x1b",
        "",
        "x" * 100_000 + "\x1b]0;title\x07\r",
    ],
    ids=["coloured", "command", "a mark inside", "an escape", "nothing", "long"],
)
def test_nothing_in_a_paste_is_a_key(pasted: str) -> None:
    assert hear(f"b{START}{pasted}{END}\r") == ["b", f"paste {pasted!r}", "\r"]


@given(WILD, st.lists(st.integers(1, 60), max_size=12))
def test_a_paste_is_one_however_it_is_cut(pasted: str, cuts: list[int]) -> None:
    whole = f"x{START}{pasted}{END}y"
    places = sorted({0, *(cut for cut in cuts if cut < len(whole)), len(whole)})
    pieces = [whole[start:stop] for start, stop in pairwise(places)]
    assert hear(*pieces) == ["x", f"paste {pasted!r}", "y"]


def test_a_paste_is_cleaned_as_a_whole() -> None:
    keyboard = KeyParser(str.upper)
    heard = [*keyboard.feed(f"{START}one ".encode()), *keyboard.feed(f"two{END}".encode())]
    assert told(heard) == ["paste 'ONE TWO'"]


def test_two_pastes_and_keys_between_them() -> None:
    assert hear(f"{START}1{END}\x1b[A{START}2{END}") == ["paste '1'", "up", "paste '2'"]


def test_a_letter_with_alt_types_nothing() -> None:
    assert hear("\x1bu\x1b1", "\x1b.", "\x1bU", "\x1b\r") == [
        "alt+u",
        "alt+1",
        "alt+full_stop",
        "alt+shift+u",
        "alt+enter",
    ]
    keys = hear("\x1b[1;3D", "\x1b\x7f", "\x1bf", "\x1bb", "\x1b[A", "\x1bOP")
    assert keys == ["alt+left", "ctrl+w", "ctrl+right", "ctrl+left", "up", "f1"]
