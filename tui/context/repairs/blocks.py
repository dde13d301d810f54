"""Repairs of one content block.

A cleaner returns the block itself if nothing is wrong with it, otherwise a new one, or None if it
has to be dropped. The given block is never changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from tui.context.repairs import media
from tui.context.repairs.json_safety import made_sound, plain
from tui.context.repairs.message_draft import DraftBlock, MessageDraft, Note, RepairReport, without
from tui.context.rules.blocks import (
    FIELDS,
    IN_RESULTS,
    SERVER_RESULTS,
    THINKING,
    RawBlock,
    are_objects,
    extra_fields,
    has_thoughts,
    is_blank,
    is_filled,
    is_mark,
    is_server_id,
)
from tui.context.rules.json_safety import unsound
from tui.core.messages import Block, is_object, list_of, text_block

NO_OUTPUT = "(no output)"

_Cleaner: TypeAlias = Callable[[Block, Note], Block | None]


def clean(draft: MessageDraft, content: list[object], report: RepairReport) -> None:
    """Fill a draft with the usable parts of a message's content."""
    stripped = False
    for index, given in enumerate(content):
        where = f"{draft.where}.content.{index}"
        block = clean_block(given, report.at(where))
        if block is not None:
            draft.items.append(DraftBlock(where, block))
            continue
        if is_object(given):
            stripped = stripped or given.get("type") in ("thinking", "redacted_thinking")
            if given.get("type") == "tool_use":
                report.gone.add(call_key(given.get("id")))
    if stripped:
        strip_thinking(draft, report, "B19")


def strip_thinking(draft: MessageDraft, report: RepairReport, code: str) -> None:
    """Drop all thinking of a message: it is sent complete and verbatim, or not at all."""
    for item in draft.items:
        if item.kind in THINKING:
            report.add(code, item.where, "thinking left out")
    draft.items = [item for item in draft.items if item.kind not in THINKING]


def call_key(value: object) -> str:
    """The key that matches calls and results: an id, however odd, as text."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, default=str)


def clean_block(given: object, note: Note) -> Block | None:
    """Make one block of a message acceptable; its ids are left to the pairing."""
    if isinstance(given, str) and not is_blank(given):
        note("B27", "a bare string made a text block")
        given = text_block(given)
    if isinstance(given, RawBlock) and not unsound(given):
        return given
    if not is_object(given):
        note("B27", "left out: not an object")
        return None
    kind = given.get("type")
    cleaner = _CLEANERS.get(kind) if isinstance(kind, str) else None
    if cleaner is None:
        return _unknown(given, note)
    # Signed thinking must stay verbatim, so it cannot be repaired.
    block = given
    if unsound(block):
        if kind in THINKING:
            note("B38", "thinking that is not valid JSON left out")
            return None
        note("B38", "characters or values that are not valid JSON replaced")
        block = cast("Block", made_sound(block, 0))
    cleaned = cleaner(block, note)
    if cleaned is None or cleaned.get("type") != kind:
        return cleaned
    return _only_known(cleaned, FIELDS[cast("str", kind)], note)


def _only_known(block: Block, allowed: frozenset[str], note: Note) -> Block:
    extra = extra_fields(block, allowed)
    if extra:
        note("B27", f"fields left out: {', '.join(map(str, extra))}")
        block = {name: value for name, value in block.items() if name in allowed}
    if not is_mark(block.get("cache_control")):
        note("B26", "a malformed cache mark left out")
        block = without(block, "cache_control")
    return block


def _unknown(block: Block, note: Note) -> Block | None:
    text = block.get("text")
    if isinstance(text, str) and not is_blank(text):
        note("R6", "a block of unknown type kept as text")
        return text_block(plain(text))
    note("R6", "left out: a block of unknown type")
    return None


def _text(block: Block, note: Note) -> Block | None:
    text = block.get("text")
    if is_blank(text):
        code = "B11" if text else "B12" if block.get("cache_control") else "B10"
        note(code, "an empty text left out")
        return None
    cited = block.get("citations")
    if cited is not None and not are_objects(cited):
        note("B27", "malformed citations left out")
        return without(block, "citations")
    return block


def _tool_use(block: Block, note: Note) -> Block | None:
    if "partialJson" in block or "partial_json" in block:
        note("B23", "a call cut off in the middle left out")
        return None
    name = block.get("name")
    if not isinstance(name, str) or not name:
        note("B09", "a call without a tool's name left out")
        return None
    sane = re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:200]
    if sane != name:
        note("B09", "the tool's name made valid")
        block = block | {"name": sane}
    return _with_object_input(block, note)


def _with_object_input(block: Block, note: Note) -> Block:
    """Return the block with its input as an object: parsed if it is JSON text encoded once or
    twice, otherwise wrapped."""
    given = block.get("input")
    if isinstance(given, dict):
        return block
    value: object = given
    for _ in range(2):
        value = _parsed(value) if isinstance(value, str) else value
    if is_object(value):
        note("B07", "the input parsed from its JSON text")
    else:
        note("B07", "the input made an object")
        empty = value is None or value == [] or (isinstance(value, str) and not value.strip())
        value = {} if empty else {"raw_input": given}
    return block | {"input": made_sound(value, 1)}


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _tool_result(block: Block, note: Note) -> Block | None:
    flag = block.get("is_error")
    if "is_error" in block and not isinstance(flag, bool):
        failed = str(flag).strip().lower() not in ("", "0", "none", "null", "false", "no")
        note("B27", "is_error made a boolean")
        block = block | {"is_error": failed}
    if "content" in block:
        content = _result_content(block["content"], note)
        if content is not block["content"]:
            block = block | {"content": content}
    if block.get("is_error"):
        return _error_result(block, note)
    return block


def _result_content(content: object, note: Note) -> str | list[Any]:
    """Clean the content of a tool result; the same object if nothing is wrong with it."""
    if isinstance(content, str):
        if not content or not content.isspace():
            return content
        note("B11", f"blank output shown as {NO_OUTPUT}")
        return NO_OUTPUT
    if content is None:
        note("B27", f"missing output shown as {NO_OUTPUT}")
        return NO_OUTPUT
    items = list_of(content)
    if not isinstance(content, list):
        note("B27", "the output made a list of blocks")
        items = [content if is_object(content) else json.dumps(content, default=str)]
    cleaned = [_inner(item, note) for item in items]
    if all(new is old and new is not None for new, old in zip(cleaned, items, strict=True)):
        return items
    return [item for item in cleaned if item is not None] or NO_OUTPUT


def _inner(item: object, note: Note) -> object:
    kind = item.get("type") if is_object(item) else None
    if is_object(item) and isinstance(kind, str) and kind not in IN_RESULTS:
        return _unknown(item, note)
    return clean_block(item, note)


def _error_result(block: Block, note: Note) -> Block:
    content = block.get("content")
    if not content:
        note("B29", f"an empty error shown as {NO_OUTPUT}")
        return block | {"content": NO_OUTPUT}
    items = [] if isinstance(content, str) else cast("list[Block]", content)
    if all(item.get("type") == "text" for item in items):
        return block
    note("B29", "what is not text left out of an error")
    texts = [i if i.get("type") == "text" else media.removed(i, "in an error") for i in items]
    return block | {"content": texts}


def _server_use(block: Block, note: Note) -> Block | None:
    if not isinstance(block.get("name"), str) or not is_server_id(block.get("id")):
        note("B25", "left out: a malformed call of a server tool")
        return None
    return _tool_use(block, note)


def _dropped_unless(*needs: tuple[Callable[[Block], bool], str, str]) -> _Cleaner:
    """Make a cleaner that drops a block lacking something: each need has a check, a code and the
    words of the finding."""

    def cleaner(block: Block, note: Note) -> Block | None:
        for valid, code, action in needs:
            if not valid(block):
                note(code, action)
                return None
        return block

    return cleaner


def _is_server_result(block: Block) -> bool:
    sound = isinstance(block.get("content"), list | dict)
    return sound and is_server_id(block.get("tool_use_id"))


_CLEANERS: Mapping[str, _Cleaner] = {
    "text": _text,
    "image": media.image,
    "document": media.document,
    "search_result": media.search_result,
    "container_upload": _dropped_unless(
        (lambda block: is_filled(block.get("file_id")), "B27", "left out: an upload without a file")
    ),
    "tool_use": _tool_use,
    "tool_result": _tool_result,
    "thinking": _dropped_unless(
        (has_thoughts, "B18", "thinking without text left out"),
        (lambda block: is_filled(block.get("signature")), "B17", "unsigned thinking left out"),
    ),
    "redacted_thinking": _dropped_unless(
        (lambda block: is_filled(block.get("data")), "B17", "thinking without data left out")
    ),
    "server_tool_use": _server_use,
} | dict.fromkeys(
    SERVER_RESULTS,
    _dropped_unless((_is_server_result, "B25", "left out: a malformed result of a server tool")),
)
