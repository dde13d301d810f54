"""Thinking that is bound to the conversation before it, as the newer models of the API bind it.

A signature carries, behind what knows the thought again: the model, and short hashes of the system
prompt, the tools, the messages before it (their thinking aside), and the thinking before it. Cache
marks count nowhere. Thinking may be missing from the start, from the end, or all; thinking of
another model is dropped without a word. The signature of a compaction block carries the place where
the messages ended that it stands for: what follows it stands where it stood.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import cast

from tests.support.server_script import Json, part, signature_of

BINDING = frozenset({
    "claude-fable-5-2", "claude-mythos-5-2", "claude-fable-5-1", "claude-mythos-5-1",
    "claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5",
})  # fmt: skip
"""The models that preserve thinking."""

ELSEWHERE = (
    "Invalid `signature` in `thinking` block. The block is bound to a different conversation. "
    "Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "
    '"drop_block". That setting requires the `thinking-binding-controls-2026-08-01` value in the '
    "`anthropic-beta` header."
)
OTHER_SYSTEM = "The `system` prompt differs from the one this block was created with."

_SIGNED = {"thinking": "signature", "redacted_thinking": "data"}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where thinking stands: hashes of what is before it."""

    system: str
    tools: str
    messages: str = ""
    thinking: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        return self.system, self.tools, self.messages, self.thinking


def bound(turn: Json, body: Json) -> Json:
    """A turn whose thinking is bound to the request that it answers."""
    if body["model"] not in BINDING:
        return turn
    *_, (_, _, place) = _walk(body)
    made = dict(turn)
    if "thinking" in turn and "signature" not in turn:
        made["signature"] = _signed(signature_of(turn["thinking"]), body, place)
        place = _behind(place, made["signature"])
    if "redacted_thinking" in turn:
        made["redacted_thinking"] = _signed(turn["redacted_thinking"], body, place)
    return made


def unbound(body: Json) -> Iterator[str]:
    """What is wrong with the thinking in a request, where that is refused."""
    for at, other_system in _misplaced(body):
        yield f"{at}: {ELSEWHERE}" + f" {OTHER_SYSTEM}" * other_system


def transformations(body: Json, *, enforced: bool) -> list[Json]:
    """What the answer reports of the thinking in a request that was taken."""
    drops = enforced or "block_binding" in part(body, "thinking")
    kind = "thinking_dropped" if drops else "thinking_mismatch_allowed"
    found = [
        {"type": kind, "path": at, "reason": "prefix_binding_mismatch"}
        for at, _ in _misplaced(body)
    ]
    others = [
        {"type": "thinking_dropped", "path": at, "reason": "model_binding_mismatch"}
        for at, block in _thinking(body)
        if len(_words(block)) > 1 and _words(block)[1] != body["model"]
    ]
    return [*found, *others]


def compacted(body: Json, content: str) -> Json:
    """The block that stands for the messages of a request from now on."""
    *_, (_, _, place) = _walk(body)
    last = [m["role"] for m in body["messages"] if m["role"] != "system"][-1]
    words = ".".join(("compaction", last, place.messages or "-", place.thinking or "-"))
    return {"type": "compaction", "content": content, "signature": words}


def _misplaced(body: Json) -> Iterator[tuple[str, bool]]:
    """Where thinking stands behind what it was not made for, and whether the system differs."""
    if body["model"] not in BINDING:
        return
    for at, block, place in _walk(body):
        if block is None:
            continue
        made = _words(block)[2:]
        if made[:3] != place.words[:3] or (place.thinking and made[3] != place.thinking):
            yield at, made[0] != place.system


def _walk(body: Json) -> Iterator[tuple[str, Json | None, _Place]]:
    """All thinking that the model reads, and where it stands; last, without a block, the end."""
    system, tools = (_hash(_bare(body.get(name) or [])) for name in ("system", "tools"))
    place = _Place(system, tools)
    behind = ""  # the role of the last message that a compaction block stands for
    for number, message in enumerate(body["messages"]):
        more = {name: v for name, v in message.items() if name not in {"role", "content"}}
        if more or behind == message["role"]:
            said = _hash([place.messages, message["role"], more])
            place = _Place(system, tools, said, place.thinking)
        behind = ""
        for index, block in enumerate(_blocks(message)):
            if block.get("type") == "compaction":
                _, behind, messages, thinking = _words(block)
                place = _Place(system, tools, messages, thinking)
            elif block.get("type") not in _SIGNED:
                said = _hash([place.messages, message["role"], _bare(block)])
                place = _Place(system, tools, said, place.thinking)
            elif _words(block)[1:2] == (body["model"],):
                yield f"messages.{number}.content.{index}", block, place
                place = _behind(place, _signature(block))
    yield "", None, place


def _thinking(body: Json) -> Iterator[tuple[str, Json]]:
    for number, message in enumerate(body["messages"]):
        for index, block in enumerate(_blocks(message)):
            if block.get("type") in _SIGNED:
                yield f"messages.{number}.content.{index}", block


def _blocks(message: Json) -> list[Json]:
    content: object = message["content"]
    return cast("list[Json]", content) if isinstance(content, list) else [{"text": content}]


def _behind(place: _Place, signature: str) -> _Place:
    return _Place(place.system, place.tools, place.messages, _hash(signature))


def _signed(own: str, body: Json, place: _Place) -> str:
    return ".".join((own, body["model"], *(word or "-" for word in place.words)))


def _words(block: Json) -> tuple[str, ...]:
    return tuple("" if word == "-" else word for word in _signature(block).split("."))


def _signature(block: Json) -> str:
    return str(block[_SIGNED.get(block["type"], "signature")])


def _bare(value: object) -> object:
    if isinstance(value, list):
        return [_bare(one) for one in cast("list[object]", value)]
    if isinstance(value, dict):
        fields = cast("Json", value)
        return {name: part for name, part in fields.items() if name != "cache_control"}
    return value


def _hash(value: object) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]
