"""Rules about a request body, except for its messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeGuard, cast

from tui.context.rules import Violation
from tui.context.rules.blocks import block_violations, extra_fields
from tui.context.rules.json_safety import unsound
from tui.core.late_pattern import late_pattern
from tui.core.messages import is_object, list_of, object_of

MAX_MARKS = 4
MAX_MESSAGES = 100_000
_TOOL_NAME = late_pattern(r"[a-zA-Z0-9_-]{1,128}")
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
# fmt: off
_FIELDS = frozenset({
    "model", "max_tokens", "messages", "system", "tools", "tool_choice", "thinking", "stream",
    "metadata", "stop_sequences", "temperature", "top_p", "top_k", "cache_control",
    "output_config", "service_tier", "container", "inference_geo", "diagnostics", "speed",
    "context_management", "mcp_servers", "betas",
})
_TOOL_FIELDS = frozenset({
    "type", "name", "description", "input_schema", "cache_control", "strict", "input_examples",
    "defer_loading", "allowed_callers", "eager_input_streaming",
})
# fmt: on


def request_violations(body: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield everything that is wrong with a body except for the content of its messages."""
    for name in extra_fields(body, _FIELDS):
        yield Violation("B27", name, f"{name}: Extra inputs are not permitted")
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield Violation("request", "model", "model: Field required")
    if not _is_count(body.get("max_tokens")):
        text = "max_tokens: Input should be greater than or equal to 1"
        yield Violation("request", "max_tokens", text)
    messages = body.get("messages")
    if not isinstance(messages, list):
        yield Violation("B56", "messages", "messages: Input should be a valid list")
    elif not messages:
        yield Violation("B56", "messages", "messages: at least one message is required")
    elif len(cast("list[object]", messages)) > MAX_MESSAGES:
        text = f"messages: List should have at most {MAX_MESSAGES} items"
        yield Violation("request", "messages", text)
    if "system" in body:
        yield from _system(body["system"])
    yield from _tools(body)
    yield from _thinking(body)
    yield from _marks(body)


def marks_in(blocks: Iterable[object]) -> int:
    """Count the cache marks in a list of blocks, including those inside tool results."""
    count = 0
    for block in blocks:
        if not is_object(block):
            continue
        count += block.get("cache_control") is not None
        if block.get("type") == "tool_result":
            count += marks_in(list_of(block.get("content")))
    return count


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _system(system: object) -> Iterator[Violation]:
    if isinstance(system, str):
        if unsound(system):
            yield Violation("B38", "system", "system: The request body is not valid JSON")
        return
    blocks = list_of(system)
    if blocks is not system:
        yield Violation("B27", "system", "system: Input should be a valid list")
    for index, block in enumerate(blocks):
        where = f"system.{index}"
        if not is_object(block) or block.get("type") != "text":
            yield Violation("B27", where, f"{where}.type: Input should be 'text'")
        else:
            yield from block_violations(block, where)


def _tools(body: Mapping[str, Any]) -> Iterator[Violation]:
    tools = list_of(body.get("tools"))
    if "tools" in body and tools is not body["tools"]:
        yield Violation("B27", "tools", "tools: Input should be a valid list")
    names: set[str] = set()
    for index, tool in enumerate(tools):
        where = f"tools.{index}"
        if not is_object(tool):
            yield Violation("B27", where, f"{where}: Input should be an object")
            continue
        yield from _tool(tool, where)
        name = str(tool.get("name"))
        if name in names:
            yield Violation("request", where, "tools: Tool names must be unique.")
        names.add(name)
    choice = body.get("tool_choice")
    if choice is None:
        return
    kind = object_of(choice).get("type")
    if kind not in ("auto", "any", "tool", "none"):
        text = "tool_choice: Input tag does not match any of the expected tags"
        yield Violation("B27", "tool_choice", text)
    elif kind == "tool" and str(choice.get("name")) not in names:
        text = f"Tool '{choice.get('name')}' not found in provided tools"
        yield Violation("request", "tool_choice", text)
    elif kind == "any" and not names:
        text = "tool_choice may only be specified while providing tools"
        yield Violation("request", "tool_choice", text)


def _tool(tool: dict[str, Any], where: str) -> Iterator[Violation]:
    if unsound(tool):
        yield Violation("B38", where, f"{where}: The request body is not valid JSON")
    if tool.get("type") not in (None, "custom"):
        return  # a server's own tool has fields of its own
    path = f"{where}.custom"
    name = tool.get("name")
    if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
        words = "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"
        yield Violation("request", where, f"{path}.name: {words}")
    schema = tool.get("input_schema")
    if not is_object(schema):
        yield Violation("request", where, f"{path}.input_schema: Field required")
    elif schema.get("type") != "object":
        yield Violation("request", where, f"{path}.input_schema.type: Input should be 'object'")
    elif not {"oneOf", "allOf", "anyOf"}.isdisjoint(schema):
        words = "input_schema does not support oneOf, allOf, or anyOf at the top level"
        yield Violation("request", where, f"{path}.input_schema: {words}")
    for field in extra_fields(tool, _TOOL_FIELDS):
        yield Violation("B27", where, f"{path}.{field}: Extra inputs are not permitted")


def _thinking(body: Mapping[str, Any]) -> Iterator[Violation]:
    effort = object_of(body.get("output_config")).get("effort")
    if effort is not None and effort not in _EFFORTS:
        text = f"output_config.effort: Input should be one of {', '.join(_EFFORTS)}"
        yield Violation("request", "output_config", text)
    thinking = body.get("thinking")
    if thinking is None:
        return
    kind = object_of(thinking).get("type")
    if kind not in ("enabled", "disabled", "adaptive", "between_tools"):
        text = "thinking: Input tag does not match any of the expected tags"
        yield Violation("B27", "thinking", text)
    elif kind == "enabled":
        budget, limit = thinking.get("budget_tokens"), body.get("max_tokens")
        if not _is_count(budget) or budget < 1024:
            text = "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
            yield Violation("request", "thinking", text)
        elif _is_count(limit) and budget >= limit:
            text = "`max_tokens` must be greater than `thinking.budget_tokens`"
            yield Violation("request", "max_tokens", text)


def _marks(body: Mapping[str, Any]) -> Iterator[Violation]:
    """Check that system, tools and messages together have at most four cache marks."""
    count = marks_in(list_of(body.get("system"))) + marks_in(list_of(body.get("tools")))
    count += body.get("cache_control") is not None
    inside = 0
    for message in list_of(body.get("messages")):
        inside += marks_in(list_of(object_of(message).get("content")))
    if inside <= MAX_MARKS < count + inside:
        words = f"A maximum of {MAX_MARKS} blocks with cache_control may be provided."
        yield Violation("B26", "cache_control", f"{words} Found {count + inside}.")
