"""Thinking that a server signed is bound to all that stood before it: behind anything else such a
server refuses it. What stood there is known again by its hash, recorded with each answer.

Where something before it changed, a `break` record says so, and no answer above it is sent with
its thinking any more, whatever comes back later: a server refuses thinking that is put back too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from tui.context.rules.blocks import THINKING
from tui.messages import Block, blocks_of
from tui.provider.base import Request
from tui.session.records import Record

BREAK: Final = "break"
BOUND_TO: Final = "bound_to"
"""The field of an answer's record: the hash of the request that it answers."""


def answers_before_break(records: Sequence[Record]) -> frozenset[str]:
    """The ids of the answers that are sent without their thinking."""
    places = range(len(records) - 1, -1, -1)
    end = next((place for place in places if records[place].type == BREAK), 0)
    return frozenset(record.id for record in records[:end] if record.type == "assistant")


def has_thinking(content: Iterable[Block]) -> bool:
    """Whether an answer holds thinking."""
    return any(str(block.get("type")) in THINKING for block in content)


class Binding:
    """Checks the requests of one agent. What was hashed once is not hashed again."""

    def __init__(self) -> None:
        self._digests: dict[int, tuple[Mapping[str, Any], bytes]] = {}

    def check(self, request: Request, records: Sequence[Record]) -> str:
        """The hash of a request; "" where thinking in it stands behind what it was not made for.

        Cache marks make no difference. Of each message the first thinking counts.
        """
        known, self._digests = self._digests, {}
        hashed = sha256()
        for part in (request.tools, request.system):
            for value in part:
                hashed.update(self._digest(value, known))
            hashed.update(b"|")
        bound: dict[str, set[str]] | None = None
        holds = True
        for message in request.messages:
            content = message["content"]
            if holds and message["role"] == "assistant" and (key := next(_signatures(content), "")):
                bound = _bound(records) if bound is None else bound
                holds = hashed.hexdigest() in bound.get(key, ())
            hashed.update(message["role"].encode())
            for block in content:
                hashed.update(self._digest(block, known))
        return hashed.hexdigest() if holds else ""

    def _digest(
        self, value: Mapping[str, Any], known: Mapping[int, tuple[Mapping[str, Any], bytes]]
    ) -> bytes:
        found = known.get(id(value))
        if found is None or found[0] is not value:
            bare = {name: part for name, part in value.items() if name != "cache_control"}
            text = json.dumps(bare, sort_keys=True, default=str)
            found = (value, sha256(text.encode()).digest())
        self._digests[id(value)] = found
        return found[1]


def _signatures(content: Iterable[Block]) -> Iterator[str]:
    """What thinking is known by, in its order."""
    for block in content:
        if str(block.get("type")) in THINKING:
            yield str(block.get("signature") or block.get("data"))


def _bound(records: Iterable[Record]) -> dict[str, set[str]]:
    """The hashes of the requests that brought thinking, by its signature."""
    found: dict[str, set[str]] = {}
    for record in records:
        request = record.data.get(BOUND_TO) if record.type == "assistant" else None
        if isinstance(request, str):
            for key in _signatures(blocks_of(record.data.get("content"))):
                found.setdefault(key, set()).add(request)
    return found
