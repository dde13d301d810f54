"""What of a request the server has in its cache, and why not more. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tui.core.messages import Block, Message
from tui.provider.base import Request


@dataclass(frozen=True, slots=True)
class Change:
    """Where a request stops being the beginning of the next: all behind is written anew.

    `where` is model, tools, system, think or messages; `message` the number of the first message
    that is another, -1 where none is.
    """

    where: str
    message: int = -1


def first_change(before: Request, after: Request) -> Change | None:
    """Where the cached prefix of a request ends early in the next; None where all of it is read.

    A last message that only grew is not changed: it was its end that was cached.
    """
    if before.model != after.model:
        return Change("model")
    if before.tools != after.tools:
        return Change("tools")
    if _plain(before.system[:1]) != _plain(after.system[:1]):
        return Change("system")
    if _plain(before.system) != _plain(after.system):
        return Change("think")
    for index, old in enumerate(before.messages):
        if index >= len(after.messages):
            return Change("messages", index)
        new, last = after.messages[index], index == len(before.messages) - 1
        if not _same(old, new, grown=last):
            return Change("messages", index)
    return None


def _same(old: Message, new: Message, *, grown: bool) -> bool:
    if old is new or old["content"] is new["content"]:
        return True
    if old["role"] != new["role"]:
        return False
    ours, theirs = old["content"], new["content"]
    if grown:
        theirs = theirs[: len(ours)]
    return len(ours) == len(theirs) and all(
        a is b or _bare(a) == _bare(b) for a, b in zip(ours, theirs, strict=True)
    )


def _plain(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    return [_bare(block) for block in blocks]


def _bare(block: Block) -> dict[str, Any]:
    if "cache_control" not in block:
        return block
    return {name: value for name, value in block.items() if name != "cache_control"}
