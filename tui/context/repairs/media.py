"""Repairs of what is too much together: images and documents (B30, B34), cache marks (B26)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from tui.context.repairs.attachments import removed
from tui.context.repairs.blocks import without
from tui.context.repairs.message_draft import Draft, Item, Report
from tui.context.rules.media import MANY_IMAGES, MANY_PIXELS, MAX_MEDIA, media_in, picture_of
from tui.context.rules.request import MAX_MARKS, marks_in
from tui.core.messages import Block


def thin_media(drafts: Iterable[Draft], report: Report) -> None:
    """Replace by text, the oldest first, what is more than a request may hold."""
    drafts = list(drafts)
    media = [block for draft in drafts for _, block in media_in(_blocks(draft), "")]
    if len(media) <= MANY_IMAGES:
        return
    oldest = media[: max(0, len(media) - MAX_MEDIA)]
    gone = {id(block): ("B34", f"more than {MAX_MEDIA} images") for block in oldest}
    images = [b for b in media if b.get("type") == "image" and id(b) not in gone]
    surplus = len(images)
    for block in images:
        picture = picture_of(block)
        if surplus > MANY_IMAGES and picture is not None and picture.longest > MANY_PIXELS:
            gone[id(block)] = ("B30", f"over {MANY_PIXELS} pixels among many images")
            surplus -= 1
    if gone:
        _replace(drafts, gone, report)


def strip_marks(drafts: Iterable[Draft], report: Report) -> None:
    """Leave out all cache marks if there are too many: the request sets its own."""
    drafts = list(drafts)
    if sum(marks_in(_blocks(draft)) for draft in drafts) > MAX_MARKS:
        report.add("B26", "messages", "all cache marks left out")
        _each(drafts, lambda _, block: without(block, "cache_control"))


def _blocks(draft: Draft) -> list[Block]:
    return [item.block for item in draft.items]


def _replace(drafts: list[Draft], gone: dict[int, tuple[str, str]], report: Report) -> None:
    def replaced(where: str, block: Block) -> Block:
        if id(block) not in gone:
            return block
        code, why = gone[id(block)]
        report.add(code, where, f"replaced by text: {why}")
        return removed(block, why)

    _each(drafts, replaced)


def _each(drafts: list[Draft], change: Callable[[str, Block], Block]) -> None:
    """Put every block, those in tool results included, through a function."""
    for draft in drafts:
        items: list[Item] = []
        for where, given in draft.items:
            block = change(where, given)
            content: Any = block.get("content")
            if block.get("type") == "tool_result" and isinstance(content, list):
                inner = [change(where, part) for part in cast("list[Block]", content)]
                block = block | {"content": inner}
            items.append(Item(where, block))
        draft.items = items
