"""The difference between two requests, in plain words and as a unified diff. Pure.

Cache marks are ignored: they move with every request.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from typing import Any

from tui.context.request_assembly import readable
from tui.context.rules.blocks import THINKING
from tui.core.dataclass import dataclass
from tui.core.formatting import plural
from tui.core.messages import Block, Message, blocks_of, text_of
from tui.provider.base import Request

_CONTEXT = 3


@dataclass(frozen=True, slots=True)
class RequestBlock:
    """A block of a request. `message` is the number of its message, from 1; `text` describes it in
    words."""

    message: int
    role: str
    type: str
    text: str

    def to_json(self) -> dict[str, Any]:
        return {"message": self.message, "role": self.role, "type": self.type, "text": self.text}


@dataclass(frozen=True, slots=True)
class RequestDifference:
    """The difference of `after` from `before`.

    `extends`: `after` begins with all of `before`. `same` is the number of equal messages at the
    beginning. `front` says in sentences what changed outside the messages. `added` are the blocks
    that only `after` has, from the first message that differs; `gone` those that only `before` has.
    `thoughts_gone` counts the thinking blocks that only `before` has.
    """

    extends: bool
    same: int
    front: tuple[str, ...]
    added: tuple[RequestBlock, ...]
    gone: tuple[RequestBlock, ...]
    thoughts_gone: int


def difference(before: Request, after: Request) -> RequestDifference:
    """Compare two requests."""
    old, new = [*map(_keys, before.messages)], [*map(_keys, after.messages)]
    same = _same(old, new)
    fixed = _frame(before) == _frame(after)
    removed = Counter(key for keys in old[same:] for key in keys)
    brought = Counter(key for keys in new[same:] for key in keys)
    names = _call_names(after.messages) | _call_names(before.messages)
    added = tuple(_pieces(after.messages, new, same, removed, names))
    gone = tuple(_pieces(before.messages, old, same, brought, names))
    # A request also extends one whose last user message got more blocks.
    grown = same >= _answered(before.messages) == _answered(after.messages)
    extends = fixed and (same == len(old) or grown)
    return RequestDifference(
        extends,
        same,
        tuple(_front(before, after)),
        added,
        gone,
        sum(piece.type in THINKING for piece in gone),
    )


def unified(before: Request, after: Request, names: tuple[str, str]) -> str:
    """Make a unified diff of two requests."""
    olds, news = [*map(_keys, before.messages)], [*map(_keys, after.messages)]
    head = max(0, _same(olds, news) - 1)  # one equal message is enough context
    most = min(len(olds), len(news)) - head
    tail = max(0, min(most, _same(olds[::-1], news[::-1])) - 1)
    old, new = (
        [*_front_lines(one), *_message_lines(one.messages, head, len(one.messages) - tail)]
        for one in (before, after)
    )
    return "\n".join(unified_diff(old, new, *names, n=_CONTEXT, lineterm=""))


def _same(olds: Sequence[object], news: Sequence[object]) -> int:
    """Count the equal elements at the beginning."""
    pairs = enumerate(zip(olds, news, strict=False))
    return next((n for n, (one, two) in pairs if one != two), min(len(olds), len(news)))


def _front(before: Request, after: Request) -> Iterator[str]:
    """Say in sentences what changed outside the messages."""
    for name in ("model", "max_tokens", "thinking", "effort"):
        one, two = getattr(before, name), getattr(after, name)
        if one != two:
            yield f"{name}: {_value(one)}, then {_value(two)}."
    if _system(before) != _system(after):
        yield "The system prompts differ."
    one, two = ({str(t.get("name")): _json(t) for t in r.tools} for r in (before, after))
    kinds = {
        "joined": two.keys() - one.keys(),
        "went": one.keys() - two.keys(),
        "changed": {name for name in one.keys() & two.keys() if one[name] != two[name]},
    }
    for what, tools in kinds.items():
        if tools:
            yield f"{plural(len(tools), 'tool')} {what}: {', '.join(sorted(tools))}."
    if not any(kinds.values()) and _json(before.tools) != _json(after.tools):
        yield "The tools are in a different order."


def _value(value: object) -> str:
    match value:
        case None:
            return "not set"
        case int():
            return f"{value:,}"
        case _:
            return value if isinstance(value, str) else _json(value)


def _frame(request: Request) -> str:
    return _json([_system(request), request.tools])


def _system(request: Request) -> list[Block]:
    return [_bare(block) for block in request.system]


def _bare(block: Block) -> Block:
    return {name: value for name, value in block.items() if name != "cache_control"}


def _keys(message: Message) -> list[str]:
    """Return the strings to compare: each block with its role, or all of a message without
    blocks."""
    role = message["role"]
    return [f"{role} {_json(_bare(block))}" for block in message["content"]] or [_json(message)]


def _json(value: object) -> str:
    return json.dumps(value, default=str)


def _answered(messages: Sequence[Message]) -> int:
    """Count the messages before the last group of the user's."""
    count = len(messages)
    while count and messages[count - 1]["role"] != "assistant":
        count -= 1
    return count


def _pieces(
    messages: Sequence[Message],
    keys: Sequence[Sequence[str]],
    same: int,
    others: Counter[str],
    names: dict[str, str],
) -> Iterator[RequestBlock]:
    """Yield the blocks from message `same` on that are not among the `others`."""
    unmatched = others.copy()
    for number in range(same, len(messages)):
        message = messages[number]
        for key, block in zip(keys[number], message["content"] or [{}], strict=True):
            if unmatched[key] > 0:
                unmatched[key] -= 1
                continue
            kind = str(block.get("type", ""))
            yield RequestBlock(number + 1, message["role"], kind, _in_words(block, names))


def _call_names(messages: Iterable[Message]) -> dict[str, str]:
    """The names of the tools that were called, by call id."""
    blocks = (block for message in messages for block in message["content"])
    return {str(b.get("id")): str(b.get("name")) for b in blocks if b.get("type") == "tool_use"}


def _in_words(block: Block, names: dict[str, str]) -> str:
    match block.get("type"):
        case "text":
            return f"text, {_size(str(block.get('text')))}"
        case "thinking":
            return f"thinking, {_size(str(block.get('thinking')))}"
        case "tool_use":
            return f"call to {block.get('name')}, {_size(_json(block.get('input')))}"
        case "tool_result":
            inside: object = block.get("content")
            text = inside if isinstance(inside, str) else text_of(blocks_of(inside))
            failed = ", failed" if block.get("is_error") else ""
            of = names.get(str(block.get("tool_use_id")), "a call")
            return f"result of {of}, {_size(text)}{failed}"
        case None:
            return "no text"
        case kind:
            return str(kind)


def _size(text: str) -> str:
    return plural(len(text), "character")


def _front_lines(request: Request) -> Iterator[str]:
    yield f"model: {request.model}"
    yield f"max_tokens: {request.max_tokens}"
    yield f"thinking: {_json(request.thinking)}"
    yield f"effort: {_json(request.effort)}"
    for block in _system(request):
        yield "[system]"
        yield from readable(block).split("\n")
    for tool in request.tools:
        yield f"[tool {tool.get('name')}]"
        yield from readable(tool).split("\n")


def _message_lines(messages: Sequence[Message], start: int, end: int) -> Iterator[str]:
    """Render the messages from `start` to `end`; the others are the same in both requests."""
    if start:
        yield f"[{plural(start, 'message')} before]"
    for message in messages[start:end]:
        yield f"[{message['role']}]"
        for name, value in message.items():
            if name not in {"role", "content"}:
                yield f"{name}: {_json(value)}"
        for block in message["content"]:
            yield from readable(_bare(block)).split("\n")
    if end < len(messages):
        yield f"[{plural(len(messages) - end, 'message')} behind]"
