"""Single images of a prompt, masked and shown again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.context.pictures import image, png
from tests.support.world import record
from tui.context import view
from tui.context.masks import one_image, record_of
from tui.context.overrides import overlay_in, overlays_of
from tui.core.facts import Overlay
from tui.session.records import Record

WORDS = [f"[image {n}: {n}.png 10×1{n} 44 B]" for n in range(4)]


def prompt() -> Record:
    blocks = [image(png(10, 10 + n)) for n in range(4)]
    return record("user", 1, content=[*blocks, {"type": "text", "text": "x"}], images=WORDS)


def with_overlay(records: list[Record], overlay: Overlay) -> list[Record]:
    return [*records, record("overlay", len(records) + 1, **overlay.to_record())]


def kinds(records: list[Record]) -> list[str]:
    (message,) = view.build(records, model="m", prompt_follows=False).messages
    return [block["type"] for block in message["content"]]


def test_an_item_names_its_record_and_place() -> None:
    assert record_of("r0001#2") == ("r0001", 2)
    assert record_of("r0001") == ("r0001", None)
    assert record_of("tool:mcp#x") == ("tool:mcp#x", None)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=12))
def test_each_image_stands_as_it_was_set_last(steps: list[tuple[int, bool]]) -> None:
    records, hidden = [prompt()], set[int]()
    for place, hide in steps:
        records = with_overlay(records, one_image(records, "r0001", place, hide=hide))
        hidden = hidden | {place} if hide else hidden - {place}
        assert kinds(records) == [
            *("text" if place in hidden else "image" for place in range(4)),
            "text",
        ]


def test_the_overlay_survives_the_record() -> None:
    overlay = Overlay("r0001", "imageless", blocks=(1, 3))
    assert overlay_in(record("overlay", 2, **overlay.to_record())) == overlay
    odd = record("overlay", 2, target="r0001", view="imageless", blocks=[1, "x", -2, None])
    read = overlay_in(odd)
    assert read
    assert read.blocks == (1,)


def test_all_images_left_out_for_their_size_can_come_back_one_by_one() -> None:
    records = with_overlay([prompt()], Overlay("r0001", "imageless", "overflow"))
    assert kinds(records).count("image") == 0
    records = with_overlay(records, one_image(records, "r0001", 2, hide=False))
    assert kinds(records) == ["text", "text", "image", "text", "text"]


def test_a_message_that_is_masked_as_a_whole_comes_back_as_a_whole() -> None:
    records = with_overlay([prompt()], Overlay("r0001", "masked"))
    shown = one_image(records, "r0001", 1, hide=False)
    assert shown.view == "full"
    assert overlays_of(with_overlay(records, shown)) == {}
