"""What a terminal sends becomes keys and pastes, however it is cut into pieces."""

from __future__ import annotations

import hashlib
import inspect
import random
import re
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual._xterm_parser import XTermParser
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from tests.support.clock import FakeClock
from tests.support.fuzzed_keys import fuzzed
from tests.terminals import recorded
from tui.ui.toolkit.key_parser import KeyParser, Unclassified

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


@pytest.mark.parametrize(
    ("reads", "expected"),
    [
        (["one\rtwo\r"], ["paste 'one\\rtwo\\r'"]),
        (["one\n\ntwo"], ["paste 'one\\n\\ntwo'"]),
        (["\tone\r\ntwo"], ["paste '\\tone\\r\\ntwo'"]),
        (["one\rtwo", " and\r"], ["paste 'one\\rtwo'", "paste ' and\\r'"]),
        (["one\r"], [*"one", "\r"]),
        (["\r\r", "1\r"], ["\r", "\r", "1", "\r"]),
        (["\rone"], ["\r", *"one"]),
        (["one\x1b[Btwo\rx"], [*"one", "down", *"two", "\r", "x"]),
    ],
)
def test_lines_in_one_read_are_a_paste_without_marks(reads: list[str], expected: list[str]) -> None:
    keyboard = KeyParser(lambda text: text, now=FakeClock().monotonic)
    assert [one for read in reads for one in told(keyboard.feed(read.encode()))] == expected


def test_what_comes_later_than_a_paste_without_marks_is_typed() -> None:
    clock = FakeClock()
    keyboard = KeyParser(lambda text: text, now=clock.monotonic)
    assert told(keyboard.feed(b"one\rtwo")) == ["paste 'one\\rtwo'"]
    clock.elapsed += 0.05
    assert told(keyboard.feed(b"!\r")) == ["!", "\r"]


@pytest.mark.parametrize(
    "typed", [*"\u3000\xa0\u200d\u200f\ue0b0\U0001fae9", "e\u0301", "1\ufe0f\u20e3"]
)
def test_a_key_types_any_character(typed: str) -> None:
    keyboard = KeyParser(lambda text: text)
    numbers = ":".join(str(ord(char)) for char in typed)
    for sent in (typed, f"\x1b[97;;{numbers}u"):
        (key,) = keyboard.feed(sent.encode())
        assert isinstance(key, events.Key)
        assert (key.character, key.is_printable) == (typed, True)
        assert key.key != "1", "a keycap answers nothing"


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


# Replies of real terminals

ANSWERS = {"y", "n", "a", "1", "2", "3", "enter", "space"}


class Keyboard:
    """A parser and its clock; what it said, as messages."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.parser = KeyParser(str, now=self.clock.monotonic)
        self.clock.elapsed += 60
        self.heard: list[Message] = []

    def read(self, data: bytes) -> None:
        self.heard += self.parser.feed(data)

    def pause(self, seconds: float) -> None:
        until = self.clock.elapsed + seconds
        while (left := self.parser.patience_s) is not None and self.clock.elapsed + left <= until:
            self.clock.elapsed += left
            self.heard += self.parser.tick()
        self.clock.elapsed = until

    @property
    def typed(self) -> list[str]:
        """What types or pastes something, or is the name of a key that answers."""
        return [
            one
            for message in self.heard
            for one in told([message])
            if isinstance(message, events.Paste)
            or (isinstance(message, events.Key) and (message.is_printable or one in ANSWERS))
        ]


REPLIES = recorded("query", "mouse", "focus")


@pytest.mark.parametrize("pause", [0.0, 0.2, 10.0])
def test_no_reply_is_typed_whole_or_cut_anywhere(pause: float) -> None:
    for reply in REPLIES:
        for cut in range(1, len(reply.data) + 1):
            if pause and reply.data[:cut].endswith(b"\x1b[") and reply.data[cut:] in {b"I", b"O"}:
                continue  # one byte alone is typed
            keyboard = Keyboard()
            keyboard.read(reply.data[:cut])
            keyboard.pause(pause)
            keyboard.read(reply.data[cut:])
            keyboard.pause(10.0)
            assert keyboard.typed == [], (reply, cut)
            keyboard.read(b"y")
            assert keyboard.typed == ["y"], (reply, cut)


def test_a_reply_in_single_bytes_is_not_typed() -> None:
    for reply in REPLIES:
        keyboard = Keyboard()
        for at, byte in enumerate(reply.data):
            keyboard.read(bytes([byte]))
            introducer = re.search(rb"\x1b[\[\]P_]?$", reply.data[: at + 1])
            keyboard.pause(0.05 if introducer else 10.0)
        assert keyboard.typed == [], reply


def test_keys_of_real_terminals_are_known() -> None:
    """In four modes, all that was pressed has a name, and nothing is unclassified."""
    for key in recorded("key"):
        keyboard = Keyboard()
        keyboard.read(key.data)
        keyboard.pause(1.0)
        assert [one for one in keyboard.heard if isinstance(one, events.Key)], key
        assert not [one for one in keyboard.heard if isinstance(one, Unclassified)], key


@pytest.mark.parametrize(
    ("data", "heard"),
    [
        ("\x1b[97;1:1u", ["a"]),
        ("\x1b[97:65;2:2;65u\x1b[97;1:3u", ["A"]),
        ("\x1b[97;;97u", ["a"]),
        ("\x1b[0;;20320:22909u", ["你", "好"]),
        ("\x1b[1089;u", ["с"]),
        ("\x1b[1089::99;5u", ["ctrl+c"]),
        ("\x1b[32;2u", [" "]),
        ("\x1b[13;2u\x1b[27;2;13~", ["shift+enter", "shift+enter"]),
        ("\x1b[27;5;99~\x1b[27;6;67~\x1b[27;2;65~", ["ctrl+c", "ctrl+shift+c", "A"]),
        ("\x1b[45;6u\x1b[47;5u\x1b[27;6;95~", ["ctrl+underscore"] * 3),
        (
            "\x1b[1;5D\x1b[3;2~\x1b[Z\x1b[57400;129;49u",
            ["ctrl+left", "shift+delete", "shift+tab", "1"],
        ),
        ("\x1b[27u\x1b[13u\x1b[9u", ["escape", "\r", "\t"]),
        ("\x1bOM\x1bOp\x1b[[A", ["enter", "0", "f1"]),
    ],
)
def test_keys_by_their_numbers(data: str, heard: list[str]) -> None:
    assert hear(data) == heard


@pytest.mark.parametrize(
    "data",
    [
        "\x1b[121~",  # Textual takes the number for a letter
        "\x1b[97;;13u",  # a text of control characters
        "\x1b[99999999u",
        "\x1b[1114112;5u",
        "\x1b[55296;;u",
        "\x1b[57500u",
        "\x1b[97;9999u",
        "\x1b[48;9000;9000;1;1t",
        "\x1bO~",
        "\x1b[12;34i",
    ],
)
def test_what_is_unknown_is_dropped_and_said(data: str) -> None:
    keyboard = Keyboard()
    keyboard.read(data.encode())
    (said,) = keyboard.heard
    assert isinstance(said, Unclassified)
    assert said.kind == "unknown"


def test_what_was_dropped_is_said_before_the_key_that_ended_it() -> None:
    keyboard = Keyboard()
    keyboard.read(b"\x1b[<35;3")
    keyboard.pause(2.5)
    keyboard.read(b"\r")
    waits, unfinished, key = keyboard.heard
    assert isinstance(waits, Unclassified)
    assert (waits.kind, waits.held_back_s) == ("waits", 2.0)
    assert isinstance(unfinished, Unclassified)
    assert (unfinished.kind, unfinished.held_back_s) == ("unfinished", 2.5)
    assert isinstance(key, events.Key)


def test_the_mouse_and_a_size_of_no_pixels_do_no_harm() -> None:
    keyboard = Keyboard()
    keyboard.read(
        b"\x1b[48;24;80;0;0t\x1b[<0;5;6M\x1b[48;24;80;480;800t\x1b[<35;50;60M\x1b[<0;-3;5M"
    )
    size, down, _, move = keyboard.heard
    assert isinstance(size, events.Resize)
    assert isinstance(down, events.MouseDown)
    assert (down.x, down.y) == (4, 5)
    assert isinstance(move, events.MouseMove)


def test_half_a_character_everywhere_is_whole_again() -> None:
    keyboard = Keyboard()
    for byte in "日本語é🙂".encode():
        keyboard.read(bytes([byte]))
        keyboard.pause(5.0)
    assert "".join(keyboard.typed) == "日本語é🙂"


@pytest.mark.parametrize("seed", range(4))
def test_nothing_that_a_terminal_sends_raises(seed: int) -> None:
    make = random.Random(seed)
    for _ in range(5_000):
        keyboard = Keyboard()
        for step in fuzzed(make):
            if isinstance(step, bytes):
                keyboard.read(step)
            else:
                keyboard.pause(step)


# What Textual does otherwise

READ_WITH_CARE = {
    "XTermParser": "fc1e32fb7a4ae5a0",
    "LinuxDriver.run_input_thread": "d796af6d69db337d",
    "LinuxDriver._run_input_thread": "d2ef22cc2c97a9eb",
    "Driver.process_message": "af9cb0baaf150940",
}


def test_textual_reads_as_it_did_when_its_parser_was_replaced() -> None:
    """Compare what has changed with `tui/ui/toolkit/key_parser.py` and
    `tui/ui/start/terminal_takeover.py`; then write down what it is now."""
    sources = {
        "XTermParser": XTermParser,
        "LinuxDriver.run_input_thread": LinuxDriver.run_input_thread,
        "LinuxDriver._run_input_thread": vars(LinuxDriver)["_run_input_thread"],
        "Driver.process_message": Driver.process_message,
    }
    found = {
        name: hashlib.sha256(inspect.getsource(source).encode()).hexdigest()[:16]
        for name, source in sources.items()
    }
    assert found == READ_WITH_CARE


def test_textuals_own_parser_still_types_what_it_does_not_know() -> None:
    """Else our own may not be needed any more."""
    assert "1" in told(XTermParser().feed("\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\"))
