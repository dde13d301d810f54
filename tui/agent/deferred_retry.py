"""Parking: a server that wants to see the request much later is asked then (R15)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tui.agent.events import Event, Parked
from tui.agent.recorder import Recorder
from tui.core.clock import Clock, timestamp
from tui.core.errors import ProviderError
from tui.provider.retry import RetryControl, duration
from tui.session.records import Record

_TURNS = frozenset({"user", "assistant", "tool_result", "interrupt", "error", "parked"})


def parked_in(records: Sequence[Record]) -> Parked | None:
    """Where a session stands parked: nothing that belongs to a turn followed."""
    last = next((record for record in reversed(records) if record.type in _TURNS), None)
    if last is None or last.type != "parked" or moment_of(last.data.get("until")) is None:
        return None
    data = last.data
    status = data.get("status")
    return Parked(
        str(data["until"]),
        str(data.get("reason") or ""),
        str(data.get("error_class") or "rate_limit"),
        status if isinstance(status, int) else None,
    )


def moment_of(text: object) -> datetime | None:
    """A moment as it stands in a record; None where it is none."""
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return moment if moment is None or moment.tzinfo else None


def _whole(moment: datetime) -> datetime:
    """A moment as a record can hold it, no sooner: in whole milliseconds."""
    return moment + timedelta(microseconds=-moment.microsecond % 1000)


@dataclass(slots=True)
class Parking:
    """Waits for a server's limits on behalf of one agent.

    `max_wait_s` bounds what one turn waits altogether, None is no bound. `waiting` is true while
    it waits, and stays so when that is cancelled.
    """

    recorder: Recorder
    clock: Clock
    control: RetryControl
    publish: Callable[[Event], None]
    max_wait_s: float | None = None
    waiting: bool = False
    _waited: float = 0.0

    def begin(self) -> None:
        """A turn begins: it has not waited yet."""
        self._waited, self.waiting = 0.0, False

    async def park(self, error: ProviderError, said: str) -> bool:
        """Wait until the server wants to see the request; it is kept in the record meanwhile.

        `said` is what had been streamed. False where the wait is longer than allowed.
        """
        if error.park_until is None:
            return False
        until = _whole(error.park_until)
        seconds = (until - self.clock.now()).total_seconds()
        if self.max_wait_s is not None and self._waited + seconds > self.max_wait_s:
            error.hint = (
                f"It can be tried again in {duration(max(0.0, seconds))}: wait for it with a "
                "larger --max-wait."
            )
            return False
        told = Parked(timestamp(until), error.message, error.error_class, error.status)
        self.recorder.append(
            "parked",
            until=told.until,
            reason=told.reason,
            error_class=told.error_class,
            status=told.status,
            request_id=error.request_id,
            received=error.received,
            text=said,
        )
        await self.recorder.show(told)
        await self._wait(until)
        return True

    async def resume(self) -> None:
        """Wait for what is left of the time that a parked session was parked for."""
        told = parked_in(self.recorder.session.records)
        until = moment_of(told.until) if told else None
        if told and until and until > self.clock.now():
            self.publish(told)
            await self._wait(until)

    async def _wait(self, until: datetime) -> None:
        began = self.clock.monotonic()
        self.waiting = True
        try:
            await self.control.wait_until(self.clock, until)
        finally:
            self._waited += self.clock.monotonic() - began
        self.waiting = False
