"""What the API refuses of one model and takes from another, and what needs a beta header.

The texts are the API's where its documentation gives them. System messages, changes of tools and
compaction have rules of their own (`tests.support.server_system_messages`, `server_tools`,
`server_compaction`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

from tests.support.server_binding import BINDING
from tests.support.server_bodies import placed
from tests.support.server_cache import marks_of
from tests.support.server_compaction import (
    compaction_block_violations,
    compaction_request_violations,
)
from tests.support.server_errors import EXTRA, Rejection, invalid
from tests.support.server_models import ALL_EFFORTS, MODELS, ModelFacts
from tests.support.server_script import Json, part
from tests.support.server_system_messages import system_message_violations
from tests.support.server_tools import tool_change_violations

UPDATES: Final = "thinking-display-updates-2026-08-18"
_MOST_MARKS: Final = 4


def betas_of(headers: Mapping[str, str]) -> frozenset[str]:
    """The beta features that a request names."""
    return frozenset(word.strip() for word in headers.get("anthropic-beta", "").split(",") if word)


def model_violations(body: Json, betas: frozenset[str]) -> Iterator[Rejection]:
    """What is wrong with a body for its model, where that is one of those that are known."""
    facts = MODELS.get(body["model"])
    if facts is None:
        return
    for name in ("temperature", "top_p", "top_k"):
        if name in body:
            yield invalid(f"{name}: {EXTRA}")
    yield from map(invalid, _thinking(body, facts, betas))
    yield from map(invalid, _effort(body, facts))
    choice = part(body, "tool_choice").get("type")
    if choice in {"any", "tool"} and not facts.forced_tools:
        yield invalid('tool_choice: type "tool" and "any" are not supported for this model.')
    yield from map(invalid, _marks(body))
    yield from map(invalid, _blocks(body))
    yield from compaction_block_violations(body, betas)
    yield from system_message_violations(body, facts, betas)
    yield from tool_change_violations(body, betas)
    if "compaction" in body:
        yield from compaction_request_violations(body, facts, betas)


def without_additions(body: Json) -> Json:
    """A body whose shape the rules of any model judge: what newer models add is taken out."""
    shape = {name: value for name, value in body.items() if name != "compaction"}
    messages: object = body.get("messages")
    if isinstance(messages, list):
        every = cast("list[object]", messages)
        spoken = [message for message in every if _fields(message).get("role") != "system"]
        waiting = {"compaction", "tool_use"} if "compaction" in body else {"compaction"}
        last = [_without(message, waiting) for message in spoken[-1:]]
        shape["messages"] = _plain([_without(m, {"compaction"}) for m in spoken[:-1]] + last)
    return shape


def _fields(value: object) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}


def _without(message: object, kinds: set[str]) -> object:
    """A message with words in the place of blocks that have rules of their own."""
    content: object = _fields(message).get("content")
    blocks = cast("list[object]", content) if isinstance(content, list) else []
    if not any(_fields(block).get("type") in kinds for block in blocks):
        return message
    kept = [_WORDS if _fields(block).get("type") in kinds else block for block in blocks]
    return _fields(message) | {"content": kept}


def _plain(messages: list[object]) -> list[object]:
    """Messages that may begin with words of the assistant's, in the place of a compaction block."""
    content: object = _fields(messages[0]).get("content") if messages else None
    if not isinstance(content, list) or content[:1] != [_WORDS]:
        return messages
    rest: list[object] = [*messages[1:]]
    if len(cast("list[object]", content)) > 1:
        rest = [_fields(messages[0]) | {"content": content[1:]}, *rest]
    if rest and _fields(rest[0]).get("role") == "user":
        return rest
    return [{"role": "user", "content": "A summary."}, *rest]


_WORDS: Final = {"type": "text", "text": "A summary."}


def _marks(body: Json) -> Iterator[str]:
    ttls = marks_of(body)
    if "1h" in ttls and "5m" in ttls[: len(ttls) - ttls[::-1].index("1h")]:
        yield "cache_control.ttl: a ttl='1h' block must not come after a ttl='5m' block"
    if "cache_control" in body and len(ttls) >= _MOST_MARKS:
        yield f"A maximum of {_MOST_MARKS} blocks with cache_control may be provided."


def _blocks(body: Json) -> Iterator[str]:
    for one in placed(body):
        if one.role == "assistant" and one.block.get("type") == "document":
            yield f"{one.at}: document blocks are not permitted here"
        if one.role == "user" and one.block.get("citations"):
            yield f"{one.at}.citations: {EXTRA}"


def _thinking(body: Json, facts: ModelFacts, betas: frozenset[str]) -> Iterator[str]:
    given = part(body, "thinking")
    kind = given.get("type")
    if kind is None:
        return
    if kind not in facts.thinking:
        yield f'"thinking.type.{kind}" is not supported for this model.'
    off = kind in {"between_tools", "disabled"}
    if "block_binding" in given and (off or BINDING not in betas):
        yield f"thinking.{kind}.block_binding: {EXTRA}"
    behavior = part(given, "block_binding").get("prefix_mismatch_behavior", "error")
    if behavior not in {"error", "drop_block"}:
        path = f"thinking.{kind}.block_binding.prefix_mismatch_behavior"
        yield f"{path}: Input should be 'error' or 'drop_block'"
    if off and given.keys() - {"type", "block_binding"}:
        yield f"thinking.{kind}: {EXTRA}"
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
