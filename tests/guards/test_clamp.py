"""O1–O14: the hard clamp."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.guards.clamp import PLACEHOLDER, SUFFIX, Room, clamp
from tui.guards.text import byte_length, line_count

ROOM = Room()


def one(text: str, room: Room = ROOM) -> str:
    (cut,) = clamp([text], room)
    return cut


def test_O3_under_both_limits_the_same_object_comes_back() -> None:
    texts = ["short", "also short"]
    assert clamp(texts, ROOM) is texts


def test_O5_the_largest_prefix_that_fits_is_kept() -> None:
    text = "é" * 40_000
    kept = one(text).removesuffix(SUFFIX)
    assert text.startswith(kept)
    assert byte_length(kept + SUFFIX) <= 51_200 < byte_length(kept + "é" + SUFFIX)


def test_O6_lines_of_the_suffix_are_reserved() -> None:
    cut = one("a\n" * 5000)
    assert line_count(cut) == 2000
    assert cut.endswith("a" + SUFFIX)


def test_O7_the_suffix_is_literal() -> None:
    assert SUFFIX == (
        "\n\n[tool output truncated: exceeded 50KB or 2000 lines; request smaller chunks "
        "(offset/limit) or specific sections]"
    )
    assert SUFFIX.isascii()


@pytest.mark.parametrize("text", ["x\n" * 2000, "x" * 51_200, "x\n" * 1999 + "x"])
def test_O8_exactly_at_a_limit_is_not_cut(text: str) -> None:
    assert one(text) is text


@pytest.mark.parametrize("text", ["x\n" * 2000 + "x", "x" * 51_201])
def test_O8_one_more_is_cut(text: str) -> None:
    assert one(text).endswith(SUFFIX)


def test_O10_later_blocks_become_placeholders() -> None:
    cut = clamp(["a" * 40_000, "b" * 40_000, "c", "d"], ROOM)
    assert cut[0] == "a" * 40_000
    assert cut[1].endswith("b" + SUFFIX)
    assert list(cut[2:]) == [PLACEHOLDER, PLACEHOLDER]
    assert sum(map(byte_length, cut)) <= 51_200


def test_O10_too_many_blocks_become_one_line() -> None:
    cut = clamp(["x"] * 5000, ROOM)
    assert cut[-1].startswith("[tool output truncated: ")
    assert cut[-1].endswith(" more blocks]")
    assert sum(map(line_count, cut)) <= 2000


def test_ends_keep_head_and_tail() -> None:
    text = "FIRST\n" + "x\n" * 9000 + "LAST"
    (cut,) = clamp([text], ROOM, "ends")
    assert cut.startswith("FIRST\n")
    assert cut.endswith("LAST")
    assert cut.count(SUFFIX) == 1
    assert line_count(cut) <= 2000
    assert byte_length(cut) <= 51_200


texts_of_any_shape = st.lists(
    st.text(alphabet=st.sampled_from("a\né漢🎉\r \ud800"), max_size=300), max_size=8
)


@given(
    texts_of_any_shape, st.integers(200, 900), st.integers(3, 40), st.sampled_from(["head", "ends"])
)
def test_O14_within_limits_and_idempotent(
    texts: list[str], size: int, lines: int, keep: str
) -> None:
    room = Room(size, lines)
    once = clamp(texts, room, "ends" if keep == "ends" else "head")
    assert sum(map(byte_length, once)) <= size
    assert sum(map(line_count, once)) <= lines
    assert clamp(once, room, "ends" if keep == "ends" else "head") is once
    assert sum(text.count(SUFFIX) for text in once) <= 1
