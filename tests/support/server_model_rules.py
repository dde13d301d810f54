"""What the API refuses of one model and takes from another, and what needs a beta header.

The texts are the API's where its documentation gives them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

from tests.support.server_cache import marks_of
from tests.support.server_models import ALL_EFFORTS, MODELS, ModelFacts
from tests.support.server_script import Json, part

BINDING: Final = "thinking-binding-controls-2026-08-01"
UPDATES: Final = "thinking-display-updates-2026-08-18"
TURN_EFFORT: Final = "mid-conversation-output-config-2026-07-01"
CLEAR_AT: Final = "mid-conversation-system-clear-at-2026-08-21"
INLINE_TOOLS: Final = "inline-tools-2026-09-15"
COMPACTION: Final = "compact-2026-09-04"
_EXTRA: Final = "Extra inputs are not permitted"
_TOOL_CHANGES: Final = frozenset({"tool_addition", "tool_removal"})


def betas_of(headers: Mapping[str, str]) -> frozenset[str]:
    """The beta features that a request names."""
    return frozenset(word.strip() for word in headers.get("anthropic-beta", "").split(",") if word)


def model_violations(body: Json, betas: frozenset[str]) -> Iterator[str]:
    """What is wrong with a body for its model, where that is one of those that are known."""
    facts = MODELS.get(body["model"])
    if facts is None:
        return
    for name in ("temperature", "top_p", "top_k"):
        if name in body:
            yield f"{name}: {_EXTRA}"
    yield from _thinking(body, facts, betas)
    yield from _effort(body, facts)
    choice = part(body, "tool_choice").get("type")
    if choice in {"any", "tool"} and not facts.forced_tools:
        yield 'tool_choice: type "tool" and "any" are not supported for this model.'
    ttls = marks_of(body)
    if "1h" in ttls and "5m" in ttls[: len(ttls) - ttls[::-1].index("1h")]:
        yield "cache_control.ttl: a ttl='1h' block must not come after a ttl='5m' block"
    yield from _messages(body, facts, betas)
    if "compaction" in body:
        yield from _compaction(body, facts, betas)


def without_system_messages(body: Json) -> Json:
    """A body whose shape the rules of any model judge: what newer models add is taken out."""
    shape = {name: value for name, value in body.items() if name != "compaction"}
    messages: object = body.get("messages")
    if isinstance(messages, list):
        spoken = [m for m in cast("list[object]", messages) if _fields(m).get("role") != "system"]
        shape["messages"] = [_plain(m) for m in spoken if not _is_summary(m)]
    return shape


def blocks_of(message: Json) -> list[Json]:
    """The blocks of a message; a text in their place is one."""
    content: object = message["content"]
    if isinstance(content, list):
        return cast("list[Json]", content)
    return [{"type": "text", "text": content}] if content else []


def _fields(value: object) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}


def _is_summary(message: object) -> bool:
    """Whether a message holds nothing but a compaction block."""
    return message != _plain(message) and not _fields(_plain(message))["content"]


def _plain(message: object) -> object:
    """A message without its compaction block."""
    content: object = _fields(message).get("content")
    blocks = cast("list[object]", content) if isinstance(content, list) else []
    if not blocks or _fields(blocks[0]).get("type") != "compaction":
        return message
    return _fields(message) | {"content": blocks[1:]}


def _thinking(body: Json, facts: ModelFacts, betas: frozenset[str]) -> Iterator[str]:
    given = part(body, "thinking")
    kind = given.get("type")
    if kind is None:
        return
    if kind not in facts.thinking:
        yield f'"thinking.type.{kind}" is not supported for this model.'
    off = kind in {"between_tools", "disabled"}
    if "block_binding" in given and (off or BINDING not in betas):
        yield f"thinking.{kind}.block_binding: {_EXTRA}"
    if off and given.keys() - {"type", "block_binding"}:
        yield f"thinking.{kind}: {_EXTRA}"
    if given.get("display") == "updates" and UPDATES not in betas:
        yield "thinking.adaptive.display: Input should be 'summarized' or 'omitted'"


def _effort(body: Json, facts: ModelFacts) -> Iterator[str]:
    effort = part(body, "output_config").get("effort")
    if effort is None:
        return
    kind = part(body, "thinking").get("type")
    if effort not in facts.efforts:
        levels = ", ".join(facts.efforts) or "none"
        yield f"output_config.effort '{effort}' is not supported by this model; it has: {levels}"
    elif kind in {"disabled", "between_tools"} and effort in ALL_EFFORTS[3:]:
        yield (
            f"output_config.effort '{effort}' is not supported when thinking is disabled on this "
            "model."
        )


def _messages(body: Json, facts: ModelFacts, betas: frozenset[str]) -> Iterator[str]:
    messages: list[Json] = body["messages"]
    for number, message in enumerate(messages):
        at = f"messages.{number}"
        if message["role"] == "system":
            yield from _system_message(messages, number, facts, betas)
            continue
        for index, block in enumerate(blocks_of(message)):
            if message["role"] == "assistant" and block.get("type") == "document":
                yield f"{at}.content.{index}: document blocks are not permitted here"
            if message["role"] == "user" and block.get("citations"):
                yield f"{at}.content.{index}.citations: {_EXTRA}"
            if block.get("type") == "compaction":
                if COMPACTION not in betas:
                    yield f"{at}.content.{index}.type: Input tag 'compaction' is not expected"
                elif (number, index) != (0, 0):
                    yield f"{at}.content.{index}: compaction_block_misplaced"


def _system_message(
    messages: list[Json], number: int, facts: ModelFacts, betas: frozenset[str]
) -> Iterator[str]:
    message, at = messages[number], f"messages.{number}"
    if not facts.system_messages:
        yield "role 'system' is not supported on this model"
        return
    if "output_config" in message:
        if TURN_EFFORT not in betas:
            yield f"{at}.output_config: {_EXTRA}"
        elif not facts.turn_effort:
            yield (
                "output_config.effort requires a model that supports per-turn effort; this model "
                "does not"
            )
        elif (level := message["output_config"].get("effort")) not in facts.efforts:
            yield f"{at}.output_config.effort: Input should be one of the model's, not {level!r}"
    if "clear_at" in message and CLEAR_AT not in betas:
        yield f"{at}.clear_at: {_EXTRA}"
    content = blocks_of(message)
    for index, block in enumerate(content):
        kind = block.get("type")
        if kind in _TOOL_CHANGES and INLINE_TOOLS not in betas:
            yield f"{at}.content.{index}.type: Input tag '{kind}' is not expected"
        elif kind != "text" and kind not in _TOOL_CHANGES:
            yield f"{at}.content.{index}: system messages support text blocks and tool changes"
        if "clear_at" in message and "cache_control" in block:
            yield f"{at}: cache_control is not permitted on a turn-scoped system message"
    if content and not _well_placed(messages, number):
        yield (
            f"{at}: a system message must follow a user message, and be the last or be followed "
            "by an assistant message"
        )


def _well_placed(messages: list[Json], number: int) -> bool:
    """Several in a row count as one."""
    roles = [message["role"] for message in messages]
    before = next((role for role in reversed(roles[:number]) if role != "system"), None)
    after = next((role for role in roles[number + 1 :] if role != "system"), "assistant")
    return before == "user" and after == "assistant"


def _compaction(body: Json, facts: ModelFacts, betas: frozenset[str]) -> Iterator[str]:
    if COMPACTION not in betas:
        yield f"compaction: {_EXTRA}"
    elif not facts.compacts:
        yield "compaction: this model does not support compaction"
    for name in ("context_management", "stop_sequences"):
        if name in body:
            yield f"compaction: cannot be combined with {name}"
    last = [m for m in body["messages"] if m["role"] != "system"][-1]
    if last["role"] == "assistant" and any(b["type"] == "tool_use" for b in blocks_of(last)):
        yield "compaction_incomplete_turn"
