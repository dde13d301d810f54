"""A call without a result yet."""

from __future__ import annotations

from dataclasses import dataclass, field

from tui.core.messages import Block, ToolOutput

PARTIAL_CHARS = 2000
"""How much of an interrupted call's output its record keeps."""


@dataclass(slots=True)
class OpenCall:
    """A call without a result yet, when it began, and the end of what it printed."""

    call: Block
    started: float | None = None
    left: ToolOutput | None = None
    _heard: list[str] = field(default_factory=list[str])
    _chars: int = 0

    @property
    def id(self) -> str:
        return str(self.call["id"])

    @property
    def name(self) -> str:
        return str(self.call.get("name"))

    def leave(self, output: ToolOutput) -> None:
        self.left = output

    def hear(self, text: str) -> None:
        self._heard.append(text[-PARTIAL_CHARS:])
        self._chars += len(self._heard[-1])
        while self._chars - len(self._heard[0]) >= PARTIAL_CHARS:
            self._chars -= len(self._heard.pop(0))

    def partial(self) -> str:
        return "".join(self._heard)[-PARTIAL_CHARS:]
