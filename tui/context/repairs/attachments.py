"""Repairs of images, documents and the like (B30–B33). Each function is a cleaner of `blocks`."""

from __future__ import annotations

from typing import Any, cast

from tui.context.repairs.message_draft import Note
from tui.context.rules.blocks import is_document, is_search_result
from tui.context.rules.media import SOURCE_FIELDS, image_violations, picture_of
from tui.core.messages import Block, blocks_of, text_block, text_of


def removed(block: Block, why: str) -> Block:
    """The placeholder of an image or another thing that cannot be sent."""
    return text_block(f"[{str(block.get('type')).replace('_', ' ')} removed: {why}]")


def image(block: Block, note: Note) -> Block | None:
    problems = {problem.code for problem in image_violations(block, "")}
    for code, why in _LOST_IMAGES.items():
        if code in problems:
            note(code, f"an image replaced by text: {why}")
            return removed(block, why)
    if not problems:
        return block
    source = cast("dict[str, Any]", block["source"])
    source = {name: source[name] for name in ("type", *SOURCE_FIELDS[source["type"]])}
    if "B27" in problems:
        note("B27", "unknown fields of an image left out")
    picture = picture_of(block)
    if "B33" in problems and picture is not None:
        note("B33", f"media type set to {picture.media_type}")
        source["media_type"] = picture.media_type
    return block | {"source": source}


_LOST_IMAGES = {"B32": "unreadable", "B31": "over 5 MB", "B30": "over 8000 pixels"}


def document(block: Block, note: Note) -> Block | None:
    if is_document(block):
        return block
    note("B32", "an unreadable document replaced by text")
    return removed(block, "unreadable")


def search_result(block: Block, note: Note) -> Block | None:
    if is_search_result(block):
        return block
    text = text_of(blocks_of(block.get("content")))
    note("B27", "a malformed search result kept as text" if text.strip() else "left out: empty")
    return text_block(text) if text.strip() else None


def upload(block: Block, note: Note) -> Block | None:
    if isinstance(block.get("file_id"), str) and block["file_id"]:
        return block
    note("B27", "left out: an upload without a file")
    return None
