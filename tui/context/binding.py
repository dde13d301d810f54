"""Thinking that a server signed is bound to all that stood before it: behind anything else such a
server refuses it. What stood there is known again by its hash, recorded with each answer.

Where something before it changed, a `break` record says so, and no answer above it is sent with
its thinking any more, whatever comes back later: a server refuses thinking that is put back too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

from tui.context.rules.blocks import THINKING
from tui.core.messages import Block, blocks_of
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
    """Checks the requests of one agent. What stands where it stood is not hashed again."""

    def __init__(self) -> None:
        self._seen: list[_Part] = []

    def check(self, request: Request, records: Sequence[Record]) -> str:
        """The hash of a request; "" where thinking in it stands behind what it was not made for.

        Cache marks make no difference. Of each message the first thinking counts.
        """
        known: dict[int, bytes] | None = None  # what stood behind the first change
        bound: dict[str, set[str]] | None = None
        place, after = 0, b""
        for role, values in _parts(request):
            before = after
            for value in values:
                old = self._seen[place] if known is None and place < len(self._seen) else None
                if old is None or old.value is not value:
                    digest = known.get(id(value)) if known else None
                    digest = digest or _digest(role, value)
                    if old is None or old.digest != digest:
                        if known is None:
                            known = {id(part.value): part.digest for part in self._seen[place:]}
                            del self._seen[place:]
                        old = _Part(value, digest, sha256(after + digest).digest())
                        self._seen.append(old)
                    self._seen[place] = old._replace(value=value)
                place, after = place + 1, old.after
            if known is not None and role == "assistant" and (key := next(_signatures(values), "")):
                bound = _bound(records) if bound is None else bound
                if before.hex() not in bound.get(key, ()):
                    self._seen.clear()
                    return ""
        return after.hex()


class _Part(NamedTuple):
    """A part of a request, and the hash of all up to its end."""

    value: Mapping[str, Any]
    digest: bytes
    after: bytes


def _parts(request: Request) -> Iterator[tuple[str, Sequence[Mapping[str, Any]]]]:
    yield "tools", request.tools
    yield "system", request.system
    for message in request.messages:
        yield message["role"], message["content"]


def _digest(role: str, value: Mapping[str, Any]) -> bytes:
    bare = {name: part for name, part in value.items() if name != "cache_control"}
    return sha256(json.dumps([role, bare], sort_keys=True, default=str).encode()).digest()


def _signatures(content: Iterable[Mapping[str, Any]]) -> Iterator[str]:
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
