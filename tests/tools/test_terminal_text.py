"""What a terminal would show, held against a real one: pyte."""

from __future__ import annotations

from itertools import pairwise

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.core.text_cleaning import without_colours
from tui.tools.terminal_text import HEIGHT, WIDTH, TerminalText

BAR = [f"{n:4} of 3000 [{'#' * (n // 100):30}]" for n in range(3000)]


def shown(*pieces: str) -> tuple[str, int]:
    """What the model gets, and the bytes that were written over."""
    text = TerminalText()
    final = "".join(text.feed(piece).final for piece in pieces) + text.close().final
    return final, text.dropped


def watched(*pieces: str) -> list[str]:
    """The lines that a person has seen in the end, as the output pane shows them."""
    text = TerminalText()
    live = "".join(text.feed(piece).live for piece in pieces) + text.close().live
    return [row.rpartition("\r")[2] for row in live.split("\n")]


def in_a_terminal(text: str) -> list[str]:
    screen = pyte.HistoryScreen(400, HEIGHT, history=10_000, ratio=0.5)
    pyte.Stream(screen).feed(text.replace("\n", "\r\n"))
    return [
        "".join(row[at].data for at in range(400)).rstrip()
        for row in [*screen.history.top, *(screen.buffer[at] for at in range(HEIGHT))]
    ]


@pytest.mark.parametrize(
    ("text", "expected", "dropped"),
    [
        ("a\rb\n", "b\n", 1),
        ("abc\rX", "Xbc", 1),
        ("a\r\n", "a\n", 0),
        ("a\r\r\n", "a\n", 0),
        ("a\r", "a", 0),
        ("\ra", "a", 0),
        ("N\bNA\bA", "NA", 2),  # what man writes
        ("10 %\x1b[K\r20 %\x1b[K\rdone\x1b[K\n", "done\n", 8),
        ("one\ntwo\n\x1b[2A\x1b[2K1\n\x1b[2K2\n", "1\n2\n", 6),
        ("1\n2\n\x1b[2J\x1b[Hnew\n", "new\n", 2),
        ("sh$ \x1b[?1049hediting\x1b[?1049ldone\n", "sh$ done\n", 7),
        ("日本\rab", "ab本", 3),
        ("日a\rb", "b a", 3),  # as tmux shows it; pyte leaves no column for the other half
        ("a\tb\rX", "X\tb", 1),
        ("e\u0301x\r", "e\u0301x", 0),
        ("\x1b[31mred\x1b[0m\rR", "Red", 1),
    ],
)
def test_what_is_left_in_the_end(text: str, expected: str, dropped: int) -> None:
    assert shown(text) == (expected, dropped)


@pytest.mark.parametrize("first", ["", "\r"])
@pytest.mark.parametrize("end", ["", "\n", "\nmore\n"])
def test_a_progress_bar_is_its_last_state(first: str, end: str) -> None:
    text = f"begin\n{first}" + "\r".join(BAR) + end
    final, dropped = shown(text)
    assert final == f"begin\n{BAR[-1]}{end}"
    assert dropped == 2999 * len(BAR[0])
    assert watched(text) == final.split("\n")


def test_a_person_who_watches_sees_the_line_change() -> None:
    text = TerminalText()
    assert text.feed("building\n 10 %").live == "building\n 10 %"
    assert text.feed("\r 20 %").live == "\r 20 %"
    assert text.feed("\r\x1b[32m 30 %\x1b[0m").live == "\r\x1b[32m 30 %\x1b[0m"
    assert text.feed("\n").live == "\n"


def test_what_is_drawn_over_several_lines_is_seen_while_it_lasts() -> None:
    terminal = TerminalText()
    terminal.feed("before\n")
    terminal.feed("\x1b[31ma: 1\x1b[0m\nb: 1\n")
    assert terminal.picture == ""
    terminal.feed("\x1b[2A")
    terminal.feed("\x1b[31ma: 2\x1b[0m\nb: 2\n")
    assert [without_colours(row) for row in terminal.picture.split("\n")] == [
        "before", "a: 2", "b: 2",
    ]  # fmt: skip
    assert "\x1b[31m" in terminal.picture
    terminal.feed("".join(f"{n}\n" for n in range(HEIGHT)))
    assert terminal.picture == ""


def test_what_is_long_is_no_progress_bar() -> None:
    page = "x" * (WIDTH + 1)
    assert shown(f"{page}\r{page}\rz") == (f"{page}\n{page}\nz", 0)
    assert shown(f"{page}\r\n{page}") == (f"{page}\n{page}", 0)
    assert shown(f"a\n{page}\nb\x1b[5Ac") == (f"a\n{page}\nbc", 0)


def test_moves_reach_no_further_than_the_screen() -> None:
    lines = [f"line {n}" for n in range(200)]
    final, _ = shown("\n".join(lines) + "\x1b[999A\r\x1b[2Ktop")
    assert final.split("\n") == [*lines[:150], "top", *lines[151:]]


def test_what_is_inserted_leaves_the_row_at_its_end() -> None:
    """Else a few bytes again and again would take any amount of memory."""
    final, dropped = shown("abc\r" + f"\x1b[{WIDTH}@" * 3)
    assert (final.strip(), len(final), dropped) == ("", WIDTH, 3 + 2 * WIDTH)


def test_a_character_combines_with_no_more_than_a_few() -> None:
    final, dropped = shown("x\ra" + "\u0301" * 1000)
    assert (len(final), dropped) == (31, 1 + 2 * 970)


def test_no_more_is_held_than_a_screen() -> None:
    text = TerminalText()
    assert len(text.feed("x" * 1_000_000).final) == 1_000_000
    got = sum(len(text.feed(f"{'y' * 99}\n").final) for _ in range(1000))
    assert got >= (1000 - HEIGHT) * 100


word = st.text(st.sampled_from("ab é\t"), max_size=12)
line = st.text(st.sampled_from("ab é\t\r\b\n"), max_size=30)
number = st.sampled_from(["", "0", "1", "2", "3", "7", "60"])
move = st.tuples(number, st.sampled_from("ABCDEFGdPX@LM")).map(lambda at: f"\x1b[{at[0]}{at[1]}")
erase = st.sampled_from([f"\x1b[{how}{what}" for how in ("", "0", "1", "2") for what in "JK"])
place = st.tuples(number, number).map(lambda at: f"\x1b[{at[0]};{at[1]}H")
# pyte goes to the next row without its start at ESC E, other than xterm and tmux.
other = st.sampled_from(["\x1b7", "\x1b8", "\x1bM", "\x1bD", "\n\n", "x\n" * 40, "\x1b[1m"])
drawing = st.lists(st.one_of(word, line, move, erase, place, other), max_size=30)
bar = st.tuples(line, st.sampled_from([1, 40])).map(lambda one: f"{one[0]}\r" * one[1])
edge = st.sampled_from(["x" * WIDTH, "y" * (WIDTH + 1), "\r", "\n", "\x1b[32mgreen\x1b[0m"])


@pytest.mark.property
@given(drawing)
def test_it_is_what_a_terminal_shows(pieces: list[str]) -> None:
    text = "".join(pieces)
    expected = in_a_terminal(text)
    got = [row.expandtabs(8).rstrip() for row in shown(text)[0].split("\n")]
    got += [""] * (len(expected) - len(got))
    assert got == expected


@pytest.mark.property
@given(st.lists(st.one_of(drawing.map("".join), bar, edge), max_size=12), st.data())
def test_the_cut_of_the_stream_changes_nothing(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    whole = shown(text)
    assert shown(*pieces) == whole
    cuts = data.draw(st.lists(st.integers(0, max(1, len(text))), max_size=20))
    # The bytes are cleaned first, which never cuts a sequence.
    bounds = sorted(
        {0, len(text), *(cut for cut in cuts if "\x1b" not in text[max(0, cut - 9) : cut])}
    )
    assert shown(*(text[a:b] for a, b in pairwise(bounds))) == whole


@pytest.mark.property
@given(st.text(st.sampled_from("abc é日\t\n"), max_size=4000))
def test_what_moves_nothing_stays_as_it_is(text: str) -> None:
    assert shown(text) == (text, 0)
    assert watched(text) == text.split("\n")


@pytest.mark.property
@given(st.lists(st.one_of(line, bar), max_size=12))
def test_what_a_person_watched_ends_as_what_the_model_gets(pieces: list[str]) -> None:
    final = shown(*pieces)[0].split("\n")
    assert [row.rstrip() for row in watched(*pieces)] == [row.rstrip() for row in final]
