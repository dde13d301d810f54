"""The texts of an item: as the model sees it, as it was recorded, and what was cut."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from tui.context.masks import record_of
from tui.context.overrides import Stand, content_of
from tui.context.token_ledger import Item
from tui.core.formatting import size
from tui.core.images import facts, of_block
from tui.core.messages import Block, blocks_of
from tui.session.records import Record
from tui.ui.screens.context.port import Inspected
from tui.ui.widgets.conversation.tool_card import shrunk


@dataclass(frozen=True, slots=True)
class Texts:
    """An item's texts. `path` is the file of the full copy where something was cut."""

    sent: str
    recorded: str
    receipt: dict[str, Any] | None = None

    @property
    def path(self) -> Path | None:
        path = (self.receipt or {}).get("path")
        return Path(path) if isinstance(path, str) and path else None


def texts_of(record: Record | None, stand: Stand | None, fixed: str = "") -> Texts:
    """The texts of a record, or of a part that every request carries."""
    if record is None:
        return Texts(fixed, fixed)
    recorded = shown(content_of(record))
    receipt: object = record.data.get("receipt")
    return Texts(
        shown(stand.blocks) if stand else recorded,
        recorded,
        cast("dict[str, Any]", receipt) if isinstance(receipt, dict) else None,
    )


def texts_of_image(record: Record, place: int, stand: Stand | None) -> Texts:
    """The texts of one image of a prompt."""
    blocks = content_of(record)
    sent = stand.blocks if stand else blocks
    apart = len(sent) == len(blocks)
    return Texts(shown([sent[place]] if apart else sent), shown(blocks[place : place + 1]))


def texts_in(agent: Inspected, item: Item) -> Texts:
    """The texts of an item as it stands in the next request of an agent."""
    id_, place = record_of(item.id)
    record = next((one for one in agent.session.records if one.id == id_), None)
    stand = agent.view().stands.get(id_)
    if record is not None and place is not None:
        return texts_of_image(record, place, stand)
    return texts_of(record, stand, "" if record else agent.fixed_texts().get(item.id, ""))


def shown(blocks: Iterable[Block]) -> str:
    """Blocks as text to be read; what is no text is told in a line or as JSON."""
    return "\n\n".join(_block(block) for block in blocks)


def _block(block: Block) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "thinking", "thinking": str(text)}:
            return f"── thinking ──\n{text}"
        case {"type": "tool_use"}:
            given = json.dumps(block.get("input"), ensure_ascii=False, indent=2, default=str)
            return f"── call of {block.get('name')} ──\n{given}"
        case {"type": "tool_result"}:
            return f"── result ──\n{shown(blocks_of(block.get('content')))}"
        case {"type": "image", "source": {"data": str(data), "media_type": str(kind)}}:
            image = of_block(block, "")
            return f"── {kind}, {facts(image) if image else size(len(data) * 3 // 4)} ──"
        case _:
            return json.dumps(block, ensure_ascii=False, indent=2, default=str)


def receipt_line(texts: Texts) -> str:
    """What was cut of the output, and where the whole of it is."""
    receipt = texts.receipt
    if not receipt:
        return ""
    stages = ", ".join(map(str, cast("list[object]", receipt.get("stages") or [])))
    text = f"{shrunk(receipt)} by {stages or 'a guard'}"
    lines = receipt.get("lines_total"), receipt.get("lines_shown")
    if isinstance(lines[0], int) and isinstance(lines[1], int):
        text += f" · {lines[0]:,} → {lines[1]:,} lines"
    return f"{text} · full copy: {texts.path}" if texts.path else f"{text} · no full copy was kept"
