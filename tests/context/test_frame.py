"""The record of a frame: replayed to the byte, in the blocks that it was made of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tui.context.frame import FRAME, Frame, frame_in
from tui.session.records import Record

LAYERS = (("identity", "You are."), ("project AGENTS.md", "Be kind."), ("environment", "Here."))
TOOLS = [{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}]
THREE = Frame(LAYERS, TOOLS, ends=(1, 2, 3))
ONE = Frame(LAYERS, TOOLS)


def recorded(frame: Frame, **changed: Any) -> Record:
    return Record(FRAME, "f", None, "", frame.to_json() | changed)


def texts(frame: Frame) -> list[str]:
    return [block["text"] for block in frame.system]


@pytest.mark.parametrize("frame", [THREE, ONE, Frame((), [])])
def test_it_is_read_as_it_was_written(frame: Frame) -> None:
    assert frame_in(recorded(frame)) == frame


def test_each_block_has_its_layers_and_a_record_without_ends_is_one_block() -> None:
    assert texts(THREE) == ["You are.", "Be kind.", "Here."]
    assert texts(ONE) == ["You are.\n\nBe kind.\n\nHere."]
    assert THREE.to_json()["blocks"] == [1, 2, 3]
    assert "blocks" not in ONE.to_json()


def test_an_empty_block_is_left_out() -> None:
    frame = replace(THREE, ends=(2, 2, 3))
    assert texts(frame) == ["You are.\n\nBe kind.", "Here."]
    assert frame_in(recorded(frame)) == frame


@pytest.mark.parametrize("blocks", [[], [3], [1, 3], [1, 2], ["1", 2, 3], [-1, 3], "x"])
def test_other_ends_than_those_of_what_was_sent_are_damage(blocks: object) -> None:
    assert frame_in(recorded(THREE, blocks=blocks)) is None


def test_the_order_and_the_blocks_are_no_other_content() -> None:
    assert ONE.says_the_same(replace(THREE, layers=LAYERS[::-1]))
    assert not ONE.says_the_same(replace(ONE, layers=LAYERS[:2]))
    assert not ONE.says_the_same(replace(ONE, facts={"Date": "another"}))
