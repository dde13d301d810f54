"""The block with which a server that compacts on demand replaces the beginning. Pure.

It is stored in the compaction's record exactly as received, and comes first in every later request
to that server. In a view it is a summary like any other; only a request to a model that knows such
blocks contains the block itself. All others get its readable text in our own wrapping.

For the server, content that follows the block directly and unchanged is still where it was before;
that is why its thinking stays valid (`tui.context.request_trail`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tui.context.notices import Form
from tui.context.overrides import summary_text
from tui.core.messages import Block, Message, list_of, object_of, text_block
from tui.session.records import Record

COMPACTION: Final = "compaction"
"""The type of the block, and of the record that holds it."""


class SummaryBlock(dict[str, Any]):
    """A summary as a user's text block, which `with_block` replaces by the server's block."""

    __slots__ = ("block",)
    block: Block


def block_in(record: Record) -> Block | None:
    """Return the server's block in a compaction's record."""
    block = record.data.get("block")
    return object_of(block) or None


def follows(record: Record) -> bool:
    """True if the kept messages follow a compaction's block directly, with nothing between."""
    return block_in(record) is not None and record.data.get("follows") is True


def opening(record: Record, server: str, form: Form) -> Block:
    """Return the first block of a view: the summary, as the server's block where that can be
    sent."""
    text = text_block(summary_text(record))
    block = block_in(record)
    if block is None or not is_sent(record, server, form):
        return text
    summary = SummaryBlock(text)
    summary.block = block
    return summary


def is_sent(record: Record, server: str, form: Form) -> bool:
    """True if the block of a compaction is sent as such and not as text."""
    block = block_in(record)
    if block is None or record.data.get("server") != server or not form.compaction_blocks:
        return False
    return form.tool_additions or not block.get("tool_changes")


def tools_in(record: Record) -> frozenset[str]:
    """The names of the tools that a block adds."""
    names: set[str] = set()
    for change in list_of(object_of(record.data.get("block")).get("tool_changes")):
        addition = object_of(change)
        tool = object_of(addition.get("tool"))
        name = str((object_of(tool.get("definition")) or tool).get("name"))
        if addition.get("type") == "tool_addition":
            names.add(name)
    return frozenset(names)


def with_block(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages with the server's block first, if they begin with its summary."""
    first = messages[0]["content"][0] if messages and messages[0]["content"] else None
    if not isinstance(first, SummaryBlock):
        return messages
    rest = messages[0]["content"][1:]
    if rest:
        opened: Message = {"role": "assistant", "content": [first.block]}
        return [opened, {"role": "user", "content": rest}, *messages[1:]]
    if len(messages) > 1 and messages[1]["role"] == "assistant":
        content = [first.block, *messages[1]["content"]]
        return [{"role": "assistant", "content": content}, *messages[2:]]
    return [{"role": "assistant", "content": [first.block]}, *messages[1:]]


def begins_with_block(message: Mapping[str, Any]) -> bool:
    """True if a message of a request begins with a server's block."""
    return any(block.get("type") == COMPACTION for block in message["content"][:1])
