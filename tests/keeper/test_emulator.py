"""What a terminal shows of what a program writes, and what it answers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui.core.terminal_screen import TerminalScreen
from tui.keeper.emulator import Emulator


def screen(text: str, rows: int = 4, cols: int = 10) -> TerminalScreen:
    return TerminalScreen.of_json(emulated(text, rows, cols).data(0))


def emulated(text: str, rows: int = 4, cols: int = 10) -> Emulator:
    emulator = Emulator(rows, cols)
    emulator.feed(text)
    return emulator


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("abc\rX", "Xbc"),
        ("abcdefghijkl", "abcdefghij\nkl"),
        ("a\x1b[3Cb\x1b[1Dc", "a   c"),
        ("one\r\ntwo\x1b[H\x1b[Kx", "x\ntwo"),
        ("\x1b[?1049hfull\x1b[?1049lback", "back"),
        ("first\x1b[?1049h\x1b[Hfull", "full"),
        ("a\x1b[>4;2mb\x1b[<uc\x1b[=5ud", "abcd"),  # keyboard protocols that pyte would draw
        ("a\x1bP+q544e\x1b\\b\x1b_apc\x1b\\c", "abc"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b(0lqk\x1b(B", "┌─┐"),
        ("ab\x1b[3bc", "abbbbc"),
        ("ab\x1bEc", "ab\nc"),
        ("a\u200db", "ab"),
        ("\t\tx\x1b[Zy", "        yx"),
        ("日本語日本x", "日本語日本\nx"),
        ("123456789日", "123456789\n日"),
        ("e\u0301x", "éx"),
        ("1\r\n2\r\n3\x1b[H\x1b[S", "2\n3"),
        ("1\r\n2\x1b[H\x1b[T", "\n1\n2"),
        ("a\x1b", "a"),
        ("a\x1b[1;", "a"),
    ],
)
def test_the_screen_is_what_a_terminal_shows(written: str, shown: str) -> None:
    assert screen(written).text == shown


def test_pieces_of_any_size_show_the_same() -> None:
    text = "\x1b[31mred\x1b[0m\x1b]2;t\x1b\\ \x1b[?1049hx\x1b[?1049l日\x1b[2;2Hend"
    pieces = Emulator(4, 10)
    for char in text:
        pieces.feed(char)
    assert pieces.data() | {"version": 0} == emulated(text).data() | {"version": 0}


def test_lines_that_leave_at_the_top_are_there_as_they_were() -> None:
    shown = screen("".join(f"{n}\r\n" for n in range(10)))
    assert (shown.gone, shown.recent) == (7, tuple(map(str, range(7))))
    assert screen("\x1b[?1049h" + "x\r\n" * 9).gone == 0


@given(st.integers(0, 60), st.integers(0, 5), st.text("ab ", max_size=10))
def test_a_flood_of_plain_lines_ends_as_line_by_line(count: int, rows: int, line: str) -> None:
    lines = [f"{line}{n}"[-10:] for n in range(count)]
    single = Emulator(rows + 2, 10)
    for number, one in enumerate(lines):
        single.feed(("\r\n" if number else "") + one)
    at_once = emulated("\r\n".join(lines), rows + 2)
    assert at_once.data(0) | {"version": 0} == single.data(0) | {"version": 0}


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("ab\x1b[6n", "\x1b[1;3R"),
        ("\x1b[5n", "\x1b[0n"),
        ("\x1b[c", "\x1b[?62;22c"),
        ("\x1b[>c", "\x1b[>0;10;0c"),
        ("\x1b[18t", "\x1b[8;4;10t"),
        ("\x1b[?2004$p", "\x1b[?2004;2$y"),
        ("\x1b[?2004h\x1b[?2004$p", "\x1b[?2004;1$y"),
        ("\x1b[?9999$p", "\x1b[?9999;0$y"),
        ("\x1b]11;?\x07", "\x1b]11;rgb:0000/0000/0000\x1b\\"),
        ("\x1b[21t\x1b]52;c;?\x07", ""),  # the title and the clipboard are nobody's to read
    ],
)
def test_questions_to_the_terminal_are_answered(asked: str, answer: str) -> None:
    assert Emulator(4, 10).feed(asked) == answer


def test_what_of_the_mouse_a_program_asks_for_is_known() -> None:
    """As vim does with `set mouse=a`."""
    emulator = emulated("\x1b[?1006;1000h\x1b[?1002h")
    asked = {name for name, on in emulator.data()["modes"].items() if on}
    assert asked == {"mouse_clicks", "mouse_drags", "mouse_sgr"}
    emulator.feed("\x1b[?1006;1000;1002l")
    assert not any(emulator.data()["modes"].values())


def test_colours_and_styles_by_name() -> None:
    ((first, second, third),) = screen("\x1b[1;33ma\x1b[0;38:2::1:2:3;4:3mb\x1b[0mc").lines[:1]
    assert (first.text, first.color, first.style) == ("a", "yellow", "b")
    assert (second.color, second.style) == ("010203", "u")
    assert (third.text, third.color, third.style) == ("c", "", "")


@pytest.mark.parametrize("before", ["e", "x" * 80, ""])
def test_marks_without_end_stay_within_their_cell(before: str) -> None:
    """Each is composed with those before it: a cell of a million would take minutes."""
    emulator = Emulator(4, 80)
    emulator.feed(before + "\u0301" * 1000 + "z")
    assert sum(len(emulator.screen.text(row)) for row in range(4)) < 200
    assert "z" in "".join(emulator.screen.text(row) for row in range(4))


def test_another_size_keeps_the_line_of_the_cursor() -> None:
    emulator = emulated("1\r\n2\r\n3\r\n4")
    emulator.resize(2, 20)
    shown = TerminalScreen.of_json(emulator.data(0))
    assert (shown.text, shown.cursor, shown.recent) == ("3\n4", (1, 1), ("1", "2"))


SEQUENCES = st.from_regex(r"\x1b[\[\]P()#%]?[<=>?]?[0-9;:]{0,8}[ -~]", fullmatch=True)


@settings(max_examples=150)
@given(st.lists(st.text(max_size=30) | SEQUENCES, max_size=20))
def test_nothing_that_is_written_makes_it_fail(parts: list[str]) -> None:
    emulator = Emulator(4, 10)
    for part in parts:
        emulator.feed(part)
    shown = TerminalScreen.of_json(emulator.data(0))
    assert len(shown.lines) == 4
    assert 0 <= shown.cursor[0] < 4
    assert 0 <= shown.cursor[1] < 10


def test_a_crash_of_the_library_is_counted_and_the_screen_begins_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    emulator = emulated("a")

    def fail(*_: object) -> None:
        raise IndexError

    with monkeypatch.context() as patched:
        patched.setattr(type(emulator.screen), "draw", fail)
        emulator.feed("b")
    emulator.feed("c")
    shown = TerminalScreen.of_json(emulator.data())
    assert (shown.text, shown.crashes) == ("c", 1)
