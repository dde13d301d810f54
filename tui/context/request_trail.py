"""What was sent last to a model, and whether the next request extends it.

Two requests are compared by rolling hashes: that of everything up to the end of a message, over
its blocks as canonical JSON. Cache marks make no difference. The hash of a request is that at its
end; its `request` record and the answer keep it, so that it can be checked later, too.

Behind a server's compaction block there is a second chain: the block stands for a conversation that
was sent, so what follows it stands for the server where it stood. An answer is bound to the hash of
that chain, `bound`; where there is no block both are one.

One invariant: thinking is in a request if and only if everything before it, and the thinking
before it, is what stood there when it was made.

Nothing is hashed twice: a message that is the same object as in the request before keeps its hash.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from tui.context.compaction_block import COMPACTION, begins_with_block
from tui.context.overrides import SPEAKING
from tui.context.record_index import RecordIndex, replaced
from tui.context.rules.blocks import THINKING
from tui.core.messages import Block, Message, blocks_of, object_of
from tui.provider.base import Request
from tui.session.records import Record

BOUND_TO: Final = "bound_to"
"""The field of an answer's record: the hash of the request that it answers."""

_COMMON: Final = frozenset({"role", "content"})


@dataclass(frozen=True, slots=True)
class Sent:
    """Where a request stands, by hash and number of messages.

    `open_messages` are those before its last user message: until an answer comes after that
    one, it may grow and its notices move. Of a paused answer, those before the user message that it
    answers. `blocks` counts system, tools and messages.
    """

    sha256: str
    messages: int
    open_sha256: str
    open_messages: int
    blocks: int
    bound: str = ""
    """The hash that the answer is bound to."""

    def to_json(self) -> dict[str, Any]:
        """The fields of a `request` record."""
        other = {"bound": self.bound} if self.bound != self.sha256 else {}
        return other | {
            "sha256": self.sha256,
            "messages": self.messages,
            "open": [self.open_sha256, self.open_messages],
            "blocks": self.blocks,
        }

    @classmethod
    def of(cls, record: Record) -> Sent | None:
        """From a `request` record; None where that is damaged."""
        match record.data:
            case {
                "sha256": str(whole),
                "messages": int(count),
                "open": [str(before), int(open_count)],
                "blocks": int(blocks),
            }:
                return cls(whole, count, before, open_count, blocks)
            case _:
                return None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A request beside the one before it.

    `extends`: the one before is its beginning. `changed` is the number of the first message that
    is another, -1 where the system prompt or the tools are, None where it extends or that is not
    known. `misplaced` is the number of the first message whose thinking comes after something
    that it was not made for, None where all is well.
    """

    sent: Sent
    extends: bool
    changed: int | None = None
    misplaced: int | None = None


@dataclass(slots=True)
class Part:
    """A message with the hash of everything up to its end, and how many blocks that is."""

    message: Message
    digests: list[bytes]
    after: bytes
    total: int
    bound: bytes
    """As `after`, but a server's block counts as what it stands for."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a server's block stands for: the hash of what was sent, after this frame."""

    bound: bytes
    frame: bytes


@dataclass(frozen=True, slots=True)
class Candidate:
    """A request that may be sent: the first `same` parts are those of the one before.

    `seen` are the messages among them that are other objects, by number.
    """

    frame: Part
    same: int
    tail: list[Part]
    seen: dict[int, Message]


class RequestTrail:
    """Follows the requests of one agent to one model."""

    def __init__(self) -> None:
        self._frame = Part({"role": "user", "content": []}, [], b"", 0, b"")
        self._messages: list[Message] = []
        self._parts: list[Part] = []
        self._answers = BoundAnswers()
        self._compactions = RecordIndex({COMPACTION})
        self._places: dict[str, Place] = {}

    def compare(
        self,
        request: Request,
        last: Record | None,
        records: Sequence[Record],
        checks: Callable[[str], bool] = lambda _model: True,
    ) -> tuple[Comparison, Candidate]:
        """A request beside `last`, the record of the one sent before it to the same model.

        Returns with it what `keep` takes once it is sent. `records` are the branch's; `checks` says
        of a model whether its thinking is bound to this very rendering of what stood before.
        """
        self._places = dict(map(_place, self._compactions.of(records)))
        sent, found = self.measure(request)
        extends = last is None or self._extends(found, last, records)
        known = bool(self._frame.digests)
        changed = None if extends or not known else self._changed(found)
        misplaced = self._misplaced(found, records, checks)
        return Comparison(sent, extends, changed, misplaced), found

    def measure(self, request: Request) -> tuple[Sent, Candidate]:
        """Where a request stands; with it what `keep` and `digest_after` take."""
        found = self._candidate(request)
        return self._sent(request, found), found

    def digest_after(self, found: Candidate, messages: int) -> str | None:
        """The hash of a request up to the end of that many messages; None where it has fewer."""
        part = self._after(found, messages)
        return part.after.hex() if part else None

    def keep(self, sent: Candidate) -> None:
        """Take a request as sent."""
        self._frame = sent.frame
        for number, message in sent.seen.items():
            self._messages[number] = self._parts[number].message = message
        del self._parts[sent.same :], self._messages[sent.same :]
        self._parts += sent.tail
        self._messages += [part.message for part in sent.tail]

    def _candidate(self, request: Request) -> Candidate:
        frame = self._next(None, {"role": "user", "content": [*request.system, *request.tools]})
        messages, seen = request.messages, dict[int, Message]()
        same = min(len(self._parts), len(messages)) if frame is self._frame else 0
        for number in replaced(self._messages[:same], messages):  # mostly by moved cache marks
            before = self._parts[number - 1] if number else frame
            if self._next(before, messages[number], self._parts[number]) is not self._parts[number]:
                same = number
                break
            seen[number] = messages[number]
        tail: list[Part] = []
        before = self._parts[same - 1] if same else frame
        grown = self._parts[same] if same < len(self._parts) and frame is self._frame else None
        for number in range(same, len(messages)):
            before = self._next(before, messages[number], grown)
            tail.append(before)
            grown = None
        return Candidate(frame, same, tail, seen)

    def _next(self, before: Part | None, message: Message, old: Part | None = None) -> Part:
        """A part after another one: `old`, where it says the same."""
        if before is None:
            old = self._frame
        digests = _digests(message, old)
        if old is not None and old.digests == digests:
            return old
        start, total = (before.after, before.total) if before else (b"", 0)
        after = sha256(b"".join([start, *digests])).digest()
        bound, place = after, self._place(message, before)
        if place is not None:
            bound = _chained(place.bound, digests[1:])
        elif before is not None and before.bound != before.after:
            bound = _chained(before.bound, digests)
        return Part(message, digests, after, total + len(digests), bound)

    def _place(self, message: Message, before: Part | None) -> Place | None:
        """What the block stands for with which a request's first message begins."""
        if before is None or not begins_with_block(message):
            return None
        place = self._places.get(str(message["content"][0].get("signature")))
        return place if place and place.frame == before.after else None

    def _after(self, found: Candidate, messages: int) -> Part | None:
        """The part that ends after that many messages."""
        if messages == 0:
            return found.frame
        if messages <= found.same:
            return self._parts[messages - 1]
        place = messages - found.same - 1
        return found.tail[place] if place < len(found.tail) else None

    def _sent(self, request: Request, found: Candidate) -> Sent:
        opened = whole = len(request.messages)
        if request.messages and request.messages[-1]["role"] == "assistant":
            opened -= 1  # a paused answer, which goes on
        while opened and request.messages[opened - 1]["role"] != "assistant":
            opened -= 1
        end, start = self._after(found, whole), self._after(found, opened)
        assert end
        assert start
        bound = end.bound.hex()
        return Sent(end.after.hex(), whole, start.after.hex(), opened, end.total, bound)

    def _extends(self, found: Candidate, last: Record, records: Sequence[Record]) -> bool:
        before = Sent.of(last)
        if before is None or self.digest_after(found, before.messages) == before.sha256:
            return True
        grown = self.digest_after(found, before.open_messages) == before.open_sha256
        return grown and (self._goes_on(found, before) or not _answered(last, records))

    def _goes_on(self, found: Candidate, before: Sent) -> bool:
        """Whether a request ended with a paused answer, which is longer now."""
        part = self._after(found, before.messages)
        if part is None or part.message["role"] != "assistant":
            return False
        number = before.messages - 1
        sent = self._parts[number].digests if number < len(self._parts) else []
        return part.digests[: len(sent)] == sent

    def _changed(self, found: Candidate) -> int:
        return found.same if found.frame is self._frame else -1

    def _misplaced(
        self, found: Candidate, records: Sequence[Record], checks: Callable[[str], bool]
    ) -> int | None:
        """The first message of the tail whose thinking was made for another conversation.

        Of each message the first thinking counts.
        """
        bound = self._answers.of(records)
        for place, part in enumerate(found.tail):
            if part.message["role"] != "assistant":
                continue
            signature = next(_signatures(part.message["content"]), None)
            if signature is None:
                continue
            before, made = self._after(found, found.same + place), bound.get(signature, {})
            opened = self._place(part.message, before) if found.same + place == 0 else None
            stood = opened.bound if opened else before.bound if before else b""
            authors = made.values()
            if made and not any(map(checks, authors)):
                continue
            if stood.hex() not in made and not _went_on(part, stood, made):
                return found.same + place
        return None


@dataclass(slots=True)
class BoundAnswers:
    """Which requests brought thinking, and of which models it is, by its signature."""

    _index: RecordIndex = field(default_factory=lambda: RecordIndex({"assistant"}))
    _found: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    _read: list[Record] = field(default_factory=list[Record])

    def of(self, records: Sequence[Record]) -> Mapping[str, Mapping[str, str]]:
        """The models by the hashes of the requests, by signature."""
        answers = self._index.of(records)
        known = len(self._read)
        if known > len(answers) or (known and answers[known - 1] is not self._read[-1]):
            self._found, self._read, known = {}, [], 0
        for record in answers[known:]:
            request = record.data.get(BOUND_TO)
            if isinstance(request, str):
                for key in _signatures(blocks_of(record.data.get("content"))):
                    self._found.setdefault(key, {})[request] = str(record.data.get("model"))
            self._read.append(record)
        return self._found


def _went_on(part: Part, stood: bytes, made: Mapping[str, Any]) -> bool:
    """Whether the first thinking of a message was made after some of the blocks before it: the
    answer had paused there."""
    kinds = [str(block.get("type")) in THINKING for block in part.message["content"]]
    ends = range(1, kinds.index(True) + 1)
    return any(_chained(stood, part.digests[:end]).hex() in made for end in ends)


def _answered(request: Record, records: Sequence[Record]) -> bool:
    """Whether an answer came before anything else was said: the last message grows no more."""
    spoke = ""
    for record in reversed(records):
        if record is request:
            break
        if record.type in SPEAKING:
            spoke = record.type
    return spoke == "assistant"


def _place(record: Record) -> tuple[str, Place]:
    """What the block of a compaction stands for, by the block's signature."""
    signature = str(object_of(record.data.get("block")).get("signature"))
    try:
        bound, frame = (bytes.fromhex(str(record.data.get(n))) for n in ("bound", "frame"))
    except ValueError:
        bound, frame = b"", b"-"
    return signature, Place(bound, frame)


def _chained(before: bytes, digests: list[bytes]) -> bytes:
    return sha256(b"".join([before, *digests])).digest() if digests else before


def place_of(request: Request, records: Sequence[Record]) -> tuple[str, str]:
    """Where a request ends, and where its frame does: the hashes that a server's summary of it
    stands for."""
    found, candidate = RequestTrail().compare(request, None, records)
    return found.sent.bound, candidate.frame.after.hex()


def has_thinking(content: Iterable[Block]) -> bool:
    """Whether an answer holds thinking."""
    return any(str(block.get("type")) in THINKING for block in content)


def _digests(message: Message, old: Part | None) -> list[bytes]:
    """The hash of each block; of one that is the same object as before, its old one."""
    content = message["content"]
    known: dict[int, bytes] = {}
    if old is not None and len(old.message["content"]) == len(old.digests):
        blocks = old.message["content"]
        known = {id(block): digest for block, digest in zip(blocks, old.digests, strict=True)}
    role = message["role"]
    found = [known.get(id(block)) or _digest(role, block) for block in content]
    if not content:  # only what else a message may say, such as an effort
        found.append(_digest(role, {k: v for k, v in message.items() if k not in _COMMON}))
    return found


def _digest(role: str, block: Mapping[str, Any]) -> bytes:
    """The hash of a block as it is sent; the order of keys counts, cache marks do not."""
    bare = {name: part for name, part in block.items() if name != "cache_control"}
    return sha256(json.dumps([role, bare], separators=(",", ":"), default=str).encode()).digest()


def _signatures(content: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """What thinking is known by, in its order."""
    for block in content:
        if str(block.get("type")) in THINKING:
            yield str(block.get("signature") or block.get("data"))
