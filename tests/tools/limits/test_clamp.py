"""O1–O16: the hard clamp, and the ceiling above it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.tools.limits.clamp import (
    FLOOR_CHARS,
    PLACEHOLDER,
    SUFFIX,
    Room,
    byte_length,
    cap_chars,
    clamp,
    clamp_text,
    line_count,
)

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


def test_O4_lines_are_cut_first_then_bytes() -> None:
    text = f"{'x' * 99}\n" * 3000
    room = Room(51_200, 300)
    assert one(text, room) == f"{'x' * 99}\n" * 297 + "x" * 99 + SUFFIX
    assert byte_length(one(text)) == 51_200  # 2,000 of these lines are more than that


def test_O4_a_return_belongs_to_the_end_of_its_line() -> None:
    assert one("y\r\n" * 2000) == "y\r\n" * 2000
    assert line_count(one("y\r\n" * 2001)) == 2000


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


def test_O12_a_plain_string_gives_a_string() -> None:
    text = "short"
    assert clamp_text(text, ROOM) is text
    assert clamp_text("x" * 60_000, ROOM) == "x" * (51_200 - len(SUFFIX)) + SUFFIX


wild = st.text(alphabet=st.sampled_from("a\né漢🎉\r \ud800\x00"), max_size=900)


@given(wild, st.integers(130, 700), st.integers(4, 40))
def test_O5_O6_one_more_character_would_not_fit(text: str, size: int, lines: int) -> None:
    room = Room(size, lines)
    cut = one(text, room)
    if cut is text:
        assert room.holds(text)
        return
    kept = cut.removesuffix(SUFFIX)
    assert cut == kept + SUFFIX
    assert text.startswith(kept)
    assert room.holds(cut)
    more = text[: len(kept) + 1]
    while more.endswith("\n") and more != text:  # a newline alone begins no line
        more = text[: len(more) + 1]
    assert more != kept
    assert not room.holds(more + SUFFIX) or more == text


@given(wild, st.integers(140, 700), st.integers(6, 40))
def test_O5_both_ends_are_those_of_the_text(text: str, size: int, lines: int) -> None:
    cut = clamp_text(text, Room(size, lines), "ends")
    if cut is not text:
        head, tail = cut.split(SUFFIX + "\n\n")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert len(head) + len(tail) < len(text)
        assert Room(size, lines).holds(cut)


@given(st.lists(wild, min_size=2, max_size=9), st.integers(300, 900), st.integers(14, 40))
def test_O9_O10_the_budget_is_shared_in_order(texts: list[str], size: int, lines: int) -> None:
    cut = clamp(texts, Room(size, lines))
    assert sum(map(byte_length, cut)) <= size
    assert sum(map(line_count, cut)) <= lines
    if cut is texts:
        return
    changed = next(n for n, (a, b) in enumerate(zip(texts, cut, strict=False)) if a != b)
    if len(cut) == len(texts):
        assert cut[changed].endswith(SUFFIX)
        assert texts[changed].startswith(cut[changed].removesuffix(SUFFIX))
        assert list(cut[changed + 1 :]) == [PLACEHOLDER] * (len(texts) - changed - 1)
    else:
        left = len(texts) - len(cut) + 1
        assert cut[-1] == f"[tool output truncated: {left} more blocks]"


@given(st.lists(st.integers(0, 12_000), min_size=1, max_size=12), st.integers(30_000, 60_000))
def test_O16_the_ceiling_is_shared_by_length(lengths: list[int], most: int) -> None:
    texts = ["é" * n for n in lengths]
    cut = cap_chars(texts, most)
    if sum(lengths) <= most:
        assert cut is texts
        return
    for before, after in zip(texts, cut, strict=True):
        share = max(FLOOR_CHARS, len(before) * most // sum(lengths))
        assert len(after) == min(len(before), share)
        assert after == before or after.endswith(SUFFIX)


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
