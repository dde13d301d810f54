"""What the screen shows of a session that is gone on with, made from its records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from rich.style import Style

from tui.context.overrides import overlays_of, pins_of
from tui.core.messages import Block, text_of
from tui.session.reader import read_ends
from tui.session.records import Record
from tui.ui.widgets.conversation.items import AssistantItem, Item, ToolItem, UserItem
from tui.ui.widgets.record_items import SHOWN_CHARS, items_of


@dataclass(slots=True)
class RestoredItems:
    """The items of a conversation; `tools` and `outputs` (their texts) by the id of the call."""

    items: list[Item] = field(default_factory=list[Item])
    tools: dict[str, ToolItem] = field(default_factory=dict[str, ToolItem])
    outputs: dict[str, str] = field(default_factory=dict[str, str])
    last_answer: str = ""
    turns: int = 0


def restored(records: Sequence[Record]) -> RestoredItems:
    """What the records of a branch come to. Takes a second for 100,000 of them: call it in a
    thread."""
    items = items_of(records)
    tools = {item.id: item for item in items if isinstance(item, ToolItem)}
    outputs: dict[str, str] = {}
    masks, pins = overlays_of(records), pins_of(records)
    for record in records:
        if record.type != "tool_result":
            continue
        id_ = str(record.data.get("call_id"))
        outputs[id_] = text_of(cast("list[Block]", record.data.get("content") or []))[:SHOWN_CHARS]
        if item := tools.get(id_):
            item.masked = record.id in masks and masks[record.id].view == "masked"
            item.pinned = record.id in pins
    answers = (item.text for item in reversed(items) if isinstance(item, AssistantItem))
    turns = sum(isinstance(item, UserItem) for item in items)
    return RestoredItems(items, tools, outputs, next(answers, ""), turns)


def end_of(path: Path) -> list[Item]:
    """The last items of a session's file, and what they are drawn with loaded. Blocks; raises
    SessionError where it cannot be read."""
    items = items_of(read_ends(path).branch)
    warm()
    return items


def warm() -> None:
    """Load, in a thread, what the first answer is drawn with."""
    from tui.ui.widgets.markdown.document import render  # noqa: PLC0415 - not for the first frame

    render("- a\n\n```python\nb = 1\n```\n", defaultdict(Style), 80)
