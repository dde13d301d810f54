"""What nearly all messages are: seen to be valid at a glance, so that the rules can pass them by.

Saying no costs nothing but time; a yes must be right: whatever is plain here breaks no rule.
"""

from __future__ import annotations

from typing import Any, cast

from tui.context.rules.blocks import ID, MESSAGE_FIELDS, NAME
from tui.context.rules.json_safety import unsound

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
