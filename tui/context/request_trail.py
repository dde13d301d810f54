"""The last request sent to a model, and the check whether the next one extends it.

Two requests are compared by rolling hashes: each covers everything up to the end of a message, by
its blocks as canonical JSON. Cache marks make no difference. The hash of a request is the one at
its end; its `request` record and the answer keep it, so that it can be checked later, too.

After a server's compaction block there is a second chain: the block replaces a conversation that
was sent, so for the server, what follows it is still in its old place. An answer is bound to the
hash of that chain, `bound`; without a block both are the same.

One invariant: thinking is in a request if and only if everything before it, and the thinking before
it, is what was there when it was made.

Nothing is hashed twice: a message that is the same object as in the previous request keeps its
hash.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from hashlib import sha256
from typing import Any, Final

from tui.context.compaction_block import COMPACTION, begins_with_block
from tui.context.overrides import SPEAKING
from tui.context.record_index import RecordIndex, replaced
from tui.context.request_assembly import Mark
from tui.context.rules.blocks import THINKING
from tui.core.dataclass import dataclass, field
from tui.core.messages import Block, Message, blocks_of, object_of
from tui.provider.base import Request
from tui.session.records import Record
from tui.session.request_numbers import REQUEST
from tui.tokens import estimate

BOUND_TO: Final = "bound_to"
"""The field of an answer's record with the hash of the request that it answers."""

CACHE: Final = "cache"
"""The field of a `request` record with the prefixes at its marks (`kept`, as `Prefix.to_json`), and
with the `forecast` of its input if it breaks with the last."""

_COMMON: Final = frozenset({"role", "content"})


_KEY_CHARS: Final = 16


@dataclass(frozen=True, slots=True)
class Sent:
    """The identity of a request, by hashes and numbers of messages.

    `open_messages` are those before its last user message: until an answer follows that one, it may
    grow and its notices move. For a paused answer, they are those before the user message that it
    answers. `blocks` counts system, tools and messages.
    """

    sha256: str
    messages: int
    open_sha256: str
    open_messages: int
    blocks: int
    bound: str = ""
    """The hash that the answer is bound to."""

    @property
    def ends(self) -> tuple[tuple[int, str], ...]:
        """The numbers of messages up to which a hash is known, with these."""
        return (self.messages, self.sha256), (self.open_messages, self.open_sha256)

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
        """Decode a `request` record; None if it is damaged."""
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
    """A request compared with the one before it.

    `extends`: it begins with the one before. `changed` is the index of the first message that
    differs, -1 if the system prompt or the tools do, None if it extends or that is not known.
    `misplaced` is the index of the first message whose thinking comes after something that it was
    not made for, None if there is none.
    """

    sent: Sent
    extends: bool
    changed: int | None = None
    misplaced: int | None = None


@dataclass(slots=True)
class Part:
    """A message with the hash of everything up to its end, and the number of blocks up to there."""

    message: Message
    digests: list[bytes]
    after: bytes
    total: int
    bound: bytes
    """Same as `after`, but a server's block counts as what it replaces."""
    weight: float = 0.0
    """The estimated size of everything up to there (`tui.tokens.estimate`) but thinking."""
    images: bool = False
    """True if there are images up to there."""
    thoughts: int = 0
    """The number of blocks of thinking up to there, and their estimated size."""
    thought_weight: float = 0.0


@dataclass(frozen=True, slots=True)
class Place:
    """The conversation that a server's block replaces: the hash of what was sent, after this
    frame."""

    bound: bytes
    frame: bytes


@dataclass(frozen=True, slots=True)
class Candidate:
    """A request that may be sent: its first `same` parts are those of the one before.

    `seen` are those messages among them that are different objects, by index.
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

    def supposed(self) -> RequestTrail:
        """The same, to compare what is never sent: nothing may be kept."""
        other: RequestTrail = copy(self)
        other._answers, other._compactions = self._answers.supposed(), self._compactions.copy()
        return other

    def compare(
        self,
        request: Request,
        last: Record | None,
        records: Sequence[Record],
        checks: Callable[[str], bool] = lambda _model: True,
    ) -> tuple[Comparison, Candidate]:
        """Compare a request with `last`, the record of the one sent before it to the same model.

        Also returns the argument for `keep` once it is sent. `records` are the branch's; `checks`
        returns True for a model whose thinking is bound to exactly this rendering of what came
        before.
        """
        self._places = dict(map(_place, self._compactions.of(records)))
        sent, candidate = self.measure(request)
        extends = last is None or self._extends(candidate, last, records)
        changed = None if extends else self._changed(candidate, records)
        misplaced = self._misplaced(candidate, records, checks)
        return Comparison(sent, extends, changed, misplaced), candidate

    def measure(self, request: Request) -> tuple[Sent, Candidate]:
        """Identify a request; also returns the argument for `keep` and `digest_after`."""
        candidate = self._candidate(request)
        return self._sent(request, candidate), candidate

    def digest_after(self, found: Candidate, messages: int) -> str | None:
        """The hash of a request up to the end of that many messages; None if it has fewer."""
        part = self._after(found, messages)
        return part.after.hex() if part else None

    def part(self, found: Candidate, messages: int) -> Part:
        """The part of a request that ends after that many messages; 0 is its frame."""
        part = self._after(found, messages)
        assert part
        return part

    def parts(self, found: Candidate) -> Sequence[Part]:
        """All parts of a request, its frame first."""
        return [found.frame, *self._parts[: found.same], *found.tail]

    def keep(self, sent: Candidate) -> None:
        """Record a request as sent."""
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
        for number in replaced(self._messages[:same], messages):  # mostly by cache marks
            before = self._parts[number - 1] if number else frame
            if self._next(before, messages[number], self._parts[number]) is not self._parts[number]:
                same = number
                break
            seen[number] = messages[number]
        tail: list[Part] = []
        before = self._parts[same - 1] if same else frame
        grown = self._parts[same] if same < len(self._parts) and frame is self._frame else None
        for number in range(same, len(messages)):
            alike = self._parts[number] if number < len(self._parts) else None
            before = self._next(before, messages[number], grown, alike)
            tail.append(before)
            grown = None
        return Candidate(frame, same, tail, seen)

    def _next(
        self,
        before: Part | None,
        message: Message,
        old: Part | None = None,
        alike: Part | None = None,
    ) -> Part:
        """Return the part after another one: `old` if it is equal. Blocks that one that is `alike`
        has too are not hashed again."""
        if before is None:
            old = self._frame
        digests = _digests(message, old or alike)
        if old is not None and old.digests == digests:
            return old
        start, total = (before.after, before.total) if before else (b"", 0)
        after = sha256(b"".join([start, *digests])).digest()
        bound, place = after, self._place(message, before)
        if place is not None:
            bound = _chained(place.bound, digests[1:])
        elif before is not None and before.bound != before.after:
            bound = _chained(before.bound, digests)
        weight, thoughts, thought_weight = weigh(message["content"])
        weight += estimate.MESSAGE_TOKENS
        images = _has_images(message["content"])
        if before is not None:
            weight, images = weight + before.weight, images or before.images
            thoughts += before.thoughts
            thought_weight += before.thought_weight
        total += len(digests)
        return Part(message, digests, after, total, bound, weight, images, thoughts, thought_weight)

    def _place(self, message: Message, before: Part | None) -> Place | None:
        """Return the conversation that the block at the start of a request's first message
        replaces."""
        if before is None or not begins_with_block(message):
            return None
        place = self._places.get(str(message["content"][0].get("signature")))
        return place if place and place.frame == before.after else None

    def _after(self, candidate: Candidate, messages: int) -> Part | None:
        """Return the part that ends after that many messages."""
        if messages == 0:
            return candidate.frame
        if messages <= candidate.same:
            return self._parts[messages - 1]
        place = messages - candidate.same - 1
        return candidate.tail[place] if place < len(candidate.tail) else None

    def _sent(self, request: Request, candidate: Candidate) -> Sent:
        opened = whole = len(request.messages)
        if request.messages and request.messages[-1]["role"] == "assistant":
            opened -= 1  # a paused answer, which will continue
        while opened and request.messages[opened - 1]["role"] != "assistant":
            opened -= 1
        end, start = self._after(candidate, whole), self._after(candidate, opened)
        assert end
        assert start
        bound = end.bound.hex()
        return Sent(end.after.hex(), whole, start.after.hex(), opened, end.total, bound)

    def _extends(self, candidate: Candidate, last: Record, records: Sequence[Record]) -> bool:
        before = Sent.of(last)
        if before is None or self.digest_after(candidate, before.messages) == before.sha256:
            return True
        grown = self.digest_after(candidate, before.open_messages) == before.open_sha256
        return grown and (self._goes_on(candidate, before) or not _answered(last, records))

    def _goes_on(self, candidate: Candidate, before: Sent) -> bool:
        """True if a request ended with a paused answer that is longer now."""
        part = self._after(candidate, before.messages)
        if part is None or part.message["role"] != "assistant":
            return False
        number = before.messages - 1
        sent = self._parts[number].digests if number < len(self._parts) else []
        return part.digests[: len(sent)] == sent

    def _changed(self, candidate: Candidate, records: Sequence[Record]) -> int:
        """Find the first message that differs. Of a request of an earlier run only the hashes are
        known, up to the ends of this one and those before it: then it may be a later one."""
        if self._frame.digests:
            return candidate.same if candidate.frame is self._frame else -1
        same = -1
        for record in records:
            if record.type == REQUEST and (sent := Sent.of(record)):
                for count, key in sent.ends:
                    if count > same and self.digest_after(candidate, count) == key:
                        same = count
        return same

    def _misplaced(
        self, candidate: Candidate, records: Sequence[Record], checks: Callable[[str], bool]
    ) -> int | None:
        """Find the first message of the tail whose thinking was made for another conversation.

        In each message only the first thinking counts.
        """
        bound = self._answers.of(records)
        for place, part in enumerate(candidate.tail):
            if part.message["role"] != "assistant":
                continue
            signature = next(_signatures(part.message["content"]), None)
            if signature is None:
                continue
            before, made = self._after(candidate, candidate.same + place), bound.get(signature, {})
            opened = self._place(part.message, before) if candidate.same + place == 0 else None
            preceding = opened.bound if opened else before.bound if before else b""
            authors = made.values()
            if made and not any(map(checks, authors)):
                continue
            if preceding.hex() not in made and not _went_on(part, preceding, made):
                return candidate.same + place
        return None


@dataclass(frozen=True, slots=True)
class Prefix:
    """The beginning of a request up to a block: the `key` that it has at the server, the number of
    its blocks and its estimated weight, both without thinking; and those of its thinking."""

    key: str
    blocks: int
    weight: float
    thoughts: int = 0
    thought_weight: float = 0.0

    @property
    def end(self) -> int:
        """The number of all blocks."""
        return self.blocks + self.thoughts

    def to_json(self) -> list[Any]:
        return [
            self.key,
            self.blocks,
            round(self.weight),
            self.thoughts,
            round(self.thought_weight),
        ]

    @classmethod
    def of_json(cls, value: object) -> Prefix | None:
        match value:
            case [
                str(key),
                int(blocks),
                int() | float() as weight,
                int(thoughts),
                int() | float() as thought_weight,
            ]:
                return cls(key, blocks, weight, thoughts, thought_weight)
            case _:
                return None


class RequestPrefixes:
    """The beginnings of one request, in the order in which a server reads it: tools, system
    prompt, messages. `marks` are its cache marks in the messages."""

    def __init__(
        self, request: Request, marks: Sequence[Mark], trail: RequestTrail, candidate: Candidate
    ) -> None:
        self._request, self._marks = request, marks
        self._trail, self._candidate = trail, candidate
        self._last = trail.part(candidate, len(request.messages))
        head = [request.thinking, request.effort, self._last.images]
        self._head = json.dumps(head, sort_keys=True).encode()
        self._parts: Sequence[Part] = ()

    @property
    def whole(self) -> Prefix:
        return _prefix("", self._last, self._last.total)

    def with_blocks(self, blocks: int) -> Prefix | None:
        """The beginning that ends with a message and has that many blocks besides thinking."""
        parts = self._all_parts()
        number = bisect_left(parts, blocks, key=lambda part: part.total - part.thoughts)
        part = parts[number] if number < len(parts) else None
        found = part is not None and part.total - part.thoughts == blocks
        return _prefix("", part, part.total) if part and found else None

    def at(self, blocks: int) -> Prefix:
        """The beginning with that many blocks."""
        if blocks <= self._candidate.frame.total:
            return self._in_frame(blocks)
        parts = self._all_parts()
        number = bisect_left(parts, blocks, key=lambda part: part.total)
        return self._in_message(parts[number - 1], parts[number], blocks)

    def _all_parts(self) -> Sequence[Part]:
        self._parts = self._parts or self._trail.parts(self._candidate)
        return self._parts

    def marked(self) -> list[Prefix]:
        """The beginnings that end with a mark, the shortest first."""
        frame = enumerate([*self._request.tools, *self._request.system], 1)
        found = [self._in_frame(n) for n, block in frame if "cache_control" in block]
        for number, place in sorted(self._marks):
            before = self._trail.part(self._candidate, number)
            part = self._trail.part(self._candidate, number + 1)
            found.append(self._in_message(before, part, before.total + place + 1))
        return found

    def _in_message(self, before: Part, part: Part, blocks: int) -> Prefix:
        inner = blocks - before.total
        key = _key(self._head, before.after, *part.digests[:inner])
        if inner == len(part.digests):
            return _prefix(key, part, blocks)
        weight, thoughts, thought_weight = weigh(part.message["content"][:inner])
        thoughts += before.thoughts
        return Prefix(
            key,
            blocks - thoughts,
            before.weight + weight + estimate.MESSAGE_TOKENS,
            thoughts,
            before.thought_weight + thought_weight,
        )

    def _in_frame(self, blocks: int) -> Prefix:
        """The beginning that ends in the tools or the system prompt."""
        many, part = len(self._request.system), self._candidate.frame
        digests = [*part.digests[many:], *part.digests[:many]][:blocks]
        if blocks == part.total:
            return Prefix(_key(*digests), blocks, part.weight)
        shown = [*self._request.tools, *self._request.system][:blocks]
        return Prefix(_key(*digests), blocks, sum(map(estimate.block_weight, map(_bare, shown))))


def _prefix(key: str, part: Part, end: int) -> Prefix:
    """The beginning of a request that ends with a message."""
    return Prefix(key, end - part.thoughts, part.weight, part.thoughts, part.thought_weight)


@dataclass(slots=True)
class BoundAnswers:
    """The requests that thinking answers, and the models that made it, by its signature."""

    _index: RecordIndex = field(default_factory=lambda: RecordIndex({"assistant"}))
    _found: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    _read: list[Record] = field(default_factory=list[Record])

    def supposed(self) -> BoundAnswers:
        """The same for a record that goes on in another way, without further answers."""
        return BoundAnswers(self._index.copy(), self._found, self._read)

    def of(self, records: Sequence[Record]) -> Mapping[str, Mapping[str, str]]:
        """Return the models by the hashes of the requests, by signature."""
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


def _went_on(part: Part, preceding: bytes, made: Mapping[str, Any]) -> bool:
    """True if a message's first thinking was made after some of the blocks before it: the answer
    had paused there."""
    kinds = [str(block.get("type")) in THINKING for block in part.message["content"]]
    ends = range(1, kinds.index(True) + 1)
    return any(_chained(preceding, part.digests[:end]).hex() in made for end in ends)


def _answered(request: Record, records: Sequence[Record]) -> bool:
    """True if an answer came before anything else was sent: the last message grows no more."""
    next_type = ""
    for record in reversed(records):
        if record is request:
            break
        if record.type in SPEAKING:
            next_type = record.type
    return next_type == "assistant"


def _place(record: Record) -> tuple[str, Place]:
    """Return the conversation that a compaction's block replaces, by the block's signature."""
    signature = str(object_of(record.data.get("block")).get("signature"))
    try:
        bound, frame = (bytes.fromhex(str(record.data.get(n))) for n in ("bound", "frame"))
    except ValueError:
        bound, frame = b"", b"-"
    return signature, Place(bound, frame)


def _chained(before: bytes, digests: list[bytes]) -> bytes:
    return sha256(b"".join([before, *digests])).digest() if digests else before


def place_of(request: Request, records: Sequence[Record]) -> tuple[str, str]:
    """Hash a request and its frame up to their ends: a server's summary replaces exactly these."""
    comparison, candidate = RequestTrail().compare(request, None, records)
    return comparison.sent.bound, candidate.frame.after.hex()


def signature_of(content: Iterable[Mapping[str, Any]]) -> str | None:
    """The signature of the first thinking in a message; None where it has none."""
    return next(_signatures(content), None)


def has_thinking(content: Iterable[Block]) -> bool:
    """True if an answer has thinking."""
    return any(str(block.get("type")) in THINKING for block in content)


def _digests(message: Message, old: Part | None) -> list[bytes]:
    """Hash each block; one that is the same object as before keeps its hash."""
    content = message["content"]
    known: dict[int, bytes] = {}
    if old is not None and len(old.message["content"]) == len(old.digests):
        blocks = old.message["content"]
        known = {id(block): digest for block, digest in zip(blocks, old.digests, strict=True)}
    role = message["role"]
    digests = [known.get(id(block)) or _digest(role, block) for block in content]
    if not content:  # its other fields only, such as an effort
        digests.append(_digest(role, {k: v for k, v in message.items() if k not in _COMMON}))
    return digests


def _digest(role: str, block: Mapping[str, Any]) -> bytes:
    """Hash a block as it is sent; the order of keys counts, cache marks do not."""
    bare = {name: part for name, part in block.items() if name != "cache_control"}
    return sha256(json.dumps([role, bare], separators=(",", ":"), default=str).encode()).digest()


def weigh(content: Iterable[Block]) -> tuple[float, int, float]:
    """Weigh blocks: those that are no thinking, the number of those that are, and these."""
    weight, thoughts, thought_weight = 0.0, 0, 0.0
    for block in content:
        if str(block.get("type")) in THINKING:
            thoughts += 1
            thought_weight += estimate.block_weight(block)
        else:
            weight += estimate.block_weight(block)
    return weight, thoughts, thought_weight


def _has_images(content: Iterable[Mapping[str, Any]]) -> bool:
    """True if there are images, in results too."""
    return any(
        block.get("type") == "image"
        or (block.get("type") == "tool_result" and _has_images(blocks_of(block.get("content"))))
        for block in content
    )


def _signatures(content: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the signatures that identify thinking, in order."""
    for block in content:
        if str(block.get("type")) in THINKING:
            yield str(block.get("signature") or block.get("data"))


def _key(*parts: bytes) -> str:
    return sha256(b"".join(parts)).hexdigest()[:_KEY_CHARS]


def _bare(block: Mapping[str, Any]) -> Block:
    return {name: value for name, value in block.items() if name != "cache_control"}
