"""An answer in pieces, as events of the Messages API's stream: our deltas have no blocks of their
own, so where one of another kind comes, a block ends and the next begins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

from tui.cli.claude_stream import tool_names
from tui.core import facts
from tui.core.dataclass import dataclass, field
from tui.core.messages import is_object

Event: TypeAlias = dict[str, Any]
Delta: TypeAlias = facts.ThinkingDelta | facts.TextDelta | facts.ToolInputDelta


@dataclass(slots=True)
class PartialAnswer:
    """Makes the events of one answer. A call's input comes whole, at its end: its fields have other
    names there."""

    model: str = ""
    root: Path = Path()
    id: str = field(default_factory=lambda: f"msg_{uuid4().hex[:24]}")
    _begun: bool = False
    _index: int = -1
    _kind: str = ""
    _open: bool = False
    _tool: str = ""
    _text: list[str] = field(default_factory=list[str])
    """The pieces of the open block so far."""

    @property
    def text(self) -> str:
        """The text that came of the block that is open; "" for any other block."""
        return "".join(self._text) if self._open and self._kind == "text" else ""

    def delta(self, fact: Delta) -> list[Event]:
        """The events of one piece."""
        if isinstance(fact, facts.ToolInputDelta):
            kind = f"tool_use {fact.id}"
            name = tool_names.name_of(fact.name, {"edits": [{}]})
            block: Event = {"type": "tool_use", "id": fact.id, "name": name, "input": {}}
            events = self._block(kind, block)
            self._tool = fact.name
            self._text.append(fact.text)
            return events
        if isinstance(fact, facts.ThinkingDelta):
            block = {"type": "thinking", "thinking": "", "signature": ""}
            delta = {"type": "thinking_delta", "thinking": fact.text}
            return [*self._block("thinking", block), self._piece(delta)]
        delta = {"type": "text_delta", "text": fact.text}
        events = self._block("text", {"type": "text", "text": ""})
        self._text.append(fact.text)
        return [*events, self._piece(delta)]

    def _block(self, kind: str, block: Event) -> list[Event]:
        """The events until a block of this kind is open."""
        if self._open and self._kind == kind:
            return []
        events = [*self._start(), *self._stop()]
        self._index, self._kind, self._open = self._index + 1, kind, True
        self._text.clear()
        begun = {"type": "content_block_start", "index": self._index, "content_block": block}
        return [*events, begun]

    def _piece(self, delta: Event) -> Event:
        return {"type": "content_block_delta", "index": self._index, "delta": delta}

    def _start(self) -> list[Event]:
        if self._begun:
            return []
        self._begun = True
        message: Event = {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }
        return [{"type": "message_start", "message": message}]

    def _stop(self) -> list[Event]:
        if not self._open:
            return []
        whole = self._input() if self._kind.startswith("tool_use") else []
        self._open = False
        return [*whole, {"type": "content_block_stop", "index": self._index}]

    def _input(self) -> list[Event]:
        """The input of a call, in one piece; none where it isn't whole."""
        try:
            given: object = json.loads("".join(self._text) or "{}")
        except (ValueError, RecursionError):
            return []
        if not is_object(given):
            return []
        _, shown = tool_names.shown(self._tool, given, self.root)
        return [self._piece({"type": "input_json_delta", "partial_json": json.dumps(shown)})]

    def blocks_end(self, answer: facts.AssistantMessage) -> list[Event]:
        """The end of the blocks, once the answer is complete. One that came whole has none."""
        self.id = answer.message_id or self.id
        return self._stop()

    def message_end(self, answer: facts.AssistantMessage) -> list[Event]:
        """The end of the message."""
        if not self._begun:
            return []
        delta = {"stop_reason": answer.stop_reason, "stop_sequence": None}
        usage = answer.usage.to_json()
        return [
            {"type": "message_delta", "delta": delta, "usage": usage},
            {"type": "message_stop"},
        ]

    def broken_off(self) -> list[Event]:
        """The end of an answer that was interrupted."""
        if not self._begun:
            return []
        delta = {"stop_reason": None, "stop_sequence": None}
        self._begun = False
        return [
            *self._stop(),
            {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 0}},
            {"type": "message_stop"},
        ]
