"""What the practice model says of images: their headers, and that it cannot see."""

from __future__ import annotations

from tests.context.pictures import image, jpeg, png
from tui.core.messages import Block, Message, text_block
from tui.provider.base import Request
from tui.provider.practice.respond import respond

WORD = "[image 1: shot.png 640×480 12 KB]"


def asked(*content: Block) -> Request:
    messages: list[Message] = [{"role": "user", "content": list(content)}]
    tools = [{"name": "read_file"}, {"name": "list_dir"}]
    return Request("practice", [], messages, tools, 1000)


def test_it_says_what_the_header_says_and_no_more() -> None:
    said = respond(asked(image(png(640, 480)), text_block(f"what is {WORD}?"))).text
    assert "PNG, 640 × 480 pixels" in said
    assert "can't tell" in said
    assert "didn't understand" not in said


def test_an_image_alone_is_answered() -> None:
    answer = respond(asked(image(png(640, 480)), text_block(WORD)))
    assert "I was given an image" in answer.text
    assert not answer.tools


def test_several_images_are_told_apart() -> None:
    two = (image(png(640, 480)), image(jpeg(32, 16), "image/jpeg"), image(b"nothing"))
    said = respond(asked(*two, text_block("look"))).text
    assert "I was given 3 images" in said
    assert "JPEG, 32 × 16 pixels" in said
    assert "header I cannot read" in said


def test_what_else_is_asked_for_is_done() -> None:
    answer = respond(asked(image(png(640, 480)), text_block(f"read README.md {WORD}")))
    assert [(call.name, call.input["path"]) for call in answer.tools] == [
        ("read_file", "README.md")
    ]


def test_without_an_image_nothing_is_said_of_one() -> None:
    assert "image" not in respond(asked(text_block("hello"))).text
