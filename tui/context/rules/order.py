"""Rules about messages in a row: roles, thinking, and how a request may end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from tui.context.rules import Violation
from tui.context.rules.blocks import ASSISTANT_ONLY, THINKING, USER_ONLY, is_paused
from tui.context.rules.pairs import CheckedMessage

Tail: TypeAlias = Literal["user", "prefill", "open"]
"""The end of the messages: with the user (a request), with the assistant if the model accepts a
prefill, or open, because a prompt will follow."""


def order_violations(seen: Sequence[CheckedMessage], tail: Tail) -> Iterator[Violation]:
    """Yield everything that is wrong with the order of messages, and with the roles of their
    blocks."""
    before: object = None
    for index, message in enumerate(seen):
        if message.role not in ("user", "assistant"):
            yield _wrong_role(message)
        elif index == 0 and message.role != "user":
            text = 'messages: first message must use the "user" role'
            yield Violation("B39", message.where, text)
        elif message.role == before:
            words = 'roles must alternate between "user" and "assistant"'
            text = f"messages: {words}, but found multiple {before!r} roles in a row"
            yield Violation("B39", message.where, text)
        before = message.role
        if not message.blocks:
            words = "all messages must have non-empty content"
            text = f"{message.where}: {words} except for the optional final assistant message"
            yield Violation("B13", message.where, text)
        yield from _misplaced(message)
        if message.role == "assistant":
            yield from _final_thinking(message)
    if seen and seen[-1].role == "assistant":
        yield from _end_violations(seen[-1], tail)


def thinking_violations(
    seen: Sequence[CheckedMessage], thinking: Mapping[str, Any] | None
) -> Iterator[Violation]:
    """Yield the conflicts between the thinking switch and the latest answer."""
    mode = (thinking or {}).get("type")
    last = next((m for m in reversed(seen) if m.role == "assistant"), None)
    if last is None or mode not in ("enabled", "disabled"):
        return
    kinds = [str(block.get("type")) for block in last.blocks]
    if mode == "disabled":
        if not THINKING.isdisjoint(kinds):
            words = "When thinking is disabled, an `assistant` message in the final position"
            text = f"{last.where}: {words} cannot contain `thinking`"
            yield Violation("B21", last.where, text)
    elif (last is seen[-1] or "tool_use" in kinds) and kinds and kinds[0] not in THINKING:
        text = (
            f"{last.where}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
            f"`{kinds[0]}`. When `thinking` is enabled, a final `assistant` message must start "
            "with a thinking block"
        )
        yield Violation("B20", last.where, text)


def _wrong_role(message: CheckedMessage) -> Violation:
    if message.role == "system":
        words = "use the top-level 'system' parameter for the initial system prompt"
    else:
        words = "Input should be 'user' or 'assistant'"
    return Violation("B28", message.where, f"{message.where}.role: {words}")


def _misplaced(message: CheckedMessage) -> Iterator[Violation]:
    others = {"user": ASSISTANT_ONLY, "assistant": USER_ONLY}
    wrong = others.get(message.role) if isinstance(message.role, str) else None
    for index, block in enumerate(message.blocks):
        kind = block.get("type")
        if wrong and isinstance(kind, str) and kind in wrong:
            where = f"{message.where}.content.{index}"
            right = "user" if wrong is USER_ONLY else "assistant"
            text = f"{where}: `{kind}` blocks can only be in `{right}` messages"
            yield Violation("B28", where, text)


def _final_thinking(message: CheckedMessage) -> Iterator[Violation]:
    kind = message.blocks[-1].get("type") if message.blocks else None
    if isinstance(kind, str) and kind in THINKING:
        words = "The final block in an assistant message cannot be `thinking`."
        yield Violation("B16", message.where, f"{message.where}: {words}")


def _end_violations(last: CheckedMessage, tail: Tail) -> Iterator[Violation]:
    if tail == "user" and not is_paused(last.blocks):
        words = "This model does not support assistant message prefill."
        text = f"{words} The conversation must end with a user message."
        yield Violation("B15", last.where, text)
    elif tail == "prefill":
        text = last.blocks[-1].get("text") if last.blocks else None
        if isinstance(text, str) and text and text[-1].isspace():
            words = "final assistant content cannot end with trailing whitespace"
            yield Violation("B14", last.where, f"messages: {words}")
