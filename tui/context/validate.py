"""Would the Messages API take this? Its rules, applied one by one. Pure, linear, never raises.

The rules stand in `rules/`. A request that passes here is one that the repair engine, the view,
the tests' server and `sessions check` all call valid: there is no second opinion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from tui.context.rules import Violation
from tui.context.rules.blocks import MESSAGE_FIELDS, block_violations, extra_fields, is_blank
from tui.context.rules.fast_path import is_plain, is_plain_message
from tui.context.rules.media import crowd_violations, media_in
from tui.context.rules.order import Tail, order_violations, thinking_violations
from tui.context.rules.pairs import Seen, pair_violations
from tui.context.rules.request import MAX_MARKS, marks_in, request_violations
from tui.core.messages import Block

__all__ = ["Tail", "Violation", "check", "check_request"]


def check(
    messages: Sequence[object],
    *,
    thinking: Mapping[str, Any] | None = None,
    tail: Tail = "user",
) -> list[Violation]:
    """What the API would answer about a list of messages; nothing if it is valid.

    An empty list is valid here (nothing has been said yet), not in a request.
    """
    return list(_violations(messages, thinking, tail))


def check_request(body: Mapping[str, Any], *, prefill: bool = False) -> list[Violation]:
    """What the API would answer about a whole request body, as sent.

    `prefill`: the model takes an unfinished last message of the assistant.
    """
    found = list(request_violations(body))
    messages = body.get("messages")
    if isinstance(messages, list):
        thinking = body.get("thinking")
        switch = cast("Mapping[str, Any]", thinking) if isinstance(thinking, dict) else None
        items = cast("list[object]", messages)
        found.extend(_violations(items, switch, "prefill" if prefill else "user"))
    return found


def _violations(
    messages: Sequence[object], thinking: Mapping[str, Any] | None, tail: Tail
) -> Iterator[Violation]:
    seen: list[Seen] = []
    media: list[tuple[str, Block]] = []
    marks = 0
    for index, message in enumerate(messages):
        where = f"messages.{index}"
        if not is_plain_message(message):
            yield from _shape(message, where)
        one = _see(message, where)
        if one is None:
            continue
        seen.append(one)
        content = cast("dict[str, Any]", message)["content"]
        blocks = cast("list[object]", content if isinstance(content, list) else one.blocks)
        plain = True  # what is plain is no image and has no mark
        for place, block in enumerate(blocks):
            if not is_plain(block):
                plain = False
                yield from block_violations(block, f"{where}.content.{place}")
        if not plain:
            media.extend(media_in(one.blocks, where))
            marks += marks_in(one.blocks)
    yield from pair_violations(seen)
    yield from order_violations(seen, tail)
    yield from thinking_violations(seen, thinking)
    yield from crowd_violations(media)
    if marks > MAX_MARKS:
        words = f"A maximum of {MAX_MARKS} blocks with cache_control may be provided."
        yield Violation("B26", "messages", f"{words} Found {marks}.")


def _shape(message: object, where: str) -> Iterator[Violation]:
    if not isinstance(message, dict):
        yield Violation("B56", where, f"{where}: Input should be an object")
        return
    given = cast("dict[str, Any]", message)
    if not isinstance(given.get("role"), str):
        yield Violation("B56", where, f"{where}.role: Field required")
    if not isinstance(given.get("content"), str | list):
        yield Violation("B56", where, f"{where}.content: Input should be a valid list")
    for name in extra_fields(given, MESSAGE_FIELDS):
        yield Violation("B27", where, f"{where}.{name}: Extra inputs are not permitted")


def _see(message: object, where: str) -> Seen | None:
    """A message as the rules look at it; None if it has no content to look at."""
    given = cast("dict[str, Any]", message) if isinstance(message, dict) else {}
    content = given.get("content")
    if isinstance(content, str):
        blocks: list[Block] = [] if is_blank(content) else [{"type": "text", "text": content}]
    elif isinstance(content, list):
        items = cast("list[object]", content)
        blocks = [cast("Block", b) if isinstance(b, dict) else {} for b in items]
    else:
        return None
    return Seen(where, given.get("role"), blocks)
