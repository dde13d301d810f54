"""Shared lines of two texts: any texts, and the ones that a plain comparison gets wrong."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui.context.blame.line_match import hunks, matching_blocks

_TEXTS = st.lists(st.sampled_from(["", "}", "a", "b", "c", "d", "e"]), max_size=40)


@given(_TEXTS, _TEXTS)
def test_blocks_are_equal_rise_and_leave_the_rest_to_hunks(old: list[str], new: list[str]) -> None:
    blocks = matching_blocks(old, new)
    i = j = 0
    for block in blocks:
        assert block.old >= i
        assert block.new >= j
        assert block.size
        i, j = block.old + block.size, block.new + block.size
        assert old[block.old : i] == new[block.new : j]
    changed = sum(part.new_end - part.new for part in hunks(old, new, blocks))
    assert changed + sum(block.size for block in blocks) == len(new)


@given(_TEXTS)
def test_a_text_is_all_shared_with_itself(text: list[str]) -> None:
    assert sum(block.size for block in matching_blocks(text, text)) == len(text)


def test_unique_lines_are_found_where_most_lines_are_alike() -> None:
    old = ["}", ""] * 3000 + ["def one():", "}", ""]
    new = ["def two():", "}", "", *old]
    assert sum(block.size for block in matching_blocks(old, new)) == len(old)


def test_lines_that_come_again_at_the_end_hide_nothing_before_them() -> None:
    tail = [f"tail {n}" for n in range(30)]
    old = ["one", "kept", "two", *tail]
    new = ["other", *tail, "kept", "more", *tail]
    kept = [block for block in matching_blocks(old, new) if old[block.old] == "kept"]
    assert kept


def test_a_blank_line_amid_replaced_lines_is_a_new_one() -> None:
    old = ["head", "one", "", "two", "", "tail"]
    new = ["head", "three", "", "four", "", "tail"]
    kept = {block.new + n for block in matching_blocks(old, new) for n in range(block.size)}
    assert kept == {0, 4, 5}


def kept_lines(old: list[str], new: list[str]) -> dict[int, int]:
    return {
        block.new + n: block.old + n
        for block in matching_blocks(old, new)
        for n in range(block.size)
    }


def test_a_bracket_goes_with_what_it_closes() -> None:
    one, other, tail = ["a(", "    x", ")"], ["b(", "    y", ")"], ["tail"]
    old = ["head", *one, *tail]
    assert kept_lines([*one, *tail], [*other, *tail]) == {3: 3}
    assert kept_lines(old, ["head", *one, *other, *tail]) == {0: 0, 1: 1, 2: 2, 3: 3, 7: 4}
    assert kept_lines(old, ["head", *other, *one, *tail]) == {0: 0, 4: 1, 5: 2, 6: 3, 7: 4}
    more = ["head", "a(", "    x", "    more", ")", *tail]
    assert kept_lines(old, more) == {0: 0, 1: 1, 2: 2, 4: 3, 5: 4}


def test_a_bracket_that_closes_none_of_the_new_lines_is_the_old_one() -> None:
    old, new = ["a(", "    x", ")", "tail"], ["call(of=[1], more={})", "    if y:", ")", "tail"]
    assert kept_lines(old, new) == {2: 2, 3: 3}
    assert kept_lines(["} else {", "}"], ["} elif {", "}"]) == {}
