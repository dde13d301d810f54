"""The cost of changes to a cached request: where the cache breaks, and whether pruning pays. Pure.

A pruned result is missing from every later request, where it would have been read from the
cache; in return everything after it is written to the cache once more. If the cache has expired,
that is written anyway, and pruning is free. How many requests will follow is not known. So
pruning waits until reading the old results has cost PATIENCE times as much as writing the rest
again would, and is not done if a compaction is about to remove them anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tui.core.messages import Block, Message
from tui.provider.base import Request

WRITE: Final = 1.25
READ: Final = 0.1
"""The price of a token written to the cache, or read from it; a token that is just sent is 1."""
WRITE_1H: Final = 2.0
LIFE_1H_S: Final = 3600.0
"""The same of what is kept for an hour."""
LIFE_S: Final = 300.0
"""Seconds that the cache holds what nobody reads: the lifetime that our breakpoints ask for."""
PATIENCE: Final = 2.0
"""Found on one scripted session, which it makes cheaper than no pruning; on two others it is about
even: see the context benchmark."""


@dataclass(frozen=True, slots=True)
class PruneFigures:
    """In tokens: `saved` by each request, `rewritten` once, because it stands behind what goes.

    `requests` is how many are expected; `idle_s` how long ago the last was, None for never;
    `life_s` and `write` are of the cache. `paid` what it has cost so far, at the price of plain
    input, to read again what is due.
    """

    saved: int
    rewritten: int
    requests: int
    idle_s: float | None = None
    paid: float = 0.0
    life_s: float = LIFE_S
    write: float = WRITE

    @property
    def price(self) -> float:
        """What pruning now costs, in tokens at the price of plain input."""
        return self.rewritten * (self.write - READ)

    @property
    def gain(self) -> float:
        """What pruning now is worth, in tokens at the price of plain input."""
        return self.saved * READ * self.requests - self.price


def expected(answers: int, tokens: int, room: float) -> int:
    """How many requests are to be expected, after so many answers that brought so many tokens.

    As many again, but no more than fill `room`, the tokens up to a compaction.
    """
    if not answers or tokens <= 0:
        return 0
    return max(0, min(answers, int(room / (tokens / answers))))


@dataclass(frozen=True, slots=True)
class Verdict:
    pays: bool
    reason: str


def verdict(figures: PruneFigures) -> Verdict:
    """Whether to prune now, with the figures in words."""
    if not figures.saved:
        return Verdict(False, "nothing would be saved")
    sums = (
        f"saves {figures.saved:,} cached tokens in each of about {figures.requests} requests, "
        f"{figures.rewritten:,} would be written again"
    )
    if figures.idle_s is None or figures.idle_s >= figures.life_s:
        return Verdict(True, f"the cache has expired; {sums}")
    if figures.gain > 0 and figures.paid >= PATIENCE * figures.price:
        return Verdict(True, f"it pays ({figures.gain:+,.0f}); {sums}")
    return Verdict(False, f"it does not pay yet ({figures.gain:+,.0f}); {sums}")


@dataclass(frozen=True, slots=True)
class CacheBreak:
    """Where a request stops being the beginning of the next: all behind is written anew.

    `where` is model, tools, system, think or messages; `message` the number of the first message
    that is another, -1 where none is.
    """

    where: str
    message: int = -1


def first_change(before: Request, after: Request) -> CacheBreak | None:
    """Where the cached prefix of a request ends early in the next; None where all of it is read.

    A last message that only grew is not changed: it was its end that was cached.
    """
    if before.model != after.model:
        return CacheBreak("model")
    if before.tools != after.tools:
        return CacheBreak("tools")
    if _plain(before.system[:1]) != _plain(after.system[:1]):
        return CacheBreak("system")
    if _plain(before.system) != _plain(after.system):
        return CacheBreak("think")
    for index, old in enumerate(before.messages):
        if index >= len(after.messages):
            return CacheBreak("messages", index)
        new, last = after.messages[index], index == len(before.messages) - 1
        if not _same(old, new, grown=last):
            return CacheBreak("messages", index)
    return None


def _same(old: Message, new: Message, *, grown: bool) -> bool:
    if old is new or old["content"] is new["content"]:
        return True
    if old["role"] != new["role"]:
        return False
    ours, theirs = old["content"], new["content"]
    if grown:
        theirs = theirs[: len(ours)]
    return len(ours) == len(theirs) and all(
        a is b or _bare(a) == _bare(b) for a, b in zip(ours, theirs, strict=True)
    )


def _plain(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    return [_bare(block) for block in blocks]


def _bare(block: Block) -> dict[str, Any]:
    if "cache_control" not in block:
        return block
    return {name: value for name, value in block.items() if name != "cache_control"}
