"""How full the context is: what the server measured, plus an estimate of what came since.

Incremental: one new record costs its own size, whatever the length of the session.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tui import tokens
from tui.messages import Block, Usage, blocks_of
from tui.session.records import Record

Part: TypeAlias = Literal["system", "tools", "messages", "results"]


@dataclass(frozen=True, slots=True)
class Measure:
    """Tokens of the next request, less the prompt. `parts` are estimates and need not add up."""

    tokens: int
    measured: int
    estimated: int
    parts: dict[str, int]


@dataclass(slots=True)
class Meter:
    """Counts the next request as the record grows.

    `measured` is what the context held after the last answer, by the server's own count; until
    there is one, everything is estimated.
    """

    parts: dict[Part, int] = field(
        default_factory=lambda: {"system": 0, "tools": 0, "messages": 0, "results": 0}
    )
    measured: int = 0
    since: int = 0

    def fixed(self, system: list[Block], tools: list[dict[str, Any]]) -> None:
        """Set what every request carries."""
        self.parts["system"] = sum(tokens.estimate_block(block) for block in system)
        self.parts["tools"] = sum(tokens.estimate_json(tool) for tool in tools)

    def add(self, record: Record) -> None:
        """Count a record that the next request will carry; others cost nothing.

        An answer with usage is a measurement: it replaces every estimate so far.
        """
        if record.type not in {"user", "assistant", "tool_result", "interrupt"}:
            return
        said = "text" if record.type == "interrupt" else "content"
        size = tokens.estimate_content(blocks_of(record.data.get(said)))
        self.parts["results" if record.type == "tool_result" else "messages"] += size
        usage = Usage.from_json(record.data.get("usage"))
        if record.type == "assistant" and usage.prompt_tokens:
            self.measured, self.since = usage.total, 0
        else:
            self.since += size

    @property
    def tokens(self) -> int:
        return self.measure().tokens

    def measure(self) -> Measure:
        """The figures for the screen."""
        parts = {str(name): size for name, size in self.parts.items()}
        if self.measured:
            return Measure(self.measured + self.since, self.measured, self.since, parts)
        total = sum(parts.values())
        return Measure(total, 0, total, parts)
