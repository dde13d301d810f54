"""What tells whether a part of a conversation stands on its own, for the view. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tui.context.repairs.message_draft import place
from tui.context.rules.media import media_in
from tui.context.rules.request import marks_in
from tui.context.validate import check
from tui.core.messages import Message, tool_calls
from tui.session.records import Finding


def fitting_thinking(
    messages: Sequence[Message], thinking: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """The thinking switch for one request: off where the last answer lacks its thinking (B20)."""
    if thinking is None or thinking.get("type") != "enabled":
        return dict(thinking) if thinking is not None else None
    found = check(messages, thinking=thinking, tail="open")
    return None if any(problem.code == "B20" for problem in found) else dict(thinking)


def begins_turn(told: Sequence[Message], index: int) -> bool:
    """Whether a prompt that can be sent stands here, behind an answer without calls."""
    before, here = told[index - 1], told[index]
    return (
        here["role"] == "user"
        and before["role"] == "assistant"
        and not tool_calls(before["content"])
        and not check([here], tail="open")
    )


def calls_in(messages: Iterable[Message]) -> set[str]:
    """The ids of all calls."""
    return {str(call.get("id")) for m in messages for call in tool_calls(m["content"])}


def crowd(messages: Iterable[Message]) -> tuple[int, int]:
    """How many images and documents, and how many cache marks."""
    media = marks = 0
    for message in messages:
        media += sum(1 for _ in media_in(message["content"], ""))
        marks += marks_in(message["content"])
    return media, marks


def moved(findings: Iterable[Finding], by: int) -> tuple[Finding, ...]:
    """Findings about a part of the messages, as findings about all of them."""
    found: list[Finding] = []
    for finding in findings:
        message, _ = place(finding.where)
        where = finding.where.replace(f"messages.{message}", f"messages.{message + by}", 1)
        found.append(replace(finding, where=where))
    return tuple(found)
