"""The grammar of a terminal's bytes: what is typed, what is a sequence, and how one ends."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.clock import FakeClock
from tests.support.fuzzed_keys import Step, fault_of, fuzzed, play
from tests.terminals import recorded
from tui.core.terminal_input import CSI_LIMIT, STRING_LIMIT, TerminalInput

Heard: TypeAlias = list[tuple[str, str]]

OSC = b"\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\"
MOUSE = b"\x1b[<35;33;12M"


def hear(*steps: Step) -> Heard:
    return [(part.kind, part.text) for part in play(*steps)]


def typed(*steps: Step) -> str:
    """Only what is typed or pasted, with Esc and Alt keys as `<…>`."""
    marks = {"escape": "<esc>", "alt": "<alt>"}
    parts = play(*steps)
    kinds = {"text", "control", "paste", *marks}
    return "".join(marks.get(one.kind, one.text) for one in parts if one.kind in kinds)


@pytest.mark.parametrize(
    ("steps", "heard"),
    [
        ([b"a\x1b[Ab"], [("text", "a"), ("csi", "\x1b[A"), ("text", "b")]),
        ([b"\x1bOP\x1bO2P"], [("ss3", "\x1bOP"), ("ss3", "\x1bO2P")]),
        ([b"\x1b[[A"], [("csi", "\x1b[[A")]),
        ([b"\x1b[3$y"], [("csi", "\x1b[3$"), ("text", "y")]),
        ([b"\x1b[4;2$y"], [("csi", "\x1b[4;2$y")]),
        ([b"\x1b[M !!a"], [("mouse", "\x1b[M !!"), ("text", "a")]),
        ([b"\x1b[MC\x81>a"], [("mouse", "\x1b[MC\udc81>"), ("text", "a")]),
        ([b"\x1b[MC\xc2\x81>a"], [("mouse", "\x1b[MC\x81>"), ("text", "a")]),
        ([b"\x1b[MC\x00>a"], [("mouse", "\x1b[MC\x00>"), ("text", "a")]),
        ([b"\x1b]0;t\x07a"], [("string", "\x1b]0;t"), ("text", "a")]),
        ([b"\x1bP1$r0m\x1b\\a"], [("string", "\x1bP1$r0m"), ("text", "a")]),
        ([b"\x1b_Gi=31;OK\x1b\\"], [("string", "\x1b_Gi=31;OK")]),
        ([b"\xc2\x9b?1ca"], [("csi", "\x1b[?1c"), ("text", "a")]),
        ([b"\x9d11;x\x9ca"], [("string", "\x1b]11;x"), ("text", "a")]),
        ([b"\x1b\r\x1bx\x1b\x7f"], [("alt", "\r"), ("alt", "x"), ("alt", "\x7f")]),
        ([b"\x1b\x1b[A"], [("escape", "\x1b"), ("csi", "\x1b[A")]),
        ([b"\x1b", 0.1], [("escape", "\x1b")]),
        ([b"\x1b", 0.09, b"x"], [("alt", "x")]),
        ([b"\x1b[", 0.1], [("dropped", "key"), ("alt", "[")]),
        ([b"\x1bX", 0.1, b"y"], [("dropped", "key"), ("alt", "X"), ("text", "y")]),
        ([b"\x1b[200~a\x1b[20", b"1~b"], [("paste", "a"), ("text", "b")]),
        ([b"\x1b", 5.0, b"[200~rm\r\x1b[201~"], [("escape", "\x1b"), ("paste", "rm\r")]),
        (
            [b"\x1b[2", 5.0, b"00~rm\r\x1b", 1.0, b"[201~"],
            [("dropped", "waits"), ("paste", "rm\r")],
        ),
        (["日本".encode()[:4], 1.0, "日本".encode()[4:]], [("text", "日"), ("text", "本")]),
        ([b"\xff\xfex"], [("text", "\ufffd\ufffdx")]),
    ],
)
def test_what_comes_is_cut_into_parts(steps: Sequence[Step], heard: Heard) -> None:
    assert hear(*steps) == heard or hear(*steps)[1:] == heard


@pytest.mark.parametrize("pause", [0.0, 0.09, 0.4, 10.0])
@pytest.mark.parametrize("sequence", [OSC, MOUSE, b"\x1bP>|foot(1.13.1)\x1b\\", b"\x1b[MC!>"])
def test_no_pause_makes_keys_of_a_sequence_that_has_begun(sequence: bytes, pause: float) -> None:
    for cut in range(3, len(sequence)):
        assert typed(sequence[:cut], pause, sequence[cut:], 10.0, b"y") == "y"


@pytest.mark.parametrize("pause", [0.1, 0.4, 10.0])
@pytest.mark.parametrize("sequence", [OSC, MOUSE, b"\x1b]10;rgb:0/0/0\x07", b"\x1b[?62;4c"])
def test_the_rest_in_one_read_is_dropped(sequence: bytes, pause: float) -> None:
    assert typed(sequence[:1], pause, sequence[1:], 0.2, b"y") == "<esc>y"
    assert typed(sequence[:2], pause, sequence[2:], 0.2, b"y") == "<alt>y"


@pytest.mark.parametrize("begun", [b"\x1b]11;rgb:1e", b"\x1bP>|fo", b"\x1b[<35;3", b"\x1b[M!"])
@pytest.mark.parametrize("key", ["\x03", "\r", "\x18", "\x1a", "\t", "é"])
def test_what_cannot_belong_to_a_sequence_ends_it(begun: bytes, key: str) -> None:
    parts = play(begun, 3.0, key.encode())
    if key == "é" and b"<" not in begun:
        assert [one.text for one in parts] == ["waits"]  # it can belong to it
        return
    assert [(one.kind, one.text) for one in parts[:2]] == [
        ("dropped", "waits"),
        ("dropped", "unfinished"),
    ]
    assert parts[1].held_s == 3.0
    assert parts[2].text == key


@pytest.mark.parametrize("begun", [b"\x1b]11;rgb:1e", b"\x1bP>|fo", b"\x1b[<35;3", b"\x1b[M!"])
def test_esc_ends_a_sequence_and_is_a_key(begun: bytes) -> None:
    assert hear(begun, 1.0, b"\x1b", 0.1, b"y") == [
        ("dropped", "unfinished"),
        ("escape", "\x1b"),
        ("text", "y"),
    ]


def test_an_esc_of_the_end_of_a_string_is_no_key() -> None:
    assert typed(OSC[:-1], 10.0, OSC[-1:], 0.2, b"y") == "y"
    assert typed(OSC[:-1], 10.0, b"y") == "y"
    assert typed(OSC[:-2], 1.0, OSC[-2:-1], 1.0, OSC[-1:], 0.2, b"y") == "<esc>y"


def test_the_rest_of_an_ended_sequence_is_still_known() -> None:
    assert typed(OSC[:12], 1.0, b"\r", 0.5, b"y", 5.0, OSC[12:], b"n") == "\ryn"
    assert typed(OSC[:12], MOUSE[:6], b"\r", OSC[12:], MOUSE[6:], b"n") == "\rn"


def test_a_sequence_that_is_too_long_is_dropped_and_lets_go_of_the_keyboard() -> None:
    long = b"\x1b[" + b"1;" * CSI_LIMIT + b"m"
    assert typed(long + b"hello") == "hello"
    assert typed(long[:-20], b"y", b"n") == "yn"
    assert typed(long[:-20], long[-20:], b"y") == "y"
    string = b"\x1b]52;c;" + b"A" * STRING_LIMIT
    assert typed(string, 0.1, b"A" * 9_000, 0.1, b"A" * 9_000 + b"\x07", b"y") == "y"
    assert typed(string + b"AA", 0.1, b"y", 0.1, b"A" * 70 + b"\x1b\\", b"n") == "yn"


def test_it_is_said_once_that_keys_are_held_back() -> None:
    parts = play(b"\x1b[<35", 1.9)
    assert parts == []
    (waits,) = play(b"\x1b[<35", 9.0)
    assert (waits.kind, waits.text, waits.held_s) == ("dropped", "waits", 2.0)
    *_, over, mouse = play(b"\x1b[<35", 9.0, b";33;12M")
    assert (over.text, over.held_s, mouse.kind) == ("waits", 9.0, "csi")


def test_a_paste_without_an_end_is_kept_and_lets_go_of_the_keyboard() -> None:
    for key in (b"\x03", b"\x1b", b"\x1b[27u", b"\x1b[99;5u"):
        kinds = [part.kind for part in play(b"\x1b[200~half of it", 2.0, key, 0.1)]
        assert kinds[:2] == ["paste", "dropped"]
        assert len(kinds) == 3
    assert typed(b"\x1b[200~a", 1.0, b"\x03", 1.0, b"b\x1b[201~") == "a\x03b"


def test_the_end_of_a_reply_to_another_program_is_not_typed() -> None:
    for tail in (b"1e/2e2e\x1b\\", b"2e2e/1e1e\x07", b";1$y", b";22;28c", b"12;1R", b"\x1b\\"):
        clock = FakeClock()
        terminal = TerminalInput(clock.monotonic)
        clock.elapsed += 1
        kinds = {part.kind for part in terminal.feed(tail)}
        assert not kinds & {"text", "control"}


# What is typed is never lost

WORDS = (
    "OK",
    "[1] see",
    "Please",
    "X-rays",
    "]",
    "[A",
    "O",
    "P1",
    "12;3M",
    "_G",
    "[M",
    "^ABC",
    "é",
)


@pytest.mark.parametrize("before", [b"", b"\x1b", b"\x1b[", b"\x1b]", b"\x1bO", b"\x1bP"])
@pytest.mark.parametrize(
    "word", ["Please do it", "OK then", "[IMPORTANT] x", "Xylophone", "日本語"]
)
def test_words_that_begin_like_a_sequence_are_typed(before: bytes, word: str) -> None:
    """As an input method or a dictation sends them, in one read after a key."""
    assert typed(before, 0.5, word.encode()).removeprefix("<esc>").removeprefix("<alt>") == word


@pytest.mark.parametrize("word", WORDS)
def test_single_keys_after_esc_are_typed(word: str) -> None:
    keys = [step for char in word for step in (char.encode(), 0.05)]
    assert typed(b"\x1b", 0.2, *keys) == "<esc>" + word


TEXT = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cc", "Cs"]),
        st.sampled_from("\r\t\n\x7f\x03 yn123"),
        st.sampled_from("日本語é🙂\u3000\xa0\u200d"),
    ),
    max_size=40,
)
WHOLE = st.sampled_from([one.data for one in recorded("query", "mouse", "focus")])
PASTES = TEXT.map(lambda text: b"\x1b[200~" + text.encode() + b"\x1b[201~")
CHUNKS = st.lists(
    st.one_of(
        TEXT.map(lambda text: ("typed", text.encode())),
        WHOLE.map(lambda data: ("told", data)),
        PASTES.map(lambda data: ("pasted", data)),
    ),
    max_size=8,
)


@given(CHUNKS, st.lists(st.integers(1, 300), max_size=12))
def test_text_outside_of_sequences_is_never_lost(
    chunks: list[tuple[str, bytes]], cuts: list[int]
) -> None:
    """However it is cut, where nothing pauses."""
    whole = b"".join(data for _, data in chunks)
    places = sorted({0, *(cut for cut in cuts if cut < len(whole)), len(whole)})
    wanted = "".join(
        data.decode() if kind == "typed" else data[6:-6].decode()
        for kind, data in chunks
        if kind != "told"
    )
    assert typed(*(whole[start:stop] for start, stop in pairwise(places))) == wanted


# Anything at all


@pytest.mark.parametrize("first", range(0, 6_000, 1_000))
def test_nothing_raises_holds_the_keyboard_or_is_typed_of_what_has_begun(first: int) -> None:
    """A sample; a million are played by hand."""
    assert [fault for seed in range(first, first + 1_000) if (fault := fault_of(seed))] == []


def test_what_waits_is_always_told() -> None:
    """Where a sequence waits, it says until when; where none does, nothing is to be done."""
    make = random.Random(45)
    for _ in range(2_000):
        clock = FakeClock()
        terminal = TerminalInput(clock.monotonic)
        for step in fuzzed(make):
            if isinstance(step, bytes):
                list(terminal.feed(step))
            clock.elapsed += 20
            ticks = 0
            while terminal.patience_s is not None:
                assert terminal.patience_s == 0.0
                list(terminal.tick())
                ticks += 1
                assert ticks < 4
