"""Requests of the desk to a session's owner: to take an answer, or to stop. A line that is cut is
opened again, and the request sent again, which has no second effect."""

from __future__ import annotations

import asyncio
import secrets
from typing import Final, TypeAlias

import msgspec

from tui.app.door.lines import (
    AskedLine,
    Ended,
    GiveAnswer,
    LineError,
    RequestOutcome,
    Settled,
    StopTurn,
)
from tui.core.clock import Clock
from tui.core.dataclass import dataclass, field
from tui.core.errors import HoldfastError
from tui.desk.host import Channel, DeskHost, DeskRow
from tui.permissions.asked import Answered, put
from tui.ui.desk.desk_rows import quoted
from tui.ui.screens.modal_approver import ModalApprover
from tui.ui.toolkit.base_app import ThemedApp
from tui.ui.widgets.dialog import LeaveKey
from tui.ui.widgets.notices import NoticeText

Request: TypeAlias = GiveAnswer | StopTurn

TRIES: Final = 3
"""Times that a request is sent before its line counts as gone."""
AGAIN_S: Final = 1.0
"""Seconds before a line that was cut is opened again."""
PATIENCE_S: Final = 30.0
"""Seconds to wait for what an owner says to a request."""

_ELSEWHERE: Final = "Answered elsewhere, or no longer asked."
_UNANSWERED: Final = "Not answered; it still waits."
_ENDED: Final = "Its process ended, so the question is gone."
_CUT: Final = "The line to the session is cut. The question is listed again if it still waits."


@dataclass(slots=True)
class ListedQuestion:
    """A question whose dialog is open. `gone` is set once it is to close without an answer, for the
    `reason`."""

    row: DeskRow
    asked: AskedLine
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    reason: str = _ELSEWHERE

    def leave(self) -> None:
        """Close the dialog without an answer, as the person wants it."""
        self.reason = _UNANSWERED
        self.gone.set()


async def answer(
    app: ThemedApp, host: DeskHost, question: ListedQuestion, clock: Clock
) -> NoticeText:
    """Put a question to the person in the dialog that its session would show, and give its owner
    the answer. Returns what came of it, to be said. The dialog closes once nobody wants to know.

    Raises:
        HoldfastError: If the session can't be reached; nothing was answered then.
    """
    leave_key = LeaveKey(next(iter(app.own_keys["desk"]), ""), question.leave)
    where = f" on {question.row.host}" if question.row.host else ""
    asker = f"{quoted(question.row)}{where} asks:"
    approver = ModalApprover(app, leave_key=leave_key, asker=asker)
    dialog = asyncio.ensure_future(put(question.asked.asked, approver))
    settled = asyncio.ensure_future(_settled(host, question))
    gone = asyncio.ensure_future(question.gone.wait())
    tasks = (dialog, settled, gone)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not dialog.done():
            reason = settled.result() if settled.done() else question.reason
            return NoticeText(f"{quoted(question.row)}: {reason}", "warning")
        given = dialog.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return await _given(host, question, given, clock)


async def _given(
    host: DeskHost, question: ListedQuestion, given: Answered, clock: Clock
) -> NoticeText:
    name = quoted(question.row)
    data = msgspec.to_builtins(given, enc_hook=str)
    request = GiveAnswer(number=secrets.token_hex(8), to=question.asked.number, answer=data)
    outcome = await ask_owner(host, question.row.id, request, clock)
    if outcome is None:
        return NoticeText(
            f"{name} hasn't confirmed the answer.",
            "warning",
            hint="If its question is still listed, answer it again.",
        )
    if outcome.outcome == "refused":
        return NoticeText(f"{name}: {outcome.text}", "warning", hint=outcome.hint)
    return NoticeText(f"Answered: {name}.", "success")


async def _settled(host: DeskHost, question: ListedQuestion) -> str:
    """Wait until a question is no longer open, and return why."""
    channel = await host.open(question.row.id)
    try:
        while True:
            try:
                message = await channel.receive()
            except LineError:
                continue  # a later one may be understood
            match message:
                case None:
                    return _CUT
                case Settled(number) if number == question.asked.number:
                    return _ELSEWHERE
                case Ended():
                    return _ENDED
                case _:
                    pass
    finally:
        await channel.close()


async def ask_owner(
    host: DeskHost, session: str, request: Request, clock: Clock
) -> RequestOutcome | None:
    """Send a request to the owner of a session, and return what came of it; None if nobody said.

    Raises:
        HoldfastError: If the session can't be reached at all.
    """
    for attempt in range(TRIES):
        if attempt:
            await clock.sleep(AGAIN_S)
        try:
            channel = await host.open(session)
        except HoldfastError:
            if not attempt:
                raise
            continue
        channel.send(request)
        waiting = asyncio.ensure_future(_outcome(channel, request.number))
        patience = asyncio.ensure_future(clock.sleep(PATIENCE_S))
        try:
            await asyncio.wait((waiting, patience), return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                return None
            if outcome := waiting.result():
                return outcome
        finally:
            waiting.cancel()
            patience.cancel()
            await channel.close()
    return None


async def _outcome(channel: Channel, number: str) -> RequestOutcome | None:
    """Return the answer to a request; None once the line is cut."""
    while True:
        try:
            message = await channel.receive()
        except LineError:
            continue
        match message:
            case None:
                return None
            case RequestOutcome() if message.number == number:
                return message
            case _:
                pass
