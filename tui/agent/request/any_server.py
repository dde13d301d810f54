"""A question beside the conversation, in the form that every server takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tui.context.compaction_block import COMPACTION
from tui.context.rules.blocks import THINKING
from tui.core.messages import Block, Message, string_of, text_block
from tui.provider.base import Request


def for_any_server(asked: Request) -> Request:
    """The same question for another server than it was made for: without thinking that only the
    first one can read and without cache marks, its notices as the user's text."""
    return replace(
        asked,
        system=[_unmarked(block) for block in asked.system],
        messages=_plain(asked.messages),
        tools=[{key: tool[key] for key in tool if key != _MARK} for tool in asked.tools],
        thinking=None,
        effort=None,
        diagnostics=None,
        binding_reports=False,
    )


_MARK = "cache_control"


def _plain(messages: Sequence[Message]) -> list[Message]:
    """Messages of the user and the assistant in turn."""
    plain: list[Message] = []
    for message in messages:
        role = "assistant" if message["role"] == "assistant" else "user"
        content = [*_blocks(message)]
        if not content:
            continue
        if plain and plain[-1]["role"] == role:
            plain[-1] = {"role": role, "content": [*plain[-1]["content"], *content]}
        else:
            plain.append({"role": role, "content": content})
    return plain


def _blocks(message: Message) -> Iterator[Block]:
    for block in message["content"]:
        kind = str(block.get("type"))
        if kind == COMPACTION:
            yield text_block(string_of(block.get("content")))
        elif kind == "text" or (kind not in THINKING and str(message["role"]) != "system"):
            yield _unmarked(block)


def _unmarked(block: Block) -> Block:
    return {key: value for key, value in block.items() if key != _MARK}
