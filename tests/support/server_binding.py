"""Thinking that is bound to the conversation before it, as the newer models of the API bind it.

A signature carries, behind what knows the thought again: the model, the organization where that
counts, and short hashes of the system prompt, the tools, the messages before it (their thinking
aside), and of the last and the first thinking before it. Cache marks count nowhere, nor do deferred
tools that nothing refers to. Thinking may be missing from the start, from the end, or all; what a
model cannot read is dropped without a word. A compaction block carries the place where the messages
ended that it stands for: what follows it stands where it stood.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from tests.support.server_bodies import bare, blocks_of, hash_of
from tests.support.server_compaction import compacted
from tests.support.server_models import MODELS, reads
from tests.support.server_script import Json, Script, block_of, numbered, part, signature_of
from tests.support.server_tools import is_deferred, name_of

HINT: Final = (
    "That setting requires the `thinking-binding-controls-2026-08-01` value in the "
    "`anthropic-beta` header."
)
_ELSEWHERE: Final = (
    "Invalid `signature` in `thinking` block. The block is bound to a different conversation. "
    "Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "
    '"drop_block".'
)
ELSEWHERE: Final = f"{_ELSEWHERE} {HINT}"
OTHER_SYSTEM: Final = "The `system` prompt differs from the one this block was created with."
BINDING: Final = "thinking-binding-controls-2026-08-01"

Behavior: TypeAlias = Literal["ignore", "record", "drop", "refuse"]
"""What becomes of thinking that stands behind what it was not made for."""

_ALWAYS_REFUSED: Final = {"claude-fable-5-2", "claude-mythos-5-2", "claude-mythos-5-1"}
_SIGNED: Final = {"thinking": "signature", "redacted_thinking": "data"}


def behavior_of(body: Json, script: Script) -> Behavior:
    """As the request wants it, else as the account and the model have it."""
    asked = part(body, "thinking", "block_binding").get("prefix_mismatch_behavior")
    if not script.binding:
        return "ignore"
    if asked is not None:
        return "drop" if asked == "drop_block" else "refuse"
    every_account = body["model"] in _ALWAYS_REFUSED
    return "refuse" if script.binding is True or every_account else "record"


class Unread(NamedTuple):
    """Thinking that does not fit its place, or that the model cannot read."""

    message: int
    place: int
    reason: str
    other_system: bool = False

    @property
    def at(self) -> str:
        return f"messages.{self.message}.content.{self.place}"


class _Made(NamedTuple):
    """What a signature says."""

    own: str
    model: str
    organization: str
    system: str
    tools: str
    messages: str
    thinking: str
    first: str


@dataclass(slots=True)
class Bindings:
    """The thinking of one request, read once. `unread` are in the order of their places."""

    body: Json
    behavior: Behavior
    organization: str
    unread: list[Unread] = field(default_factory=list[Unread])
    messages: str = ""
    _system: str = ""
    _tools: str = ""
    _read: list[_Made] = field(default_factory=list[_Made])
    _hashes: list[str] = field(default_factory=list[str])
    _failed: bool = False
    _deferred: dict[str, Any] = field(default_factory=dict[str, Any])
    _behind: str = ""  # the role of the last message that a compaction block stands for

    def __post_init__(self) -> None:
        tools: list[Json] = self.body.get("tools", [])
        self._deferred = {tool["name"]: bare(tool) for tool in tools if is_deferred(tool)}
        self._system = hash_of(bare(self.body.get("system") or []))
        self._tools = hash_of([bare(tool) for tool in tools if not is_deferred(tool)])
        for number, message in enumerate(self.body["messages"]):
            self._enter(message)
            for index, block in enumerate(blocks_of(message)):
                if block.get("type") in _SIGNED:
                    self._think(number, index, block)
                elif block.get("type") == "compaction":
                    self._summary(block, message)
                else:
                    self._say(block, as_text=isinstance(message["content"], str))

    @property
    def dropped(self) -> set[tuple[int, int]]:
        """Where thinking stands that the model is not shown."""
        kept = self.behavior in {"record", "ignore"}
        return {
            (one.message, one.place)
            for one in self.unread
            if not (kept and one.reason == "prefix_binding_mismatch")
        }

    def refusals(self, betas: frozenset[str]) -> Iterator[str]:
        """What is wrong with the thinking in a request, where that is refused."""
        for one in self.unread:
            if self.behavior == "refuse" and one.reason == "prefix_binding_mismatch":
                words = [f"{one.at}: {_ELSEWHERE}"]
                words += [HINT] if BINDING not in betas else []
                words += [OTHER_SYSTEM] if one.other_system else []
                yield " ".join(words)

    def transformations(self) -> list[Json]:
        """What the answer reports of the thinking in a request that was taken."""
        dropped = self.dropped
        return [
            {
                "type": "thinking_dropped"
                if (one.message, one.place) in dropped
                else "thinking_mismatch_allowed",
                "path": one.at,
                "reason": one.reason,
            }
            for one in self.unread
            if self.behavior != "ignore" or one.reason != "prefix_binding_mismatch"
        ]

    def sign(self, turn: Json, number: int) -> Json:
        """A turn whose thinking is bound to the request that it answers."""
        if not MODELS[self.body["model"]].binds:
            return turn
        content: list[Json] = []
        if self.body["messages"][-1]["role"] != "assistant":  # else a paused answer goes on
            self._enter({"role": "assistant"})
        for piece in numbered(turn, number):
            if "thinking" in piece and "signature" not in piece:
                signed = self._signed(signature_of(piece["thinking"]))
                content.append(piece | {"signature": signed})
            elif "redacted_thinking" in piece:
                content.append({"redacted_thinking": self._signed(piece["redacted_thinking"])})
            else:
                content.append(piece)
                if "thinking" not in piece:
                    self._say(block_of(piece))
        return turn | {"content": content}

    def _enter(self, message: Json) -> None:
        """The begin of a message. One that carries on what a compaction block ended is not its."""
        more = {name: v for name, v in message.items() if name not in {"role", "content"}}
        joins = bool(self._behind) and message["role"] in {self._behind, "system"}
        self._behind = ""
        self.messages = hash_of([self.messages, message["role"], more, joins])

    def _say(self, block: Json, *, as_text: bool = False) -> None:
        said: object = {name: value for name, value in bare(block).items() if value is not None}
        if part(block, "tool").get("type") == "tool_reference":
            said = [said, self._deferred.get(name_of(block))]
        self.messages = hash_of([self.messages, said, as_text])

    def _summary(self, block: Json, message: Json) -> None:
        made = compacted(block)
        self.messages, self._behind = (made.messages, made.role) if made else ("", "")
        self._read, self._hashes = [], []
        if len(blocks_of(message)) > 1:
            self._enter({"role": message["role"], "content": []})

    def _think(self, number: int, index: int, block: Json) -> None:
        made = _made(block)
        if made is None:  # an older model's: any model reads it, and nothing binds it
            return
        model = self.body["model"]
        if not _is_read(model, made):
            self.unread.append(Unread(number, index, "model_binding_mismatch"))
        elif made.organization and made.organization != self.organization:
            self.unread.append(Unread(number, index, "organization_binding_mismatch"))
        elif MODELS[model].binds and self._misplaced(made):
            other_system = made.system != self._system
            self.unread.append(Unread(number, index, "prefix_binding_mismatch", other_system))
            if self.behavior == "drop":
                self._failed = True
                return
        self._read.append(made)
        self._hashes.append(hash_of(block[_SIGNED[block["type"]]]))

    def _misplaced(self, made: _Made) -> bool:
        if self._failed:  # all thinking behind what was dropped is dropped with it
            return True
        first, before = self._ends(made.model)
        here = (self._system, self._tools, self.messages)
        put_back = made.first != first and made.first in self._hashes
        return made[3:6] != here or put_back or bool(before and made.thinking != before)

    def _ends(self, model: str) -> tuple[str, str]:
        """The first and the last thinking that a model had before it, as hashes."""
        both = zip(self._read, self._hashes, strict=True)
        back = zip(reversed(self._read), reversed(self._hashes), strict=True)
        first = next((own for made, own in both if _is_read(model, made)), "")
        return first, next((own for made, own in back if _is_read(model, made)), "")

    def _signed(self, own: str) -> str:
        model = self.body["model"]
        organization = self.organization if MODELS[model].account_bound else ""
        first, before = self._ends(model)
        place = (self._system, self._tools, self.messages, before, first)
        made = _Made(own, model, organization, *place)
        signature = ".".join(word or "-" for word in made)
        self._read.append(made)
        self._hashes.append(hash_of(signature))
        return signature


def _is_read(model: str, made: _Made) -> bool:
    return made.model == model or reads(model, made.model)


def _made(block: Json) -> _Made | None:
    signature = str(block[_SIGNED[block["type"]]])
    words = ["" if word == "-" else word for word in signature.split(".")]
    return _Made(*words) if len(words) == len(_Made._fields) else None
