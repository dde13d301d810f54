"""A watcher of a real session on another machine, which checks what it is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from tui.app.door.lines import (
    AskedLine,
    FactLine,
    FromOwner,
    GiveAnswer,
    Hello,
    RecordEnd,
    RecordLines,
    RequestOutcome,
    SendPrompt,
    Settled,
    StopTurn,
    Watch,
)
from tui.core.errors import HoldfastError
from tui.desk.far_host import FarHost
from tui.desk.host import Channel

Request = SendPrompt | GiveAnswer | StopTurn


class Following:
    """Follows a session over all cuts. `lines` are those of its record, `faults` says what was not
    as it has to be: an answer that isn't what its parts were, a record that has a hole."""

    def __init__(self, host: FarHost, session: str) -> None:
        self.host = host
        self.session = session
        self.lines: list[str] = []
        self.questions: dict[str, AskedLine] = {}
        self.outcomes: dict[str, RequestOutcome] = {}
        self.faults: list[str] = []
        self.hello = Hello()
        self.times = 0
        """How often it has caught up with the session."""
        self.answers = self.checked = 0
        self._answer = ""
        self._whole = False
        self._requests: dict[str, Request] = {}
        self._channel: Channel | None = None
        self._came = asyncio.Event()
        self._task = asyncio.create_task(self._follow())

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def until(self, done: Callable[[], object], seconds: float = 120) -> None:
        async with asyncio.timeout(seconds):
            while not done():
                if self._task.done():
                    self._task.result()
                self._came.clear()
                await self._came.wait()

    def request(self, message: Request) -> None:
        """Send a request to the session's process until its outcome comes; to nobody else, for a
        prompt would start another one."""
        self._requests[message.number] = message
        if self.hello.pid:
            self._send(message)

    def _send(self, message: Request) -> None:
        if self._channel is not None:
            self._channel.send(message)

    @property
    def last(self) -> str:
        return str(json.loads(self.lines[-1])["id"]) if self.lines[1:] else ""

    async def _follow(self) -> None:
        while True:
            try:
                self._channel = await self.host.open(self.session)
            except HoldfastError:
                await asyncio.sleep(0.05)
                continue
            self.questions.clear()
            self._channel.send(Watch(after=self.last))
            try:
                while (message := await self._channel.receive()) is not None:
                    self._take(message)
                    self._came.set()
            finally:
                channel, self._channel = self._channel, None
                await channel.close()

    def _take(self, message: FromOwner) -> None:
        match message:
            case Hello():
                self.hello = message
                for request in self._requests.values() if message.pid else ():
                    self._send(request)
            case RecordLines(lines=lines, afresh=afresh):
                self.lines = [*lines] if afresh else [*self.lines, *lines]
            case RecordEnd(last=last):
                if last != self.last:
                    self.faults.append(f"the record ends at {last}, this one at {self.last}")
                self.times += 1
                self._answer, self._whole = "", True
            case FactLine(fact=fact):
                self._see(fact)
            case AskedLine(number=number):
                self.questions[number] = message
            case Settled(number=number):
                self.questions.pop(number, None)
            case RequestOutcome(number=number):
                self.outcomes[number] = message
                self._requests.pop(number, None)
            case _:
                pass

    def _see(self, fact: dict[str, Any]) -> None:
        match fact.get("type"):
            case "request_sent":
                self._answer = ""
            case "text_delta":
                self._answer += fact["text"]
            case "assistant_message":
                self.answers += 1
                self.checked += bool(self._answer)
                if self._answer != fact["text"]:
                    said, whole = self._answer, fact["text"]
                    self.faults.append(f"an answer came as {said!r}, and is {whole!r}")
                self._answer = ""
            case _:
                pass
