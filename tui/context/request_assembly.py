"""The next request, assembled from the view: system layers, messages, tools, breakpoints."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, cast

from tui.core.messages import Block, Message
from tui.provider.base import ModelInfo, Request
from tui.provider.prices import CacheLife

OUTPUT_TOKENS = 32_000
"""The most output requested for one answer, if the model allows it."""

MARGIN_TOKENS = 1024
"""Tokens left free in the window, since the prompt's size is an estimate."""

Mark: TypeAlias = tuple[int, int]
"""A place for a cache breakpoint: the index of a message, and of a block in it."""

MarkLife: TypeAlias = CacheLife | Literal["none"]
"""The life of breakpoints; "none" where the server takes none."""

_MARKS = 4
_CACHED: Block = {"type": "ephemeral"}
_UNMARKED = frozenset({"thinking", "redacted_thinking", "tool_addition", "tool_removal"})


def build(
    *,
    model: ModelInfo,
    system: list[Block],
    messages: list[Message],
    tools: list[dict[str, Any]],
    prompt_tokens: int,
    think: bool = False,
    display: str = "",
    shows: bool = True,
    effort: str | None = None,
    life: MarkLife = "5m",
    marks: Iterable[Mark | None] = (),
    prompt_follows: bool = False,
    first: bool = False,
    longest: int = OUTPUT_TOKENS,
) -> tuple[Request, list[Mark]]:
    """Build a request, and return the places of its marks in the messages. No argument is changed.

    It has at most four cache breakpoints: after the system prompt, on the last block that may have
    one, and at `marks`, the most important first. With `prompt_follows` it is everything before a
    prompt, and that prompt gets the last of them. The `first` request of a session has one after
    each block of the system prompt, which other sessions begin with, too.

    `think` asks for adaptive thinking where the model has it. `display` is the way in which a model
    that thinks by itself returns its thinking, "" for the model's default; without `shows` the
    server knows no such way. `effort` is its depth. All marks have the same `life`. The answer may
    have `longest` tokens.
    """
    # The end of the messages comes first: the next request reads up to there from the cache.
    wanted = [_last_mark(messages)] if not prompt_follows else []
    cached = _cached(life)
    opening = _marked_system(system, cached, first=first)
    left = (
        0
        if cached is None
        else _MARKS - sum("cache_control" in block for block in opening) - prompt_follows
    )
    marked, placed = _marked(messages, [*wanted, *marks], left, cached)
    request = Request(
        model=model.id,
        system=opening,
        messages=marked,
        tools=tools,
        max_tokens=output_room(model, prompt_tokens, longest),
        thinking=thinking_of(model, think=think, display=display, shows=shows),
        effort=effort,
    )
    return request, placed


def thinking_of(
    model: ModelInfo, *, think: bool, display: str, shows: bool = True
) -> dict[str, str] | None:
    """The thinking field of a request; None to leave it to the model."""
    deep = think and model.adaptive_thinking
    shown = deep or (display and model.thinks and model.adaptive_thinking)
    if not shown:
        return None
    return {"type": "adaptive"} | ({"display": display or "summarized"} if shows else {})


def with_marks(
    system: list[Block],
    messages: list[Message],
    marks: Sequence[Mark],
    life: MarkLife,
    *,
    first: bool = False,
) -> tuple[list[Block], list[Message]]:
    """Put the breakpoints of a request's system prompt and messages at exactly these places."""
    cached = _cached(life)
    marked, _ = _marked(messages, marks, len(marks), cached)
    return _marked_system(system, cached, first=first), marked


def _cached(life: MarkLife) -> Block | None:
    if life == "none":
        return None
    return _CACHED if life == "5m" else {**_CACHED, "ttl": life}


def output_room(model: ModelInfo, prompt_tokens: int, longest: int = OUTPUT_TOKENS) -> int:
    """The most output to ask for after a prompt of that size."""
    room = max(MARGIN_TOKENS, model.window - prompt_tokens - MARGIN_TOKENS)
    return min(longest, model.max_output, room)


def to_json(request: Request) -> dict[str, Any]:
    """Encode a request as `sessions view --json` prints it, without the ledger."""
    return {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "system": request.system,
        "messages": request.messages,
        "tools": request.tools,
        "thinking": request.thinking,
    }


def printed(request: Request) -> str:
    """Format a request for reading: JSON, its parts under comments that number them and mark
    breakpoints.

    Line breaks inside texts are followed by real ones, so it is JSON for the eye only.
    """
    return "\n".join(_printed(request))


def _printed(request: Request) -> Iterator[str]:
    yield f"// {request.model}, at most {request.max_tokens:,} tokens of output"
    yield f'"thinking": {json.dumps(request.thinking)}'
    for number, tool in enumerate(request.tools, 1):
        yield f"\n// tools · {number} of {len(request.tools)} · {tool.get('name', '')}"
        yield readable(tool)
    for number, block in enumerate(request.system, 1):
        yield f"\n// system · block {number} of {len(request.system)}{_breakpoint(block)}"
        yield readable(block)
    yield from printed_messages(request.messages)


def printed_messages(messages: Sequence[Message]) -> Iterator[str]:
    """Yield the lines of messages for reading, in the same form."""
    for number, message in enumerate(messages, 1):
        yield f"\n// messages · {number} of {len(messages)} · {message['role']}"
        for block in message["content"]:
            if mark := _breakpoint(block):
                yield f"// {message['role']}{mark}"
            yield readable(block)


def _breakpoint(block: Block) -> str:
    return " · ◆ cache breakpoint: all up to the end of this block" * ("cache_control" in block)


def readable(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    return re.sub(r"\\(.)", lambda escape: escape[0] + "\n    " * (escape[1] == "n"), text)


def end_of_turn(messages: Sequence[Message], *, prompt_follows: bool = False) -> Mark | None:
    """Find the place where the turn before the last prompt ends."""
    for number in range(len(messages) - 1 + prompt_follows, 0, -1):
        before = messages[number - 1]
        prompt = number == len(messages) or messages[number]["role"] == "user"
        calls = any(block.get("type") == "tool_use" for block in before["content"])
        if prompt and before["role"] == "assistant" and not calls:
            return end_of(messages, number - 1)
    return None


def _marked_system(blocks: Sequence[Block], cached: Block | None, *, first: bool) -> list[Block]:
    """Put a cache breakpoint on the last block of a system prompt; on each in the first request."""
    if cached is None:
        return list(blocks)
    start = 0 if first else len(blocks) - 1
    return [*blocks[:start], *({**block, "cache_control": cached} for block in blocks[start:])]


def _last_mark(messages: Sequence[Message]) -> Mark | None:
    """Find the last place that may have a breakpoint."""
    for number in range(len(messages) - 1, -1, -1):
        if mark := end_of(messages, number):
            return mark
    return None


def end_of(messages: Sequence[Message], number: int) -> Mark | None:
    """Find the last place in a message that may have a breakpoint."""
    content = messages[number]["content"]
    for place in range(len(content) - 1, -1, -1):
        if content[place].get("type") not in _UNMARKED:
            return number, place
    return None


def _marked(
    messages: Sequence[Message], wanted: Iterable[Mark | None], most: int, cached: Block | None
) -> tuple[list[Message], list[Mark]]:
    """Put breakpoints at the first wanted places that exist."""
    marked, placed = list(messages), list[Mark]()
    for mark in wanted:
        if mark is None or mark in placed or len(placed) == most or cached is None:
            continue
        number, place = mark
        if not (0 <= number < len(marked) and place >= 0):  # from a record, which may say anything
            continue
        content = [*marked[number]["content"]]
        if place < len(content) and content[place].get("type") not in _UNMARKED:
            content[place] = {**content[place], "cache_control": cached}
            marked[number] = cast("Message", {**marked[number], "content": content})
            placed.append(mark)
    return marked, placed
