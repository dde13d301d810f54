"""The next request, put together from the view: system layers, messages, tools, breakpoints."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tui.core.messages import Block, Message
from tui.provider.base import ModelInfo, Request

OUTPUT_TOKENS = 32_000
"""The most output asked for in one answer, where the model allows it."""

MARGIN_TOKENS = 1024
"""Left free in the window, since the prompt's size is an estimate."""

_MARKS = 4
_CACHED = {"type": "ephemeral"}


def build(
    *,
    model: ModelInfo,
    system: list[Block],
    messages: list[Message],
    tools: list[dict[str, Any]],
    prompt_tokens: int,
    think: str = "",
    anchors: Iterable[int] = (),
    prompt_follows: bool = False,
) -> Request:
    """One request. Nothing that is passed in is changed.

    It has at most four cache breakpoints: behind the system prompt, on the user messages that
    `anchors` name (see `tui.context.prune`), and on the last user messages. With
    `prompt_follows` it is all that stands before a prompt which bears one of them.

    `think` is the text of a second system block, in force for this request only; it also
    asks for adaptive thinking and more effort where the model has them (K37a).
    """
    deep = bool(think) and model.adaptive_thinking
    extra: list[Block] = [{"type": "text", "text": think}] if think else []
    return Request(
        model=model.id,
        system=[*_mark_last(system), *extra],
        messages=_marked(messages, list(anchors), prompt_follows=prompt_follows),
        tools=tools,
        max_tokens=output_room(model, prompt_tokens),
        thinking={"type": "adaptive", "display": "summarized"} if deep else None,
        effort="xhigh" if deep else None,
    )


def output_room(model: ModelInfo, prompt_tokens: int) -> int:
    """The most output that is asked for behind a prompt of that size."""
    room = model.window - prompt_tokens - MARGIN_TOKENS
    return max(MARGIN_TOKENS, min(OUTPUT_TOKENS, model.max_output, room))


def to_json(request: Request) -> dict[str, Any]:
    """A request as `sessions view --json` prints it, ledger aside."""
    return {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "system": request.system,
        "messages": request.messages,
        "tools": request.tools,
        "thinking": request.thinking,
    }


def printed(request: Request) -> str:
    """A request to be read: JSON, its parts under comments that number them and mark breakpoints.

    Line breaks inside of texts are followed by real ones, so it is JSON for the eye only.
    """
    return "\n".join(_printed(request))


def _printed(request: Request) -> Iterator[str]:
    yield f"// {request.model}, at most {request.max_tokens:,} tokens of output"
    yield f'"thinking": {json.dumps(request.thinking)}'
    for number, tool in enumerate(request.tools, 1):
        yield f"\n// tools · {number} of {len(request.tools)} · {tool.get('name', '')}"
        yield _readable(tool)
    for number, block in enumerate(request.system, 1):
        yield f"\n// system · block {number} of {len(request.system)}{_breakpoint(block)}"
        yield _readable(block)
    for number, message in enumerate(request.messages, 1):
        yield f"\n// messages · {number} of {len(request.messages)} · {message['role']}"
        for block in message["content"]:
            if mark := _breakpoint(block):
                yield f"// {message['role']}{mark}"
            yield _readable(block)


def _breakpoint(block: Block) -> str:
    return " · ◆ cache breakpoint: all up to the end of this block" * ("cache_control" in block)


def _readable(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    return re.sub(r"\\(.)", lambda found: found[0] + "\n    " * (found[1] == "n"), text)


def _mark_last(blocks: Sequence[Block]) -> list[Block]:
    """The blocks with a cache breakpoint on the last one that may carry it."""
    marked = list(blocks)
    for index in range(len(marked) - 1, -1, -1):
        if marked[index].get("type") not in {"thinking", "redacted_thinking"}:
            marked[index] = {**marked[index], "cache_control": _CACHED}
            break
    return marked


def _marked(
    messages: Sequence[Message], anchors: Sequence[int], *, prompt_follows: bool
) -> list[Message]:
    """Breakpoints on user messages: the last one writes, the one before it and the anchors read.

    An anchor counts more than the last but one, whose prefix changes when pruning goes on.
    """
    users = [n for n, message in enumerate(messages) if message["role"] == "user"]
    prompt = -1
    if prompt_follows:  # behind an answer, or joined to a message of the person
        prompt = len(messages) - (users[-1:] == [len(messages) - 1])
        users = [*(n for n in users if n != prompt), prompt]
    wanted = [*users[-1:], *(n for n in anchors if n in users), *users[-2:-1]]
    marked = list(messages)
    for index in list(dict.fromkeys(wanted))[: _MARKS - 1]:
        if index != prompt:
            marked[index] = {"role": "user", "content": _mark_last(marked[index]["content"])}
    return marked
