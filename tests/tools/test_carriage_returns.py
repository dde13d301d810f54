"""Lines that are written over with a carriage return."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.tools.output_capture import FEW_CHARS, LONG_CHARS, Overwrites

BAR = [f"{n:4} of 3000 [{'#' * (n // 100):30}]" for n in range(3000)]


def shown(*pieces: str) -> tuple[str, int]:
    overwrites = Overwrites()
    text = "".join(map(overwrites.feed, pieces)) + overwrites.close()
    return text, overwrites.dropped


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\rb\n", "a\nb\n"),  # so little is shown as lines
        ("a\r\n", "a\n"),
        ("a\r\r\n", "a\n"),
        ("a\r", "a"),
        ("\ra", "a"),
        ("\n\r\n", "\n\n"),
        ("a\r\rb\rc", "a\nb\nc"),
    ],
)
def test_little_is_kept(text: str, expected: str) -> None:
    assert shown(text) == (expected, 0)


@pytest.mark.parametrize("first", ["", "\r"])
@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\nmore\n"])
def test_a_progress_bar_is_its_last_state(first: str, end: str) -> None:
    text = f"begin\n{first}" + "\r".join(BAR) + end
    expected = f"begin\n{BAR[-1]}{end.replace(chr(13), '')}"
    assert shown(text) == (expected, sum(len(state) + 1 for state in BAR[:-1]))


def test_each_line_counts_alone() -> None:
    line = "\r".join(["x" * 100] * 10)
    assert shown(f"{line}\n" * 50) == (f"{line}\n".replace("\r", "\n") * 50, 0)
    long = "\r".join(["é" * 100] * 20)
    assert shown(f"{line}\n{long}\n{line}") == (
        f"{line}\n".replace("\r", "\n") + "é" * 100 + "\n" + line.replace("\r", "\n"),
        19 * 201,
    )


def test_the_last_state_may_be_shorter() -> None:
    states = "\r".join(["downloading the index"] * 100)
    assert shown(f"{states}\rdone\n")[0] == "done\n"


def test_what_is_long_is_no_progress_bar() -> None:
    page = "\r".join([*"ab", "x" * (LONG_CHARS + 1), "y" * 100_000, "z"])
    assert shown(page) == (page.replace("\r", "\n"), 0)
    before = "\r".join(["w" * 100] * 20)
    assert shown(f"{before}\r{page}") == (page.replace("\r", "\n")[4:], 19 * 101 + 101 + 4)


def test_no_more_is_held_than_a_few_lines() -> None:
    overwrites = Overwrites()
    assert len(overwrites.feed("x" * 1_000_000)) == 1_000_000
    assert overwrites.feed("\r") == ""
    assert [overwrites.feed("y" * 99 + "\r") for _ in range(1000)] == ["\n", *[""] * 999]
    assert overwrites.dropped == 99_900
    assert overwrites.feed("end") == ""
    assert overwrites.close() == "end"


line = st.text(st.sampled_from("ab é\t\r\n"), max_size=30)
bar = st.tuples(line, st.sampled_from([1, 40, 400])).map(lambda one: f"{one[0]}\r" * one[1])
edge = st.sampled_from(["x" * LONG_CHARS, "y" * (LONG_CHARS + 1), "z" * FEW_CHARS, "\r", "\n"])
pieces = st.lists(st.one_of(line, bar, edge), max_size=12)


@given(pieces, st.lists(st.integers(0, 5000), max_size=20))
def test_the_cut_of_the_stream_changes_nothing(pieces: list[str], cuts: list[int]) -> None:
    text = "".join(pieces)
    at = sorted({0, *(cut for cut in cuts if cut < len(text)), len(text)})
    parts = [text[a:b] for a, b in pairwise(at)]
    whole = shown(text)
    assert shown(*pieces) == whole
    assert shown(*parts) == whole
    if len(text) < 10_000:
        assert shown(*text) == whole


@given(pieces)
def test_nothing_is_added_and_what_is_left_out_is_counted(pieces: list[str]) -> None:
    text = "".join(pieces)
    result, dropped = shown(text)
    assert "\r" not in result
    assert len(result.encode()) + dropped <= len(text.encode())
    left = sum(result.count(c) for c in "abéxyz")
    assert (sum(text.count(c) for c in "abéxyz") > left) <= (dropped > 0)
    if "\r" not in text:
        assert (result, dropped) == (text, 0)
    states = text.replace("\r", "\n").split("\n")
    assert all(state in states for state in result.split("\n"))
    assert result.count("\n") >= text.count("\n")


@given(pieces)
def test_what_a_line_ends_with_is_shown(pieces: list[str]) -> None:
    text = "".join(pieces)
    ends = [row.rstrip("\r").rpartition("\r")[2] for row in text.split("\n")]
    left = iter(shown(text)[0].split("\n"))
    assert all(any(end == state for state in left) for end in ends)
