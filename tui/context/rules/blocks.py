"""Rules about one content block, independent of its surroundings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias, TypeGuard, cast

from tui.context.rules import Violation
from tui.context.rules.json_safety import unsound
from tui.context.rules.media import image_violations
from tui.core.late_pattern import late_pattern
from tui.core.messages import Block, is_object, list_of

ID = late_pattern(r"[a-zA-Z0-9_-]+")
NAME = late_pattern(r"[a-zA-Z0-9_-]{1,200}")
SERVER_ID = late_pattern(r"srvtoolu_[a-zA-Z0-9_]+")

SERVER_RESULTS = frozenset(
    {
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
    }
)
THINKING = frozenset({"thinking", "redacted_thinking"})
ASSISTANT_ONLY = THINKING | {"tool_use", "server_tool_use"} | SERVER_RESULTS
USER_ONLY = frozenset({"tool_result", "image", "document", "search_result", "container_upload"})
IN_RESULTS = frozenset({"text", "image", "document", "search_result"})
"""The types allowed in a tool result. The API knows more, but only with tools that are not ours."""

MESSAGE_FIELDS = frozenset({"role", "content"})
_CACHED = {"type", "cache_control"}
FIELDS: Mapping[str, frozenset[str]] = {
    "text": frozenset(_CACHED | {"text", "citations"}),
    "image": frozenset(_CACHED | {"source", "transformations"}),
    "document": frozenset(_CACHED | {"source", "title", "context", "citations"}),
    "search_result": frozenset(_CACHED | {"source", "title", "content", "citations"}),
    "container_upload": frozenset(_CACHED | {"file_id"}),
    "tool_use": frozenset(_CACHED | {"id", "name", "input", "toolset_name"}),
    "tool_result": frozenset(_CACHED | {"tool_use_id", "content", "is_error", "toolset_name"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
    "server_tool_use": frozenset(_CACHED | {"id", "name", "input", "caller"}),
} | {kind: frozenset(_CACHED | {"tool_use_id", "content", "caller"}) for kind in SERVER_RESULTS}
"""The fields that each type of block may have."""


def is_paused(blocks: Sequence[Block]) -> bool:
    """True if an answer paused in the middle of the server's own tools: it ends with one of their
    calls or results. It is sent again as it is, and continues."""
    kind = str(blocks[-1].get("type")) if blocks else ""
    return kind == "server_tool_use" or kind in SERVER_RESULTS


class RawBlock(dict[str, Any]):
    """A block of a type that is not known here, from an answer of the server that gets it back."""


_Rule: TypeAlias = Callable[[Block, str], Iterator[Violation]]


def block_violations(block: object, where: str) -> Iterator[Violation]:
    """Yield everything that is wrong with one block of a message."""
    if not is_object(block):
        yield Violation("B27", where, f"{where}: Input should be an object")
        return
    kind = block.get("type")
    rules = _RULES.get(kind) if isinstance(kind, str) else None
    if rules is None and isinstance(block, RawBlock) and not unsound(block):
        return
    if rules is None:
        text = f"{where}: Input tag {kind!r} found using 'type' does not match any expected tag"
        yield Violation("R6", where, text)
        return
    allowed = FIELDS[cast("str", kind)]
    for name in extra_fields(block, allowed):
        yield Violation("B27", where, f"{where}.{kind}.{name}: Extra inputs are not permitted")
    if "cache_control" in block and not is_mark(block["cache_control"]):
        text = f"{where}.{kind}.cache_control: Input should be an ephemeral cache mark"
        yield Violation("B26", where, text)
    if unsound(block):
        yield Violation("B38", where, f"{where}: The request body is not valid JSON")
    for rule in rules:
        yield from rule(block, where)


def extra_fields(value: Mapping[str, Any], allowed: AbstractSet[str]) -> list[str]:
    """The names in an object that do not belong there, sorted."""
    if value.keys() <= allowed:
        return []
    return sorted((name for name in value if name not in allowed), key=str)


def is_text(block: object) -> TypeGuard[dict[str, Any]]:
    """True if this is a text block with words in it."""
    return is_object(block) and block.get("type") == "text" and not is_blank(block.get("text"))


def is_blank(text: object) -> bool:
    """True if this is no text, or only whitespace."""
    return not isinstance(text, str) or not text or text.isspace()


def is_mark(value: object) -> bool:
    """True if this may be used as `cache_control`; null means no mark."""
    if value is None:
        return True
    if not is_object(value) or value.get("type") != "ephemeral":
        return False
    return value.keys() <= {"type", "ttl"} and value.get("ttl", "5m") in ("5m", "1h")


def _text(block: Block, where: str) -> Iterator[Violation]:
    text = block.get("text")
    if not isinstance(text, str):
        yield Violation("B10", where, f"{where}.text.text: Input should be a valid string")
    elif not text:
        yield Violation("B10", where, "messages: text content blocks must be non-empty")
        if block.get("cache_control"):
            words = "cache_control cannot be set for empty text blocks"
            yield Violation("B12", where, f"{where}.text: {words}")
    elif text.isspace():
        words = "text content blocks must contain non-whitespace text"
        yield Violation("B11", where, f"messages: {words}")
    cited = block.get("citations")
    if cited is not None and not are_objects(cited):
        yield Violation("B27", where, f"{where}.text.citations: Input should be a valid list")


def are_objects(value: object) -> bool:
    """True if this is a list of objects, as citations are."""
    return isinstance(value, list) and all(map(is_object, cast("list[object]", value)))


def _field(name: str, valid: Callable[[object], bool], code: str, words: str) -> _Rule:
    """Make the rule that a field of a block is valid."""

    def rule(block: Block, where: str) -> Iterator[Violation]:
        if not valid(block.get(name)):
            yield Violation(code, where, f"{where}.{block['type']}.{name}: {words}")

    return rule


def _whole(code: str, path: str, words: str, valid: Callable[[Block], bool]) -> _Rule:
    """Make the rule that a block has everything it needs."""

    def rule(block: Block, where: str) -> Iterator[Violation]:
        if not valid(block):
            yield Violation(code, where, f"{where}.{path}: {words}")

    return rule


def is_filled(value: object) -> bool:
    """True if this is a non-empty string."""
    return isinstance(value, str) and bool(value)


def is_id(value: object) -> bool:
    """True if this may be used as the id of a call."""
    return isinstance(value, str) and ID.fullmatch(value) is not None


def has_thoughts(block: Block) -> bool:
    """True if a thinking block has its text, which may be empty."""
    return isinstance(block.get("thinking"), str)


def is_server_id(value: object) -> bool:
    """True if this may be used as the id of a server tool's call."""
    return isinstance(value, str) and SERVER_ID.fullmatch(value) is not None


def _name(block: Block, where: str) -> Iterator[Violation]:
    name = block.get("name")
    if not isinstance(name, str) or not name:
        words = "String should have at least 1 character"
    elif len(name) > 200:
        words = "String should have at most 200 characters"
    elif not NAME.fullmatch(name):
        words = "String should match pattern '^[a-zA-Z0-9_-]{1,200}$'"
    else:
        return
    yield Violation("B09", where, f"{where}.{block['type']}.name: {words}")


def _result_content(block: Block, where: str) -> Iterator[Violation]:
    content = block.get("content")
    if "content" in block and not isinstance(content, str | list):
        text = f"{where}.tool_result.content: Input should be a valid string or list"
        yield Violation("B27", where, text)
    if isinstance(content, str) and content.isspace():
        words = "text content blocks must contain non-whitespace text"
        yield Violation("B11", where, f"messages: {words}")
    if isinstance(content, list):
        for index, item in enumerate(list_of(block["content"])):
            yield from _inner(item, f"{where}.tool_result.content.{index}")


def _inner(item: object, where: str) -> Iterator[Violation]:
    kind = item.get("type") if is_object(item) else None
    if isinstance(kind, str) and kind not in IN_RESULTS:
        text = f"{where}: Input tag {kind!r} does not match any expected tag"
        yield Violation("R6", where, text)
        return
    yield from block_violations(item, where)


def _error_content(block: Block, where: str) -> Iterator[Violation]:
    flag = block.get("is_error", False)
    if not isinstance(flag, bool):
        text = f"{where}.tool_result.is_error: Input should be a valid boolean"
        yield Violation("B27", where, text)
        return
    if not flag:
        return
    content = block.get("content")
    if not content:
        words = "content cannot be empty if `is_error` is true"
        yield Violation("B29", where, f"{where}.tool_result: {words}")
    elif any(is_object(item) and item.get("type") != "text" for item in list_of(content)):
        words = "all content must be type `text` if `is_error` is true"
        yield Violation("B29", where, f"{where}.tool_result: {words}")


_SOURCES: Mapping[str, tuple[str, ...]] = {
    "base64": ("media_type", "data"),
    "text": ("media_type", "data"),
    "url": ("url",),
    "file": ("file_id",),
    "content": ("content",),
}
_DOCUMENT_TYPES = {"base64": "application/pdf", "text": "text/plain"}


def is_document(block: Block) -> bool:
    """True if a document block has a source that can be sent."""
    if not all(isinstance(block.get(name, ""), str | None) for name in ("title", "context")):
        return False
    source = block.get("source")
    if not is_object(source) or not isinstance(source.get("type"), str):
        return False
    kind = cast("str", source["type"])
    names = _SOURCES.get(kind, ())
    given = [source.get(name) for name in names]
    return (
        bool(names)
        and not any(map(is_blank, given))
        and source.keys() <= {"type", *names}
        and source.get("media_type") == _DOCUMENT_TYPES.get(kind)
    )


def is_search_result(block: Block) -> bool:
    """True if a search result has a source, a title and texts."""
    texts = list_of(block.get("content"))
    return (
        isinstance(block.get("source"), str)
        and isinstance(block.get("title"), str)
        and bool(texts)
        and all(is_text(item) and item.keys() <= FIELDS["text"] for item in texts)
    )


_CALL_ID = "String should match pattern '^[a-zA-Z0-9_-]+$'"
_SERVER_CALL_ID = "String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'"
_REQUIRED = "Field required"
_INPUT = _field("input", is_object, "B07", "Input should be a valid dictionary")
_RULES: Mapping[str, tuple[_Rule, ...]] = {
    "text": (_text,),
    "image": (image_violations,),
    "document": (_whole("B32", "document.source", "Could not process document", is_document),),
    "search_result": (_whole("B27", "search_result", _REQUIRED, is_search_result),),
    "container_upload": (_field("file_id", is_filled, "B27", _REQUIRED),),
    "tool_use": (_field("id", is_id, "B08", _CALL_ID), _name, _INPUT),
    "tool_result": (
        _field("tool_use_id", is_id, "B08", _CALL_ID),
        _result_content,
        _error_content,
    ),
    "thinking": (
        _whole("B18", "thinking", "each thinking block must contain thinking", has_thoughts),
        _field("signature", is_filled, "B17", _REQUIRED),
    ),
    "redacted_thinking": (_field("data", is_filled, "B17", _REQUIRED),),
    "server_tool_use": (_field("id", is_server_id, "B25", _SERVER_CALL_ID), _name, _INPUT),
} | dict.fromkeys(
    SERVER_RESULTS,
    (
        _field("tool_use_id", is_server_id, "B25", _SERVER_CALL_ID),
        _field("content", lambda value: isinstance(value, list | dict), "B25", _REQUIRED),
    ),
)
