"""Reading a request's body: its blocks, their places, and hashes of what it says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NamedTuple, cast

import msgspec

from tests.support.server_script import Json

TOOL_CHANGES = frozenset({"tool_addition", "tool_removal"})


class Placed(NamedTuple):
    """A block with the numbers of its message and of its place in it."""

    message: int
    place: int
    role: str
    block: Json

    @property
    def at(self) -> str:
        return f"messages.{self.message}.content.{self.place}"


def blocks_of(message: Json) -> list[Json]:
    """The blocks of a message; a text in their place is one."""
    content: object = message["content"]
    if isinstance(content, list):
        return cast("list[Json]", content)
    return [{"type": "text", "text": content}] if content else []


def placed(body: Json) -> Iterator[Placed]:
    """Every block of the messages."""
    for number, message in enumerate(body["messages"]):
        for index, block in enumerate(blocks_of(message)):
            yield Placed(number, index, message["role"], block)


def compaction_of(body: Json) -> Json | None:
    """The compaction block that a request begins with."""
    messages: list[Json] = body["messages"]
    first = blocks_of(messages[0])[:1] if messages else []
    return first[0] if first and first[0].get("type") == "compaction" else None


def is_cleared(messages: list[Json], number: int) -> bool:
    """Whether a message was meant for one turn that is over."""
    scoped = messages[number].get("clear_at") == "next_user_message"
    return scoped and any(later["role"] == "user" for later in messages[number + 1 :])


def bare(value: Any) -> Any:
    """A value without cache marks, however deep they stand."""
    if isinstance(value, list):
        return [bare(one) for one in cast("list[object]", value)]
    if isinstance(value, dict):
        fields = cast("Json", value)
        return {name: bare(part) for name, part in fields.items() if name != "cache_control"}
    return value


def encoded(value: object, *, sort_keys: bool = False) -> bytes:
    """A value as JSON, in no more characters than it takes."""
    try:
        return msgspec.json.encode(value, order="deterministic" if sort_keys else None)
    except UnicodeEncodeError:  # half of a surrogate pair
        return json.dumps(value, sort_keys=sort_keys).encode()


def hash_of(value: object) -> str:
    """A short hash; the order of keys counts for nothing."""
    return sha256(encoded(value, sort_keys=True)).hexdigest()[:12]
