"""The parts of the context as a session grows, estimated by weight from its record. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tui.context.overrides import content_of
from tui.core.dataclass import dataclass, field
from tui.core.messages import Block, blocks_of, list_of, object_of
from tui.session.records import Record
from tui.tokens import estimate

_STAND_IN: Final = 30.0
"""The weight of the text that replaces a masked or pruned result, about."""


class Parts(NamedTuple):
    """The tokens of a request by kind, estimated; together they are what the server counted.

    `system` are the system prompt and the memory; where a session does not tell it apart from the
    tools, both. `messages` are prompts, answers, calls and summaries.
    """

    system: int = 0
    tools: int = 0
    messages: int = 0
    results: int = 0
    thinking: int = 0


_MESSAGES, _RESULTS, _THINKING = 2, 3, 4
_KINDS: Final = {"tool_result": _RESULTS}


@dataclass(slots=True)
class ContextSizes:
    """The weights of what the next request holds, by the places of `Parts`."""

    weights: list[float] = field(default_factory=lambda: [0.0] * 5)
    _framed: bool = False
    _kind: bytearray = field(default_factory=bytearray)
    """For each record that speaks, its place in `Parts`."""
    _own: array[float] = field(default_factory=lambda: array("d"))
    """Its weight."""
    _now: array[float] = field(default_factory=lambda: array("d"))
    """The same, with what overlays made of it."""
    _thought: array[float] = field(default_factory=lambda: array("d"))
    """The weight of its thinking."""
    _place: dict[str, int] = field(default_factory=dict[str, int])
    _covered: int = 0
    """The records before this one are summarized."""
    _thoughtless: int = 0
    """Those before this one are sent without their thinking."""

    def frame(self, record: Record) -> None:
        """Take the system prompt and the tools of a frame."""
        self._framed = True
        self.weights[0] = estimate.content_weight(blocks_of(record.data.get("system")))
        tools = map(object_of, list_of(record.data.get("tools")))
        self.weights[1] = sum(map(estimate.json_weight, tools))

    def add(self, record: Record, content: list[Block]) -> None:
        """Add a record that speaks, with its content."""
        kind = _KINDS.get(record.type, _MESSAGES)
        own, thought = _weigh(content)
        own += estimate.CALL_TOKENS if kind == _RESULTS else estimate.MESSAGE_TOKENS
        self._place[record.id] = len(self._kind)
        self._kind.append(kind)
        self._own.append(own)
        self._now.append(own)
        self._thought.append(thought)
        self.weights[kind] += own
        self.weights[_THINKING] += thought

    def overlay(self, data: Mapping[str, Any]) -> None:
        """Take an overlay: how another record is sent."""
        place = self._place.get(str(data.get("target")), -1)
        if place < 0:
            return
        full, limit = self._own[place], data.get("tokens")
        match data.get("view"):
            case "masked" | "pruned":
                weight = min(full, _STAND_IN)
            case "clamped" if isinstance(limit, int) and limit > 0:
                weight = min(full, float(limit))
            case "full":
                weight = full
            case _:
                return
        if place >= self._covered:
            self.weights[self._kind[place]] += weight - self._now[place]
        self._now[place] = weight

    def compact(self, record: Record) -> None:
        """Take a compaction: a summary replaces what it covers."""
        last = self._place.get(str(record.data.get("covers")), len(self._kind) - 1)
        self._covered = max(self._covered, last + 1)
        self._thoughtless = max(self._thoughtless, self._covered)
        self._sum(_weigh(content_of(record))[0] + estimate.MESSAGE_TOKENS)

    def uncompact(self) -> None:
        """Send everything in full again."""
        self._covered = 0
        self._sum(0.0)

    def drop_thinking(self, start: object) -> None:
        """Leave out the thinking from the record `start` on, all of it where that isn't known."""
        first = self._place.get(start, 0) if isinstance(start, str) else 0
        for place in range(max(first, self._covered), len(self._own)):
            if thought := self._thought[place]:
                self.weights[_THINKING] -= thought
                self._thought[place] = 0.0

    def parts(self, tokens: int) -> Parts:
        """Share the tokens of a request, as the server counted them, by the weights."""
        weights = self.weights
        if not self._framed and tokens:
            # Another program's session: what its messages don't explain was before them.
            self._framed = True
            weights[0] = max(0.0, tokens - sum(weights[2:]))
        whole = sum(weights)
        if whole <= 0:
            return Parts(messages=tokens)
        share = (tokens or whole) / whole
        system, tools = round(weights[0] * share), round(weights[1] * share)
        results, thinking = round(weights[3] * share), round(weights[4] * share)
        if results < 0 or thinking < 0 or system < 0:  # by the rounding of what was taken off
            system, results, thinking = max(0, system), max(0, results), max(0, thinking)
        rest = round(tokens or whole) - system - tools - results - thinking
        return Parts(system, tools, max(0, rest), results, thinking)

    def _sum(self, summary: float) -> None:
        sums = [0.0] * 5
        for place in range(self._covered, len(self._now)):
            sums[self._kind[place]] += self._now[place]
            sums[_THINKING] += self._thought[place]
        sums[_MESSAGES] += summary
        self.weights[2:] = sums[2:]


def _weigh(content: list[Block]) -> tuple[float, float]:
    """Return the weight of blocks, and that of the thinking among them."""
    own = thought = 0.0
    for block in content:
        kind = block.get("type")
        if kind == "text" and isinstance(text := block.get("text"), str):
            own += estimate.weight(text)
        elif kind in ("thinking", "redacted_thinking"):
            thought += estimate.block_weight(block)
        else:
            own += estimate.block_weight(block)
    return own, thought
