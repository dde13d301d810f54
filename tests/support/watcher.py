"""A watcher of one session on any host: it opens it again after each cut, and sends again."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tui.app.door.lines import (
    AskedLine,
    FactLine,
    FromOwner,
    GiveAnswer,
    RecordEnd,
    RecordLines,
    RequestOutcome,
    SendPrompt,
    Settled,
    StopTurn,
    Watch,
)
from tui.core.errors import HoldfastError
from tui.desk.host import Channel, DeskHost


class Watcher:
    """Collects what a session is: its `records` by id, what was `said` since, open `questions`, the
    `outcomes` of requests. `cuts` counts how often it had to begin again."""

    def __init__(self, host: DeskHost, session: str) -> None:
        self._host = host
        self._session = session
        self.records: dict[str, str] = {}
        self.said: list[str] = []
        self.questions: dict[str, AskedLine] = {}
        self.outcomes: dict[str, RequestOutcome] = {}
        self.twice: list[str] = []
        self.cuts = 0
        self.live = asyncio.Event()
        self._requests: dict[str, SendPrompt | GiveAnswer | StopTurn] = {}
        self._channel: Channel | None = None
        self._came = asyncio.Event()
        self._task = asyncio.create_task(self._watch())

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def request(self, message: SendPrompt | GiveAnswer | StopTurn) -> None:
        """Send a request until its outcome comes."""
        self._requests[message.number] = message
        if self._channel is not None:
            self._channel.send(message)

    async def until(self, done: Any) -> None:
        """Wait until `done()`."""
        while not done():
            if self._task.done():
                self._task.result()
            self._came.clear()
            await self._came.wait()

    async def _watch(self) -> None:
        while True:
            try:
                self._channel = await self._host.open(self._session)
            except HoldfastError:
                await asyncio.sleep(0.002)
                continue
            self.questions.clear()
            self._channel.send(Watch(after=next(reversed(self.records), "")))
            for request in self._requests.values():
                self._channel.send(request)
            try:
                while (message := await self._channel.receive()) is not None:
                    self._take(message)
                    self._came.set()
            finally:
                channel, self._channel = self._channel, None
                self.live.clear()
                await channel.close()
            self.cuts += 1

    def _take(self, message: FromOwner) -> None:
        match message:
            case RecordLines(lines=lines):
                for line in lines:
                    self._add(json.loads(line)["id"], json.loads(line)["text"])
            case RecordEnd(last=last):
                assert last == next(reversed(self.records), ""), (last, [*self.records][-3:])
                self.said.clear()
                self.live.set()
            case FactLine(fact={"record": str(id_), "text": str(text)}):
                self._add(id_, text)
                self.said.clear()
            case FactLine(fact={"text": str(text)}):
                self.said.append(text)
            case AskedLine(number=number):
                self.questions[number] = message
            case Settled(number=number):
                self.questions.pop(number, None)
            case RequestOutcome(number=number):
                self.outcomes[number] = message
                self._requests.pop(number, None)
            case _:
                pass

    def _add(self, id_: str, text: str) -> None:
        if id_ in self.records:
            self.twice.append(id_)
        self.records[id_] = text
