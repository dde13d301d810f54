"""Repairs of images, documents and the like, each by itself and all of a request together.

`image`, `document` and `search_result` are cleaners, see `repairs.blocks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from tui.context.repairs.message_draft import DraftBlock, MessageDraft, Note, RepairReport, without
from tui.context.rules.blocks import is_document, is_search_result
from tui.context.rules.media import (
    MANY_IMAGES,
    MANY_PIXELS,
    MAX_MEDIA,
    SOURCE_FIELDS,
    image_info_of,
    image_violations,
    media_in,
)
from tui.context.rules.request import MAX_MARKS, marks_in
from tui.core.messages import Block, blocks_of, text_block, text_of


def removed(block: Block, why: str) -> Block:
    """The placeholder of an image or another block that cannot be sent."""
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
    picture = image_info_of(block)
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


def thin_media(drafts: Iterable[MessageDraft], report: RepairReport) -> None:
    """Replace by text, the oldest first, the media that are more than a request may have."""
    drafts = list(drafts)
    media = [block for draft in drafts for _, block in media_in(_blocks(draft), "")]
    if len(media) <= MANY_IMAGES:
        return
    oldest = media[: max(0, len(media) - MAX_MEDIA)]
    gone = {id(block): ("B34", f"more than {MAX_MEDIA} images") for block in oldest}
    images = [b for b in media if b.get("type") == "image" and id(b) not in gone]
    surplus = len(images)
    for block in images:
        picture = image_info_of(block)
        if surplus > MANY_IMAGES and picture is not None and picture.longest > MANY_PIXELS:
            gone[id(block)] = ("B30", f"over {MANY_PIXELS} pixels among many images")
            surplus -= 1
    if gone:
        _replace(drafts, gone, report)


def strip_marks(drafts: Iterable[MessageDraft], report: RepairReport) -> None:
    """Drop all cache marks if there are too many: the request sets its own."""
    drafts = list(drafts)
    if sum(marks_in(_blocks(draft)) for draft in drafts) > MAX_MARKS:
        report.add("B26", "messages", "all cache marks left out")
        _each(drafts, lambda _, block: without(block, "cache_control"))


def _blocks(draft: MessageDraft) -> list[Block]:
    return [item.block for item in draft.items]


def _replace(
    drafts: list[MessageDraft], gone: dict[int, tuple[str, str]], report: RepairReport
) -> None:
    def replaced(where: str, block: Block) -> Block:
        if id(block) not in gone:
            return block
        code, why = gone[id(block)]
        report.add(code, where, f"replaced by text: {why}")
        return removed(block, why)

    _each(drafts, replaced)


def _each(drafts: list[MessageDraft], change: Callable[[str, Block], Block]) -> None:
    """Apply a function to every block, including those in tool results."""
    for draft in drafts:
        items: list[DraftBlock] = []
        for where, given in draft.items:
            block = change(where, given)
            content: Any = block.get("content")
            if block.get("type") == "tool_result" and isinstance(content, list):
                block = block | {
                    "content": [change(where, part) for part in blocks_of(block["content"])]
                }
            items.append(DraftBlock(where, block))
        draft.items = items
