"""Every event with its time, for the debug view. Bounded, and cheap while nobody looks."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from tui.core.clock import Clock
from tui.core.dataclass import dataclass
from tui.core.facts import Fact
from tui.core.redaction import mask

ENTRIES_MAX: Final = 5000
TEXT_MAX: Final = 2000
"""Characters of one value that an entry keeps."""

_DELTAS: Final = frozenset(
    {"text_delta", "thinking_delta", "tool_input_delta", "tool_output", "compaction_delta", "alive"}
)
_LOOKS: Final[Mapping[str, str]] = {
    "error": "error",
    "retry_scheduled": "warning",
    "parked": "warning",
    "model_switched": "warning",
    "repair_applied": "warning",
    "permission_asked": "accent",
    "permission_answered": "accent",
    "request_sent": "primary",
    "assistant_message": "primary",
    "tool_started": "secondary",
    "tool_finished": "secondary",
    "context_measured": "success",
    "turn_finished": "success",
}


@dataclass(slots=True)
class LogEntry:
    """One event, or all deltas of a stream. `count` and `chars` are of the deltas."""

    at: datetime
    kind: str
    values: dict[str, Any]
    count: int = 1
    chars: int = 0

    @property
    def style(self) -> str:
        """The look of its name, one of `rows.LOOKS`."""
        return _LOOKS.get(self.kind, "text")

    @property
    def line(self) -> str:
        """The event in a line: `name=value` for everything that it carries."""
        if self.kind in _DELTAS:
            which = self.values.get("name") or self.values.get("id") or ""
            pieces = f"{self.count} piece{'s' * (self.count != 1)}, {self.chars:,} characters"
            return f"{which} {pieces}".strip()
        return "  ".join(f"{name}={_shown(value)}" for name, value in self.values.items())

    @property
    def whole(self) -> str:
        """The event as indented JSON, with keys of known shapes masked."""
        fields = {"type": self.kind, "time": self.at.isoformat(), **self.values}
        if self.kind in _DELTAS:
            fields |= {"pieces": self.count, "characters": self.chars}
        return mask(json.dumps(fields, ensure_ascii=False, indent=2, default=str))[0]


class FactLog:
    """Keeps the last ENTRIES_MAX entries. Consecutive deltas of one stream are one entry."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: deque[LogEntry] = deque(maxlen=ENTRIES_MAX)
        self.version = 0

    def add(self, event: Fact) -> None:
        """Record an event."""
        self.version += 1
        kind = event.type
        if kind in _DELTAS:
            last = self._entries[-1] if self._entries else None
            length, of = len(getattr(event, "text", "")), getattr(event, "id", "")
            if last is not None and last.kind == kind and last.values.get("id", "") == of:
                last.count += 1
                last.chars += length
                return
            values: dict[str, Any] = {"id": of} if of else {}
            if name := getattr(event, "name", ""):
                values["name"] = name
        else:
            length, values = 0, {name: _cut(value) for name, value in event.to_json().items()}
            del values["type"]
        self._entries.append(LogEntry(self._clock.now(), kind, values, chars=length))

    def entries(self, words: str = "") -> list[LogEntry]:
        """Return the entries that contain all the words, the oldest first; without words, all."""
        words_sought = words.casefold().split()
        return [
            entry
            for entry in self._entries
            if all(word in f"{entry.kind} {entry.line}".casefold() for word in words_sought)
        ]


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > TEXT_MAX:
        return value[:TEXT_MAX] + f"… ({len(value):,} characters)"
    return value


def _shown(value: Any) -> str:
    """Return a value in a few words, on one line."""
    if isinstance(value, str):
        return " ".join(value[:300].split()) or '""'
    if isinstance(value, float):
        return f"{value:g}"
    if value is None:
        return "—"
    return json.dumps(value, ensure_ascii=False, default=str)[:300]
