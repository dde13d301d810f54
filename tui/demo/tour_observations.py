"""What the tour notices of a step: what happened since it began, and where the person is. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from tui.agent import events
from tui.agent.events import Event
from tui.session.records import Record

CHAT, BUSY, OUTPUT, WHOLE = "chat", "busy", "output", "whole"
"""The conversation while nothing runs and while something does; the output over it, in a narrow
terminal, and over the whole screen. Every other place is the name of a screen's class."""

APPROVAL, CONTEXT, WAYS, PICK = "ApprovalModal", "ContextScreen", "ChoiceDialog", "PickScreen"
SESSIONS, REPAIR, DEBUG = "SessionsScreen", "RepairScreen", "DebugLogScreen"

E = TypeVar("E")

_SMALL: Final = (
    events.TextDelta,
    events.ThinkingDelta,
    events.ToolInputDelta,
    events.ToolOutputChunk,
    events.CompactionDelta,
    events.Alive,
)
"""Many, and nothing that a step waits for."""


@dataclass(slots=True)
class Observations:
    """What happened since a step began."""

    at: str = CHAT
    """The place where the person is."""
    narrow: bool = False
    """The output covers the conversation when it is shown."""
    records: Sequence[Record] = ()
    """The records of the session that is open."""
    been: set[str] = field(default_factory=set[str])
    """The places where the person has been."""
    _heard: list[Event] = field(default_factory=list[Event])

    def hear(self, event: Event) -> None:
        if not isinstance(event, _SMALL):
            self._heard.append(event)

    def all(self, kind: type[E]) -> list[E]:
        """The events of a kind, in order."""
        return [event for event in self._heard if isinstance(event, kind)]

    def has(self, kind: type[Event], *, after: type[Event] | None = None) -> bool:
        """Whether an event of a kind was heard; with `after`, since the first one of that."""
        heard = self._heard
        if after is not None:
            first = next((n for n, event in enumerate(heard) if isinstance(event, after)), None)
            heard = [] if first is None else heard[first + 1 :]
        return any(isinstance(event, kind) for event in heard)

    @property
    def back(self) -> bool:
        """Whether the conversation is shown and nothing runs."""
        return self.at == CHAT

    @property
    def prompts(self) -> int:
        """How many prompts the session holds."""
        return sum(record.type == "user" for record in self.records)

    @property
    def cut(self) -> dict[str, object] | None:
        """The receipt of the first output that was cut."""
        finished = self.all(events.ToolFinished)
        return next((event.receipt for event in finished if event.receipt), None)

    @property
    def views(self) -> list[str]:
        """What results were changed to in the context, in order: masked, full and so on."""
        changed = self.all(events.ContextChanged)
        return [str(one.get("view", "")) for event in changed for one in event.changes]
