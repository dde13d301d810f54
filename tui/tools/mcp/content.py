"""What an MCP tool hands back, as our output. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from tui.core.messages import Block, ToolOutput, text_block

if TYPE_CHECKING:
    import mcp_types

IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What the Messages API takes; the view checks size and bytes before anything is sent."""


def output(result: mcp_types.CallToolResult) -> ToolOutput:
    """The result's blocks in their order. What cannot be shown to a model is named in words."""
    blocks = list(_blocks(result.content))
    if not blocks and result.structured_content is not None:
        text = json.dumps(result.structured_content, ensure_ascii=False, indent=1)
        blocks = [text_block(text)]
    return ToolOutput(
        blocks or [text_block("(no output)")],
        is_error=result.is_error,
        details={"blocks": len(result.content)},
    )


def _blocks(content: Iterable[mcp_types.ContentBlock]) -> Iterable[Block]:
    for block in content:
        match block.type:
            case "text":
                yield text_block(block.text)
            case "image" if block.mime_type in IMAGES:
                yield _image(block.mime_type, block.data)
            case "image" | "audio":
                yield text_block(f"[{block.type}, {block.mime_type}: not shown]")
            case "resource_link":
                yield text_block(f"[resource {block.uri}: {block.description or block.name}]")
            case "resource":
                yield _embedded(block.resource)


def _image(mime_type: str, data: str) -> Block:
    return {
        "type": "image",
        "source": {"type": "base64", "media_type": mime_type, "data": data},
    }


def _embedded(
    resource: mcp_types.TextResourceContents | mcp_types.BlobResourceContents,
) -> Block:
    text, blob = getattr(resource, "text", None), getattr(resource, "blob", None)
    if isinstance(text, str):
        return text_block(f"[resource {resource.uri}]\n{text}")
    if isinstance(blob, str) and resource.mime_type in IMAGES:
        return _image(resource.mime_type, blob)
    return text_block(f"[resource {resource.uri}, {resource.mime_type or 'binary'}: not shown]")
