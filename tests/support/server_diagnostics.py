"""Why a request was not read from the cache: it is compared with the one that it says it follows.

Only requests that ask for it leave something to be compared with.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.support.server_bodies import bare, blocks_of, hash_of
from tests.support.server_errors import EXTRA, Rejection, invalid
from tests.support.server_script import Json, part

CHARACTERS_PER_TOKEN = 4


class _Fingerprint(NamedTuple):
    model: str
    tools: str
    system: str
    messages: tuple[str, ...]
    others: str
    tokens: tuple[int, ...]
    """Of the tools, the system prompt, and each block of the messages."""

    def missed(self, first: int) -> int:
        """The tokens from one part on that would have been read."""
        return sum(self.tokens[first:])


@dataclass(slots=True)
class Diagnostics:
    """What the server keeps of the requests that asked for diagnostics, by their answers' ids."""

    kept: dict[str, _Fingerprint] = field(default_factory=dict[str, _Fingerprint])

    def of(self, body: Json, betas: frozenset[str], id_: str) -> Json | None:
        """What the answer `id_` says. None: not asked for, the first one, or nothing differs."""
        asked: Json | None = body.get("diagnostics")
        if asked is None:
            return None
        new = _fingerprint(body, betas)
        self.kept[id_] = new
        previous = asked.get("previous_message_id")
        if previous is None:
            return None
        old = self.kept.get(previous)
        reason = {"type": "previous_message_not_found"} if old is None else _difference(old, new)
        return {"cache_miss_reason": reason} if reason else None


def diagnostics_violations(body: Json) -> list[Rejection]:
    """What is wrong with the field."""
    if body.get("diagnostics") is None:
        return []
    if not isinstance(body["diagnostics"], dict):
        return [invalid("diagnostics: Input should be an object")]
    extra = part(body, "diagnostics").keys() - {"previous_message_id"}
    return [invalid(f"diagnostics.{name}: {EXTRA}") for name in sorted(extra)]


def _difference(old: _Fingerprint, new: _Fingerprint) -> Json | None:
    """The first thing that differs, in the order of the prompt."""
    if old.model != new.model:
        return {"type": "model_changed", "cache_missed_input_tokens": old.missed(0)}
    if old.tools != new.tools:
        return {"type": "tools_changed", "cache_missed_input_tokens": old.missed(0)}
    if old.system != new.system:
        return {"type": "system_changed", "cache_missed_input_tokens": old.missed(1)}
    if new.messages[: len(old.messages)] != old.messages:
        pairs = zip(old.messages, (*new.messages, *[""] * len(old.messages)), strict=False)
        first = next(n for n, (one, other) in enumerate(pairs) if one != other)
        return {"type": "messages_changed", "cache_missed_input_tokens": old.missed(2 + first)}
    return {"type": "unavailable"} if old.others != new.others else None


def _fingerprint(body: Json, betas: frozenset[str]) -> _Fingerprint:
    tools, system = bare(body.get("tools") or []), bare(body.get("system") or [])
    said = [
        ({**message, "content": None}, bare(block))
        for message in body["messages"]
        for block in blocks_of(message)
    ]
    others = ("tool_choice", "thinking", "output_config", "context_management")
    return _Fingerprint(
        hash_of([body["model"], body.get("speed")]),
        hash_of(tools),
        hash_of(system),
        tuple(hash_of(one) for one in said),
        hash_of([[body.get(name) for name in others], sorted(betas)]),
        tuple(_tokens(one) for one in (tools, system, *(block for _, block in said))),
    )


def _tokens(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False)) // CHARACTERS_PER_TOKEN
