"""What content weighs: near a tokeniser's count for every kind of text, and never an exception."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.context.tokenisers import CONTENT, ENCODING
from tui.context.weigh import of_block, of_blocks, of_text, roughly
from tui.messages import text_block


@pytest.mark.parametrize("make", CONTENT)
def test_text_weighs_about_what_a_tokeniser_counts(
    make: Callable[[random.Random, int], str],
) -> None:
    text = make(random.Random(11), 6000)
    weight = of_text(text)
    counted = len(ENCODING.encode_ordinary(text))
    assert 0.7 < (weight.text + weight.wide) / counted < 1.35
    assert weight.quarter == len(text.encode()) / 4


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
FIELDS = ("text", "thinking", "data", "input", "name", "content", "source")
KINDS = ("text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "odd")


@given(st.text(st.characters(codec=None)), st.text(st.characters(codec=None)))
def test_K16_lone_surrogates_nul_and_special_tokens_are_text(one: str, other: str) -> None:
    weight = of_text(f"{one}\ud800\0<|endoftext|>{other}")
    assert weight.text + weight.wide > 3
    assert weight.quarter >= 3


@given(
    st.dictionaries(st.sampled_from(FIELDS), JSON),
    st.sampled_from(KINDS),
)
def test_any_block_weighs_something_and_raises_nothing(block: dict[str, Any], kind: str) -> None:
    weight = of_block({**block, "type": kind})
    assert min(weight) >= 0
    assert min(roughly([{**block, "type": kind}])) >= 0


def test_blocks_add_up() -> None:
    blocks = [text_block("one two"), text_block("three")]
    assert of_blocks(blocks) == of_text("one two").plus(of_text("three"))
    assert of_blocks([]) == roughly([]) == of_text("")


def test_by_length_it_is_about_the_same() -> None:
    words = [text_block("these are the words of a sentence. " * 100)]
    assert 0.7 < roughly(words).text / of_blocks(words).text < 1.4
