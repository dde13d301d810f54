"""A server's prompt cache as a model of prices, and a long working session to try policies on.

The cache holds prefixes that end at a breakpoint. A request reads the longest one that it begins
with, looked for at its own breakpoints and at most 20 blocks before each; what follows up to its
last breakpoint is written, the rest is plain input. An entry lives from its last use on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from msgspec import structs

from tests.support.agents import make_agent
from tests.support.clock import FakeClock
from tests.support.provider import ScriptedProvider
from tui.agent.prompts import parse
from tui.core.config import Compaction, Config, Prune
from tui.core.messages import Block, ToolOutput, Usage, text_block
from tui.provider.base import AttemptStarted, Completed, ModelInfo, Request, StreamPart
from tui.session.session import Session
from tui.tools.base import Effect, Params, Tool, ToolContext

LOOK_BACK = 20


@dataclass(frozen=True, slots=True)
class Prices:
    """Of a token, against one of plain input. `life_s` is how long an unread entry lives."""

    write: float = 1.25
    read: float = 0.1
    life_s: float = 300.0


HOUR = Prices(write=2.0, life_s=3600.0)


@dataclass(slots=True)
class PromptCache:
    """Takes requests in order and says what each costs."""

    prices: Prices = field(default_factory=Prices)
    total: Usage = field(default_factory=Usage)
    _until: dict[bytes, float] = field(default_factory=dict[bytes, float])
    _sizes: dict[int, tuple[Block, bytes, int]] = field(
        default_factory=dict[int, tuple[Block, bytes, int]]
    )

    def send(self, request: Request, now: float) -> Usage:
        """The tokens of a request by price class; its output is not counted."""
        chain: list[tuple[bytes, int, bool]] = []
        key, size = request.model.encode(), 0
        for block, head in _blocks(request):
            raw, tokens = self._measured(block)
            key = hashlib.blake2b(key + head + raw, digest_size=16).digest()
            size += tokens
            chain.append((key, size, "cache_control" in block))
        marks = [n for n, (_, _, marked) in enumerate(chain) if marked]
        hit = max(
            (
                n
                for mark in marks
                for n in range(mark, max(-1, mark - LOOK_BACK - 1), -1)
                if self._until.get(chain[n][0], -1.0) >= now
            ),
            default=-1,
        )
        for n in {*marks, *([hit] if hit >= 0 else [])}:
            self._until[chain[n][0]] = now + self.prices.life_s
        read = chain[hit][1] if hit >= 0 else 0
        end = chain[marks[-1]][1] if marks else 0
        written = max(0, end - read)
        usage = Usage(size - read - written, 0, written, read)
        self.total += usage
        return usage

    @property
    def cost(self) -> float:
        """What all of it came to, in tokens of plain input."""
        total, prices = self.total, self.prices
        return (
            total.input_tokens
            + total.cache_creation_input_tokens * prices.write
            + total.cache_read_input_tokens * prices.read
        )

    def _measured(self, block: Block) -> tuple[bytes, int]:
        known = self._sizes.get(id(block))
        if known is not None and known[0] is block:
            return known[1], known[2]
        bare = {name: value for name, value in block.items() if name != "cache_control"}
        raw = json.dumps(bare, sort_keys=True, default=str).encode()
        digest = hashlib.blake2b(raw, digest_size=16).digest()
        self._sizes[id(block)] = (block, digest, len(raw) // 4)
        return digest, len(raw) // 4


def _blocks(request: Request) -> Iterator[tuple[Block, bytes]]:
    for tool in request.tools:
        yield tool, b"tool"
    for block in request.system:
        yield block, b"system"
    for message in request.messages:
        for block in message["content"]:
            yield block, message["role"].encode()


class WorkParams(Params, frozen=True, kw_only=True):
    step: int


@dataclass(frozen=True, slots=True)
class Habits:
    """How a session goes: `sizes` of results in turn; a break of `break_s` every `every` turns."""

    sizes: tuple[int, ...] = (6000, 700, 14_000, 2500, 400, 20_000, 9000, 1200)
    break_s: float = 1200.0
    every: int = 10


STEADY = Habits()
"""What the rules of pruning were found on; the others they were not."""
HASTY = Habits((3000, 30_000, 900, 1500, 11_000, 5000, 45_000, 2000, 800), 400.0, 7)
UNBROKEN = Habits((8000, 1500, 2200, 12_000, 600), 0.0)


class Work(Tool[WorkParams]):
    """Puts out as much as its step says; every seventh step fails."""

    name: ClassVar[str] = "work"
    effect: ClassVar[Effect] = "none"
    params: ClassVar[type[Params]] = WorkParams

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self.sizes = sizes

    @property
    def description(self) -> str:
        return "Does one step of the work."

    async def run(self, params: WorkParams, ctx: ToolContext) -> ToolOutput:
        size = self.sizes[params.step % len(self.sizes)]
        text = f"step {params.step}: " + "some output of it, " * (size // 19)
        return ToolOutput.text(text, is_error=params.step % 7 == 6)


class Worker(ScriptedProvider):
    """A model that works in every turn: two rounds of two calls, then an answer."""

    def __init__(self, cache: PromptCache, clock: FakeClock, *, caching: bool = True) -> None:
        super().__init__()
        self.cache, self.clock, self.caching = cache, clock, caching
        self.summaries = 0
        self._asked = 0

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        self.clock.elapsed += 5.0
        sent = request if self.caching else _unmarked(request)
        usage = structs.replace(self.cache.send(sent, self.clock.elapsed), output_tokens=200)
        yield AttemptStarted(1, request.model)
        content, stop = self._answer(request)
        yield Completed(content, request.model, stop, usage, "req")

    def _answer(self, request: Request) -> tuple[list[Block], str]:
        if not request.tools:
            self.summaries += 1
            return [text_block("What was done so far, in short. " * 40)], "end_turn"
        self._asked += 1
        if self._asked % 3 == 0:
            return [text_block("Done. " * 60)], "end_turn"
        steps = (2 * self._asked, 2 * self._asked + 1)
        calls: list[Block] = [
            {"type": "tool_use", "id": f"w{step}", "name": "work", "input": {"step": step}}
            for step in steps
        ]
        return calls, "tool_use"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a session cost under one policy. `cost` is in tokens of plain input."""

    name: str
    usage: Usage
    cost: float
    summaries: int

    def line(self) -> str:
        use = self.usage
        return (
            f"{self.name:34} input {use.input_tokens:>11,}  write "
            f"{use.cache_creation_input_tokens:>10,}  read {use.cache_read_input_tokens:>11,}  "
            f"cost {self.cost:>12,.0f}  summaries {self.summaries}"
        )


async def play(
    root: Path,
    name: str,
    turns: int,
    prune: Prune,
    *,
    prices: Prices | None = None,
    caching: bool = True,
    habits: Habits = STEADY,
) -> Outcome:
    """A session of so many turns through a real agent."""
    clock = FakeClock()
    cache = PromptCache(prices or Prices())
    provider = Worker(cache, clock, caching=caching)
    agent = make_agent(
        root,
        provider,
        clock=clock,
        session=Session.in_memory(root, clock=clock),
        tools={"work": Work(habits.sizes)},
        model=ModelInfo("test-model", 200_000, 8192, "config"),
        config=Config(prune=prune, compaction=Compaction(memory_flush=False)),
    )
    for turn in range(turns):
        rested = turn % habits.every == habits.every - 1
        clock.elapsed += 30.0 + (habits.break_s if rested else 0.0)
        async for _ in agent.send(parse(f"do the next thing, number {turn}")):
            pass
    await agent.close()
    return Outcome(name, cache.total, cache.cost, provider.summaries)


def _unmarked(request: Request) -> Request:
    def plain(blocks: list[Block]) -> list[Block]:
        return [
            {n: v for n, v in b.items() if n != "cache_control"} if "cache_control" in b else b
            for b in blocks
        ]

    messages: list[Any] = [
        {"role": m["role"], "content": plain(m["content"])} for m in request.messages
    ]
    return replace(request, system=plain(request.system), messages=messages)


NEVER = Prune(after_turns=1_000_000)
EVERY_TURN = Prune(when="turns")
PAYS = Prune(when="pays")
