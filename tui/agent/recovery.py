"""The step between a failed request and the next one: repair, or wait.

The repair ladder: a level is put into the record by a `repair` record. `strict` and `drop_thinking`
hold for everything from then on, as they leave calls and results whole. `text_only` and
`summary_only` concern what comes before their record: what comes after it is sent as it is.

Beside the ladder there is the break: all thinking so far is left out for good, the thinking of
later answers is sent again.

A server that wants to see the request much later is asked then: the session is parked. Requests
that are too large have a ladder of their own, see `tui.agent.overflow_recovery`.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from tui.agent.agent_context import AgentContext
from tui.agent.interrupted_work import parked_in
from tui.agent.request.form import refuse_blocks
from tui.agent.request.state import RequestState
from tui.agent.request.view import prepare
from tui.context.compaction_block import COMPACTION, begins_with_block
from tui.context.level_view import WHOLE, level_of
from tui.context.repair_levels import REPAIR_LEVELS, RepairLevel, apply_level
from tui.context.request_trail import has_thinking
from tui.core.clock import timestamp
from tui.core.dataclass import dataclass
from tui.core.errors import ProviderError
from tui.core.facts import Parked, RepairApplied, ThinkingBroken
from tui.core.formatting import moment_of, wait_time
from tui.provider.base import Request
from tui.session.records import last_of_turn
from tui.tokens.estimate import json_weight


@dataclass(frozen=True, slots=True)
class RequestRepair:
    """Puts levels and breaks into the record of one agent."""

    ctx: AgentContext
    requests: RequestState

    def offers(self) -> tuple[RepairLevel, ...]:
        """The levels that are left where the server refused the last request as not valid, else
        none.

        A level that was tried and refused is never offered again. One that concerns what stood
        before it is, once an answer came between: what is refused now came later.
        """
        records = self.ctx.records
        last = last_of_turn(records)
        error = last.data.get("error_class") if last and last.type == "error" else None
        if error != "invalid_request":
            return ()
        tried = -1
        for record in records:
            level = level_of(record)
            if level is not None:
                tried = max(tried, REPAIR_LEVELS.index(level))
            elif record.type == "assistant" and tried >= 0 and REPAIR_LEVELS[tried] not in WHOLE:
                whole = [r for r in map(level_of, records) if r in WHOLE]
                tried = max(map(REPAIR_LEVELS.index, whole), default=-1)
        return REPAIR_LEVELS[tried + 1 :]

    def shrinks(self, level: RepairLevel) -> bool:
        """True if less would be sent on a level than now."""
        messages = prepare(self.requests).view.messages
        fewer, _ = apply_level(messages, level)
        return json_weight(fewer) < json_weight(messages)

    def climb(self, level: RepairLevel, *, by: str = "person") -> RepairApplied:
        """Go up to a level from the next request on. Returns what that does."""
        _, findings = apply_level(prepare(self.requests).view.messages, level)
        applied = RepairApplied(tuple(one.to_json() for one in findings), level, by)
        self.ctx.recorder.write(applied)
        prepare(self.requests)
        return applied

    def without_thinking(self, error: ProviderError, sent: Request) -> bool:
        """Leave all thinking out of the next request, where the server refused it in this one."""
        content = (message["content"] for message in sent.messages)
        if not error.thinking_refused or not any(map(has_thinking, content)):
            return False
        self.ctx.record(ThinkingBroken("refused", "server", error.message, error.request_id))
        return True

    def without_block(self, error: ProviderError, sent: Request) -> bool:
        """Say the summary as text from now on, where the server refused its own block of it."""
        block = bool(sent.messages) and begins_with_block(sent.messages[0])
        refused = error.error_class == "invalid_request" and COMPACTION in error.message
        if not block or not refused:
            return False
        refuse_blocks(self.requests, error.message)
        return True


def _whole(moment: datetime) -> datetime:
    """A moment as a record can hold it, no sooner: in whole milliseconds."""
    return moment + timedelta(microseconds=-moment.microsecond % 1000)


@dataclass(slots=True)
class DeferredRetry:
    """Parks one agent's session while a server wants to see the request much later.

    `waiting` is true while it waits, and stays so when that is cancelled.
    """

    ctx: AgentContext
    waiting: bool = False
    _waited: float = 0.0

    def begin(self) -> None:
        """A turn begins: it has not waited yet."""
        self._waited, self.waiting = 0.0, False

    async def park(self, error: ProviderError, streamed: str) -> bool:
        """Wait until the server wants to see the request; it is kept in the record meanwhile.

        `streamed` is what had come of the answer. False where the wait is longer than allowed.
        """
        if error.park_until is None:
            return False
        until = _whole(error.park_until)
        seconds = (until - self.ctx.clock.now()).total_seconds()
        if (
            self.ctx.link.max_wait_s is not None
            and self._waited + seconds > self.ctx.link.max_wait_s
        ):
            error.hint = (
                f"The server is available again in {wait_time(max(0.0, seconds))}: wait with a "
                "larger --max-wait."
            )
            return False
        of_error = error.error_class, error.status, error.request_id, error.received
        parked = Parked(timestamp(until), error.message, *of_error, streamed)
        await self.ctx.recorder.record_synced(parked)
        await self._wait(until)
        return True

    async def resume(self) -> None:
        """Wait for what is left of the time that a parked session was parked for."""
        parked = parked_in(self.ctx.records)
        until = moment_of(parked.until) if parked else None
        if parked and until and until > self.ctx.clock.now():
            self.ctx.publish(parked)
            await self._wait(until)

    async def _wait(self, until: datetime) -> None:
        began = self.ctx.clock.monotonic()
        self.waiting = True
        try:
            await self.ctx.link.control.wait_until(self.ctx.clock, until)
        finally:
            self._waited += self.ctx.clock.monotonic() - began
        self.waiting = False
