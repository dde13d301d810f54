"""The view of a session on another machine that checks what it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from tui.app.door.lines import AskedLine, Ended, Hello, OwnerNotice, SessionStatus, UnsentLine
from tui.core import facts
from tui.core.clock import SystemClock
from tui.core.facts import Fact
from tui.desk.host import DeskHost
from tui.desk.watched_session import WatchedSession
from tui.session.records import Record


class SessionRecorder:
    """Watches a session over all cuts, as the screen does.

    `records` are those of the last time that it had caught up, which has been `times` times;
    `faults` says what was not as it has to be: an answer that isn't what its parts were. Of the
    `answers` that came live, `checked` came with all their parts.
    """

    def __init__(self, host: DeskHost, session: str) -> None:
        self.watched = WatchedSession(host, session, self, SystemClock())
        self.records: list[Record] = []
        self.faults: list[str] = []
        self.hello = Hello()
        self.times = self.answers = self.checked = self.cuts = 0
        self._answer = ""
        self._came = asyncio.Event()
        self._task = asyncio.create_task(self.watched.run())

    @property
    def questions(self) -> dict[str, AskedLine]:
        return self.watched.questions

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def until(self, true: Callable[[], object], seconds: float = 60) -> None:
        """Wait until something is so, which a message makes so."""
        async with asyncio.timeout(seconds):
            while not true():
                if self._task.done():
                    self._task.result()
                self._came.clear()
                await self._came.wait()

    # What the session tells

    def greet(self, hello: Hello) -> None:
        self.hello = hello
        self._came.set()

    async def restore(self, records: Sequence[Record], damaged: int) -> None:
        self.records = [*records]
        self.times += 1
        self._answer = ""
        if damaged:
            self.faults.append(f"{damaged} lines of its file can't be read")
        self._came.set()

    def show(self, fact: Fact) -> None:
        match fact:
            case facts.RequestSent():
                self._answer = ""
            case facts.TextDelta(text):
                self._answer += text
            case facts.AssistantMessage(text=text):
                self.answers += 1
                self.checked += bool(self._answer)
                if self._answer != text:
                    self.faults.append(f"an answer came as {self._answer!r}, and is {text!r}")
                self._answer = ""
            case _:
                pass
        self._came.set()

    def asked(self, line: AskedLine) -> None:
        self._came.set()

    def settle(self, number: str, why: str) -> None:
        self._came.set()

    def state_changed(self, status: SessionStatus) -> None:
        self._came.set()

    def say(self, notice: OwnerNotice) -> None:
        if notice.level in {"warning", "error"}:
            self.faults.append(notice.text)

    def restore_unsent(self, work: UnsentLine) -> None:
        """Do nothing: the trial's sessions end by themselves."""

    def line_cut(self, reason: str, again_at: float) -> None:
        self.cuts += 1
        self._came.set()

    def line_back(self) -> None:
        self._came.set()

    def ended(self, line: Ended) -> None:
        self._came.set()
