"""What an MCP tool hands back, block by block."""

from __future__ import annotations

import base64

import pytest
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from tui.core.images import MEDIA_TYPES
from tui.core.messages import Block, text_of
from tui.tools.mcp.tool import embedded, tool_output

DATA = "aGVsbG8="


def picture(mime_type: str) -> Block:
    source = {"type": "base64", "media_type": mime_type, "data": DATA}
    return {"type": "image", "source": source}


@pytest.mark.parametrize("mime_type", sorted(MEDIA_TYPES))
def test_an_image_is_an_image_however_it_comes(mime_type: str) -> None:
    inside = BlobResourceContents(uri="demo://1", mime_type=mime_type, blob=DATA)
    blocks: list[ContentBlock] = [
        ImageContent(data=DATA, mime_type=mime_type),
        EmbeddedResource(resource=inside),
    ]
    assert tool_output(CallToolResult(content=blocks)).content == [picture(mime_type)] * 2


def test_what_no_model_can_see_is_named() -> None:
    said = tool_output(
        CallToolResult(
            content=[
                ImageContent(data=DATA, mime_type="image/tiff"),
                AudioContent(data=DATA, mime_type="audio/wav"),
                ResourceLink(uri="demo://a", name="a", description="the first"),
                ResourceLink(uri="demo://b", name="b"),
                EmbeddedResource(
                    resource=BlobResourceContents(uri="demo://c", mime_type="a/b", blob=DATA)
                ),
                EmbeddedResource(resource=BlobResourceContents(uri="demo://d", blob=DATA)),
                EmbeddedResource(resource=TextResourceContents(uri="demo://e", text="grüß")),
            ]
        )
    )
    assert [block["text"] for block in said.content] == [
        "[image, image/tiff: not shown]",
        "[audio, audio/wav: not shown]",
        "[resource demo://a: the first]",
        "[resource demo://b: b]",
        "[resource demo://c, a/b: not shown]",
        "[resource demo://d, binary: not shown]",
        "[resource demo://e]\ngrüß",
    ]
    assert said.details == {"blocks": 7}


def test_text_in_base64_is_text_and_other_bytes_are_not() -> None:
    def said(data: bytes) -> str:
        blob = base64.b64encode(data).decode()
        inside = BlobResourceContents(uri="demo://t", mime_type="text/plain", blob=blob)
        return text_of([embedded(inside)])

    assert said("grüß".encode()) == "[resource demo://t]\ngrüß"
    assert said(b"\xff\xfe\x00") == "[resource demo://t, text/plain: not shown]"


def test_structured_content_stands_in_for_missing_blocks_only() -> None:
    found = {"answer": "grüß"}
    alone = tool_output(CallToolResult(content=[], structured_content=found))
    assert alone.content == [{"type": "text", "text": '{\n "answer": "grüß"\n}'}]
    both = tool_output(CallToolResult(content=[TextContent(text="said")], structured_content=found))
    assert both.content == [{"type": "text", "text": "said"}]


@pytest.mark.parametrize("is_error", [True, False])
def test_nothing_at_all_is_said_to_be_nothing(is_error: bool) -> None:
    made = tool_output(CallToolResult(content=[], is_error=is_error))
    assert made.content == [{"type": "text", "text": "(no output)"}]
    assert made.is_error == is_error
