"""Checks whether the Messages API would accept messages or a request. Pure, linear, never raises.

The rules are in `rules/`. The repair engine, the view, the tests' server and `sessions check` all
use this check: what passes here is valid for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tui.context.repairs.message_draft import place
from tui.context.rules import Violation
from tui.context.rules.blocks import (
    ID,
    MESSAGE_FIELDS,
    NAME,
    block_violations,
    extra_fields,
    is_blank,
)
from tui.context.rules.json_safety import unsound
from tui.context.rules.media import crowd_violations, media_in
from tui.context.rules.order import Tail, order_violations, thinking_violations
from tui.context.rules.pairs import CheckedMessage, pair_violations
from tui.context.rules.request import MAX_MARKS, marks_in, request_violations
from tui.core.messages import (
    Block,
    Message,
    is_object,
    list_of,
    object_of,
    text_block,
    tool_calls,
)
from tui.session.records import Finding

__all__ = ["Tail", "Violation", "check", "check_request"]


def check(
    messages: Sequence[object],
    *,
    thinking: Mapping[str, Any] | None = None,
    tail: Tail = "user",
) -> list[Violation]:
    """Return the API's objections to a list of messages; none if it is valid.

    An empty list is valid here (nothing has been said yet), but not in a request.
    """
    return list(_violations(messages, thinking, tail))


def check_request(body: Mapping[str, Any], *, prefill: bool = False) -> list[Violation]:
    """Return the API's objections to a whole request body, as sent.

    `prefill`: the model accepts an unfinished last message of the assistant.
    """
    violations = list(request_violations(body))
    messages, thinking = list_of(body.get("messages")), object_of(body.get("thinking"))
    return [*violations, *_violations(messages, thinking, "prefill" if prefill else "user")]


def _violations(
    messages: Sequence[object], thinking: Mapping[str, Any] | None, tail: Tail
) -> Iterator[Violation]:
    seen: list[CheckedMessage] = []
    media: list[tuple[str, Block]] = []
    marks = 0
    for index, message in enumerate(messages):
        where = f"messages.{index}"
        yield from _shape(message, where)
        if not is_object(message) or not isinstance(message.get("content"), str | list):
            continue
        content = message["content"]
        given = _as_block(content) if isinstance(content, str) else list_of(content)
        blocks = [object_of(block) for block in given]
        seen.append(CheckedMessage(where, message.get("role"), blocks))
        plain = True  # plain blocks are no images and have no marks
        for number, block in enumerate(given):
            if not _is_plain(block):
                plain = False
                yield from block_violations(block, f"{where}.content.{number}")
        if not plain:
            media.extend(media_in(blocks, where))
            marks += marks_in(blocks)
    yield from pair_violations(seen)
    yield from order_violations(seen, tail)
    yield from thinking_violations(seen, thinking)
    yield from crowd_violations(media)
    if marks > MAX_MARKS:
        words = f"A maximum of {MAX_MARKS} blocks with cache_control may be provided."
        yield Violation("B26", "messages", f"{words} Found {marks}.")


def _shape(message: object, where: str) -> Iterator[Violation]:
    """Check the frame of a message; its role and blocks have rules of their own."""
    if not is_object(message):
        yield Violation("B56", where, f"{where}: Input should be an object")
        return
    if not isinstance(message.get("role"), str):
        yield Violation("B56", where, f"{where}.role: Field required")
    if not isinstance(message.get("content"), str | list):
        yield Violation("B56", where, f"{where}.content: Input should be a valid list")
    for name in extra_fields(message, MESSAGE_FIELDS):
        yield Violation("B27", where, f"{where}.{name}: Extra inputs are not permitted")


def _as_block(content: str) -> list[object]:
    """The block that a bare string is short for; none if it is blank."""
    return [] if is_blank(content) else [text_block(content)]


def _is_plain(block: Any) -> bool:
    """True if a block is a text, a call or a result that breaks no rule by itself.

    That is nearly every block, and takes a fraction of the time of all its rules.
    """
    match block:
        case {"type": "text", "text": str(text)}:
            known = len(block) == 2 and text and not text.isspace()
            return bool(known) and (text.isascii() or not unsound(text))
        case {"type": "tool_use", "id": str(id_), "name": str(name), "input": dict()}:
            known = len(block) == 4 and ID.fullmatch(id_) and NAME.fullmatch(name)
            return bool(known) and not unsound(block["input"], 1)
        case {"type": "tool_result", "tool_use_id": str(id_), "content": list()}:
            known = len(block) == 3 and ID.fullmatch(id_)
            parts: list[Any] = block["content"]
            return bool(known) and all(_is_plain(part) and part["type"] == "text" for part in parts)
        case _:
            return False


def thinking_for(
    messages: Sequence[Message], thinking: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """Return the thinking switch for one request: None if the last answer lacks its thinking, which
    the API would refuse."""
    if thinking is None or thinking.get("type") != "enabled":
        return dict(thinking) if thinking is not None else None
    problems = check(messages, thinking=thinking, tail="open")
    return None if any(problem.code == "B20" for problem in problems) else dict(thinking)


def begins_turn(messages: Sequence[Message], index: int) -> bool:
    """True if this message is a valid prompt after an answer without calls."""
    before, here = messages[index - 1], messages[index]
    return (
        here["role"] == "user"
        and before["role"] == "assistant"
        and not tool_calls(before["content"])
        and not check([here], tail="open")
    )


def calls_in(messages: Iterable[Message]) -> set[str]:
    """The ids of all calls."""
    return {str(call.get("id")) for m in messages for call in tool_calls(m["content"])}


def media_and_marks(messages: Iterable[Message]) -> tuple[int, int]:
    """Count the images and documents, and the cache marks."""
    media = marks = 0
    for message in messages:
        media += sum(1 for _ in media_in(message["content"], ""))
        marks += marks_in(message["content"])
    return media, marks


def moved_findings(findings: Iterable[Finding], by: int) -> tuple[Finding, ...]:
    """Convert findings about a part of the messages to findings about all of them."""
    moved: list[Finding] = []
    for finding in findings:
        message, _ = place(finding.where)
        where = finding.where.replace(f"messages.{message}", f"messages.{message + by}", 1)
        moved.append(replace(finding, where=where))
    return tuple(moved)
