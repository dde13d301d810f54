"""The next request, put together from the view: system layers, messages, tools, breakpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tui.messages import Block, Message
from tui.provider.base import ModelInfo, Request

OUTPUT_TOKENS = 32_000
"""The most output asked for in one answer, where the model allows it."""

MARGIN_TOKENS = 1024
"""Left free in the window, since the prompt's size is an estimate."""

_CACHED = {"type": "ephemeral"}


def build(
    *,
    model: ModelInfo,
    system: list[Block],
    messages: list[Message],
    tools: list[dict[str, Any]],
    prompt_tokens: int,
    think: str = "",
) -> Request:
    """One request. Nothing that is passed in is changed.

    `think` is the text of a second system block, in force for this request only (K35); it also
    asks for adaptive thinking and more effort where the model has them (K37a).
    """
    room = model.window - prompt_tokens - MARGIN_TOKENS
    deep = bool(think) and model.adaptive_thinking
    extra: list[Block] = [{"type": "text", "text": think}] if think else []
    return Request(
        model=model.id,
        system=[*_mark_last(system), *extra],
        messages=_mark_last_two(messages),
        tools=tools,
        max_tokens=max(MARGIN_TOKENS, min(OUTPUT_TOKENS, model.max_output, room)),
        thinking={"type": "adaptive", "display": "summarized"} if deep else None,
        effort="xhigh" if deep else None,
    )


def _mark_last(blocks: Sequence[Block]) -> list[Block]:
    """The blocks with a cache breakpoint on the last one that may carry it."""
    marked = list(blocks)
    for index in range(len(marked) - 1, -1, -1):
        if marked[index].get("type") not in {"thinking", "redacted_thinking"}:
            marked[index] = {**marked[index], "cache_control": _CACHED}
            break
    return marked


def _mark_last_two(messages: Sequence[Message]) -> list[Message]:
    """Breakpoints on the last two user messages: one reads the prefix, one writes the next."""
    marked = list(messages)
    left = 2
    for index in range(len(marked) - 1, -1, -1):
        if left and marked[index]["role"] == "user":
            marked[index] = {"role": "user", "content": _mark_last(marked[index]["content"])}
            left -= 1
    return marked
