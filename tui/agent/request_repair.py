"""The repair ladder in a session: which rung is in force, and which are left to offer (R12, R13).

A rung is put into the record by a `repair` record. `strict` and `drop_thinking` hold for
everything from then on, as they leave calls and results whole. `text_only` and `summary_only`
concern what stands before their record: what is said after it is sent as it is.

Beside the ladder stands the break: all thinking so far is left out for good, the thinking of later
answers is sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tui.agent.recorder import Recorder
from tui.agent.request_builder import Preparing
from tui.context.binding import BREAK, has_thinking
from tui.context.level_view import WHOLE, level_of
from tui.context.repair_levels import REPAIR_LEVELS, RepairLevel, apply_level
from tui.core.errors import ProviderError
from tui.provider.base import ModelInfo, Request
from tui.session.records import Finding, Record
from tui.tokens.estimate import json_weight

_TURNS = frozenset({"user", "assistant", "tool_result", "interrupt", "error", "parked"})


def offers(records: Sequence[Record]) -> tuple[RepairLevel, ...]:
    """The rungs that are left where the server refused the last request as not valid, else none.

    A rung that was tried and refused is never offered again. One that concerns what stood before
    it is, once an answer came between: what is refused now came later.
    """
    last = next((record for record in reversed(records) if record.type in _TURNS), None)
    if last is None or last.type != "error" or last.data.get("error_class") != "invalid_request":
        return ()
    tried = -1
    for record in records:
        rung = level_of(record)
        if rung is not None:
            tried = max(tried, REPAIR_LEVELS.index(rung))
        elif record.type == "assistant" and tried >= 0 and REPAIR_LEVELS[tried] not in WHOLE:
            tried = max(
                (REPAIR_LEVELS.index(r) for r in map(level_of, records) if r in WHOLE), default=-1
            )
    return REPAIR_LEVELS[tried + 1 :]


@dataclass(frozen=True, slots=True)
class Repairing:
    """Puts rungs into the record of one agent."""

    preparing: Preparing
    recorder: Recorder

    def offers(self) -> tuple[RepairLevel, ...]:
        """See `offers`."""
        return offers(self.recorder.session.records)

    def shrinks(self, rung: RepairLevel) -> bool:
        """Whether less would be sent on a rung than now."""
        seen = self.preparing.look().messages
        there, _ = apply_level(seen, rung)
        return json_weight(there) < json_weight(seen)

    def climb(self, rung: RepairLevel, *, by: str = "person") -> tuple[Finding, ...]:
        """Go up to a rung from the next request on. Returns what that does."""
        seen = self.preparing.look()
        _, findings = apply_level(seen.messages, rung)
        said = [finding.to_json() for finding in findings]
        self.recorder.append("repair", rung=rung, findings=said, by=by)
        self.preparing.look()
        return findings

    def request(self) -> Request:
        """The request to send now. Where what stood before thinking changed, that is left out."""
        made, holds = self.preparing.ask()
        if not holds:
            self._leave_out_thinking()
            made, _ = self.preparing.ask()
        return made

    def adapt(self, asked: Request, model: ModelInfo) -> Request | None:
        """The same for another model (`tui.provider.failover.Adapt`)."""
        made, holds = self.preparing.adapt(asked, model)
        if not holds:
            self._leave_out_thinking()
            made, _ = self.preparing.adapt(asked, model)
        return made

    def without_thinking(self, error: ProviderError, sent: Request) -> bool:
        """Leave all thinking out of the next request, where the server refused it in this one."""
        content = (message["content"] for message in sent.messages)
        if not error.thinking_refused or not any(map(has_thinking, content)):
            return False
        self.recorder.append(
            BREAK, reason="refused", by="server", message=error.message, request_id=error.request_id
        )
        return True

    def _leave_out_thinking(self) -> None:
        self.recorder.append(BREAK, reason="changed", by="program")
