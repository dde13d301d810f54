"""The prompt cache of the Messages API: what of a request is read, written and paid.

A prefix is written at each mark and read again from the longest that is known, looked for at each
mark and at most 20 blocks before it. An entry lives five minutes or an hour from its last use,
counted from the start of a request; it can be read once the first answer has begun. Prefixes below
the model's minimum are not kept. It takes requests as the model is shown them
(`tests.support.server_view`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, NamedTuple, cast

from tests.support.server_bodies import TOOL_CHANGES, bare, encoded
from tests.support.server_models import MODELS, ModelFacts
from tests.support.server_script import Json, part

LOOK_BACK: Final = 20
LIVES_S: Final = {"5m": 300.0, "1h": 3600.0}
CHARACTERS_PER_TOKEN: Final = 4


class _Block(NamedTuple):
    """A block with the hash of all up to its end, and the tokens up to there."""

    prefix: bytes
    tokens: int
    ttl: str


@dataclass(slots=True)
class ServerCache:
    """Takes requests in order. `dollars` is what all of them cost so far."""

    dollars: float = 0.0
    _until: dict[tuple[str, bytes], float] = field(default_factory=dict[tuple[str, bytes], float])
    _from: dict[tuple[str, bytes], float] = field(default_factory=dict[tuple[str, bytes], float])
    _hours: set[tuple[str, bytes]] = field(default_factory=set[tuple[str, bytes]])

    def read(self, body: Json, now: float, delay: float = 0.0) -> Json:
        """The `usage` of a request that begins at `now`, in seconds, without its output. Its answer
        begins after a `delay`."""
        model = body["model"]
        facts = MODELS[model]
        blocks = list(_blocks(body))
        marks = [n for n, block in enumerate(blocks) if block.ttl]
        hit = self._hit(model, blocks, marks, now)
        read = blocks[hit].tokens if hit >= 0 else 0
        if hit >= 0:
            self._renew(model, blocks[hit], now, now)
        written = {"5m": 0, "1h": 0}
        end = read
        for mark in marks:
            block = blocks[mark]
            if block.tokens < facts.cached_from:
                continue
            if mark > hit:
                written[block.ttl] += block.tokens - end
                end = block.tokens
            self._renew(model, block, now, now + delay)
        total = blocks[-1].tokens if blocks else 0
        return {
            "input_tokens": total - end,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": sum(written.values()),
            "cache_creation": {
                "ephemeral_5m_input_tokens": written["5m"],
                "ephemeral_1h_input_tokens": written["1h"],
            },
        }

    def charge(self, model: str, usage: Json) -> float:
        """Add what a request cost, in US dollars."""
        cost = price(MODELS[model], usage)
        self.dollars += cost
        return cost

    def _hit(self, model: str, blocks: list[_Block], marks: list[int], now: float) -> int:
        return max(
            (
                n
                for mark in marks
                for n in range(mark, max(-1, mark - LOOK_BACK), -1)
                if self._readable((model, blocks[n].prefix), now)
            ),
            default=-1,
        )

    def _readable(self, key: tuple[str, bytes], now: float) -> bool:
        return key in self._until and self._from[key] <= now <= self._until[key]

    def _renew(self, model: str, block: _Block, now: float, begins: float) -> None:
        key = model, block.prefix
        expired = self._until.get(key, -1.0) < now
        self._from[key] = begins if expired else min(begins, self._from[key])
        if block.ttl == "1h":
            self._hours.add(key)
        life = LIVES_S["1h" if key in self._hours else "5m"]
        self._until[key] = now + life


def tokens_of(body: Json) -> int:
    """How many tokens a request is charged for, read from the cache or not."""
    return max((block.tokens for block in _blocks(body)), default=0)


def price(facts: ModelFacts, usage: Json) -> float:
    """What a request cost, in US dollars."""
    prompt = (
        usage["input_tokens"]
        + usage.get("cache_read_input_tokens", 0)
        + usage.get("cache_creation_input_tokens", 0)
    )
    return facts.price_of(prompt).cost(usage)


def marks_of(body: Json) -> list[str]:
    """How long the marks of a request let their entries live, in their order."""
    marks = [part(block, "cache_control") for _, block in _parts(body)]
    return [mark.get("ttl", "5m") for mark in marks if mark]


def _blocks(body: Json) -> Iterator[_Block]:
    """Every block of a request: tools, system, messages; text in place of blocks is one."""
    prefix = b"inline" if not body.get("tools") and _has_inline_tools(body) else b""
    tokens = 0
    for head, block in _parts(body):
        mark = block.get("cache_control")
        said = bare(block) if mark or block.get("type") in TOOL_CHANGES else block
        raw = encoded(said)  # the order of keys counts
        prefix = sha256(b"".join((prefix, head, raw))).digest()
        tokens += len(raw) // CHARACTERS_PER_TOKEN
        yield _Block(prefix, tokens, mark.get("ttl", "5m") if mark else "")


def _parts(body: Json) -> Iterator[tuple[bytes, Json]]:
    tools: list[Json] = body.get("tools", [])
    for tool in tools:
        yield b"tools", tool
    for block in _listed(body.get("system", [])):
        yield b"system", block
    head = _head(body)
    for message in body["messages"]:
        extra = {name: v for name, v in message.items() if name not in {"role", "content"}}
        said = encoded([head.decode(), message["role"], extra])
        for block in _listed(message["content"]):
            yield said, block


def _head(body: Json) -> bytes:
    """What else the entries of messages depend on. A default is the same as nothing."""
    facts = MODELS[body["model"]] if body.get("model") in MODELS else None
    thinking, output = body.get("thinking"), dict(part(body, "output_config"))
    if facts and output.get("effort") == facts.effort:
        del output["effort"]
    if facts and facts.thinks and thinking == {"type": "adaptive"}:
        thinking = None
    choice = body.get("tool_choice")
    if choice == {"type": "auto"}:
        choice = None
    return encoded([thinking, output or None, choice, _has_images(body)])


def _has_inline_tools(body: Json) -> bool:
    """Whether a tool joins by value: if none is there from the start, all is written anew."""
    return any(
        part(block, "tool").get("type") == "tool_definition"
        for message in body["messages"]
        if message["role"] == "system"
        for block in _listed(message["content"])
    )


def _listed(content: object) -> list[Json]:
    if isinstance(content, list):
        return cast("list[Json]", content)
    return [{"type": "text", "text": content}]


def _has_images(body: Json) -> bool:
    blocks = (block for message in body["messages"] for block in _listed(message["content"]))
    return any(
        block.get("type") == "image"
        or (
            block.get("type") == "tool_result"
            and any(inner.get("type") == "image" for inner in _listed(block.get("content")))
        )
        for block in blocks
    )
