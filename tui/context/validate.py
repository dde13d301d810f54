"""Checks whether the Messages API would accept messages or a request. Pure, linear, never raises.

The rules are in `rules/`. The repair engine, the view, the tests' server and `sessions check` all
use this check: what passes here is valid for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

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
from tui.core.messages import Block, Message, tool_calls
from tui.session.records import Finding

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
    seen: list[CheckedMessage] = []
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
        for number, block in enumerate(blocks):
            if not is_plain(block):
                plain = False
                yield from block_violations(block, f"{where}.content.{number}")
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


def _see(message: object, where: str) -> CheckedMessage | None:
    """A message in the form for the rules; None if it has no content."""
    given = cast("dict[str, Any]", message) if isinstance(message, dict) else {}
    content = given.get("content")
    if isinstance(content, str):
        blocks: list[Block] = [] if is_blank(content) else [{"type": "text", "text": content}]
    elif isinstance(content, list):
        items = cast("list[object]", content)
        blocks = [cast("Block", b) if isinstance(b, dict) else {} for b in items]
    else:
        return None
    return CheckedMessage(where, given.get("role"), blocks)


_TEXT = frozenset({"type", "text"})
_CALL = frozenset({"type", "id", "name", "input"})
_RESULT = frozenset({"type", "tool_use_id", "content"})


def is_plain_message(message: object) -> bool:
    """Whether the frame of a message is right; its role and blocks have rules of their own."""
    if not isinstance(message, dict):
        return False
    given = cast("dict[str, Any]", message)
    return (
        given.keys() == MESSAGE_FIELDS
        and isinstance(given["role"], str)
        and isinstance(given["content"], list)
    )


def is_plain(block: object) -> bool:
    """Whether a block is a text, a call or a result that breaks no rule by itself."""
    if not isinstance(block, dict):
        return False
    given = cast("dict[str, Any]", block)
    kind = given.get("type")
    if kind == "text":
        return _is_text(given)
    if kind == "tool_use":
        return given.keys() == _CALL and _is_call(given)
    return kind == "tool_result" and given.keys() == _RESULT and _is_result(given)


def _is_text(block: dict[str, Any]) -> bool:
    text = block.get("text")
    return (
        block.keys() == _TEXT
        and isinstance(text, str)
        and (text.isascii() or not unsound(text))
        and bool(text)
        and not text.isspace()
    )


def _is_call(block: dict[str, Any]) -> bool:
    id_, name, given = block["id"], block["name"], block["input"]
    return (
        isinstance(id_, str)
        and isinstance(name, str)
        and isinstance(given, dict)
        and ID.fullmatch(id_) is not None
        and NAME.fullmatch(name) is not None
        and not unsound(cast("object", given), 1)
    )


def _is_result(block: dict[str, Any]) -> bool:
    id_, content = block["tool_use_id"], block["content"]
    if not isinstance(id_, str) or ID.fullmatch(id_) is None or not isinstance(content, list):
        return False
    return all(map(_is_plain_text, cast("list[object]", content)))


def _is_plain_text(part: object) -> bool:
    if not isinstance(part, dict):
        return False
    given = cast("dict[str, Any]", part)
    return given.get("type") == "text" and _is_text(given)


def thinking_for(
    messages: Sequence[Message], thinking: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """The thinking switch for one request: None if the last answer lacks its thinking, which the
    API would refuse."""
    if thinking is None or thinking.get("type") != "enabled":
        return dict(thinking) if thinking is not None else None
    found = check(messages, thinking=thinking, tail="open")
    return None if any(problem.code == "B20" for problem in found) else dict(thinking)


def begins_turn(messages: Sequence[Message], index: int) -> bool:
    """Whether this message is a valid prompt after an answer without calls."""
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
    """How many images and documents, and how many cache marks."""
    media = marks = 0
    for message in messages:
        media += sum(1 for _ in media_in(message["content"], ""))
        marks += marks_in(message["content"])
    return media, marks


def moved_findings(findings: Iterable[Finding], by: int) -> tuple[Finding, ...]:
    """Findings about a part of the messages, as findings about all of them."""
    found: list[Finding] = []
    for finding in findings:
        message, _ = place(finding.where)
        where = finding.where.replace(f"messages.{message}", f"messages.{message + by}", 1)
        found.append(replace(finding, where=where))
    return tuple(found)
