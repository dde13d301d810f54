"""An open session for the tests of its door: a real agent on a scripted model, and a watcher that
speaks the lines."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from tests.support.agents import make_agent
from tests.support.clock import PATIENCE_S
from tests.support.provider import ScriptedProvider
from tests.support.world import World
from tui.agent.agent import Agent
from tui.app.api import HeadlessConversation, HeadlessFrontend, open_session
from tui.app.door.lines import (
    AskedLine,
    FactLine,
    FromOwner,
    GiveAnswer,
    RecordEnd,
    RequestOutcome,
    SendPrompt,
    SessionStatus,
    StopTurn,
    ToOwner,
    Watch,
    from_owner,
    line_of,
)
from tui.app.door.sockets import folder_of
from tui.app.services import SessionChoice
from tui.core.facts import Told
from tui.core.facts.lines import fact_of
from tui.core.paths import Folders
from tui.core.questions import PlanReview, UserAnswers, UserQuestion
from tui.desk import sockets
from tui.permissions.types import Answer, Approver, Call, Decision
from tui.session.session import Session

T = TypeVar("T")


class Patient:
    """An approver whose person never comes. `asked` counts the questions, `withdrawn` those that
    were taken back."""

    def __init__(self) -> None:
        self.asked = self.withdrawn = 0
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        """The person's answer to a call, after all."""

    async def ask(self, call: Call, decision: Decision) -> Answer:
        return await self._wait()

    async def ask_user(self, questions: Sequence[UserQuestion], agent: str) -> UserAnswers:
        await self._wait()
        return UserAnswers()

    async def review_plan(self, title: str, plan: str) -> PlanReview:
        await self._wait()
        return PlanReview("none", plan)

    async def _wait(self) -> Answer:
        self.asked += 1
        try:
            return await asyncio.shield(self.answer)
        except asyncio.CancelledError:
            self.withdrawn += 1
            raise


class Watcher:
    """A watcher of a session, by its socket. `lines` are all messages that came."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.lines: list[FromOwner] = []
        self._number = 0

    def send(self, message: ToOwner) -> None:
        self.writer.write(line_of(message))

    async def receive(self) -> FromOwner | None:
        async with asyncio.timeout(PATIENCE_S):
            line = await self.reader.readline()
        if not line:
            return None
        self.lines.append(from_owner(line))
        return self.lines[-1]

    async def until(self, kind: type[T], fits: Callable[[T], object] = lambda _: True) -> T:
        """The next message of a kind that fits."""
        while (message := await self.receive()) is not None:
            if isinstance(message, kind) and fits(message):
                return message
        raise AssertionError(f"no {kind.__name__} came: {self.lines}")

    async def until_fact(self, kind: type[T], fits: Callable[[T], object] = lambda _: True) -> T:
        """The next fact of a kind that fits."""
        while True:
            fact: Any = fact_of((await self.until(FactLine)).fact)
            if isinstance(fact, kind) and fits(fact):
                return fact

    async def watch(self) -> str:
        """Begin to watch the conversation; returns the last record that the file has of it."""
        self.send(Watch())
        return (await self.until(RecordEnd)).last

    async def ask(self, make: type[SendPrompt | GiveAnswer | StopTurn], **more: Any) -> Any:
        """Send a request, and return its outcome."""
        self._number += 1
        number = f"{id(self)}-{self._number}"
        self.send(make(number=number, **more))
        return await self.until(RequestOutcome, lambda one: one.number == number)

    async def state(self, state: str) -> SessionStatus:
        """The next status with a state."""
        return await self.until(SessionStatus, lambda one: one.state == state)

    async def question(self) -> AskedLine:
        return await self.until(AskedLine)

    @property
    def facts(self) -> list[Told]:
        return [fact_of(one.fact) for one in self.lines if isinstance(one, FactLine)]

    def close(self) -> None:
        self.writer.close()


def connected(home: Folders, session: str) -> socket.socket:
    """A connection to the owner of a session. Raises OSError where there is none."""
    folder = folder_of(home)
    opened = sockets.open_private(folder)
    try:
        return sockets.connected(folder, opened, f"{session}.sock")
    finally:
        os.close(opened)


async def watcher(home: Folders, session: str) -> Watcher:
    return Watcher(
        *await asyncio.open_unix_connection(sock=connected(home, session), limit=100_000_000)
    )


class OwnedSession:
    """A conversation with an open session, and its home."""

    def __init__(self, conversation: HeadlessConversation, home: Folders) -> None:
        self.conversation, self.home = conversation, home
        self._watchers: list[Watcher] = []

    @property
    def agent(self) -> Agent:
        assert self.conversation.agent is not None
        return self.conversation.agent

    @property
    def id(self) -> str:
        return self.agent.session.id

    async def watcher(self) -> Watcher:
        """Somebody who has connected and been greeted."""
        one = await watcher(self.home, self.id)
        self._watchers.append(one)
        await one.until(SessionStatus)
        return one

    def leave(self) -> None:
        for one in self._watchers:
            one.close()


@asynccontextmanager
async def owned(
    folder: Path,
    *answers: Any,
    provider: ScriptedProvider | None = None,
    approver: Approver | None = None,
    in_memory: bool = False,
    **fields: Any,
) -> AsyncGenerator[OwnedSession]:
    """A session with a model that gives these answers, open until the block ends."""
    model, world = provider or ScriptedProvider(*answers), World(folder)
    services = world.services()
    root = services.workspace

    async def made(_: SessionChoice, asked: Approver) -> Agent:
        clock = services.clock
        session = (
            Session.in_memory(root, clock=clock)
            if in_memory
            else Session.create(root, folders=services.folders, clock=clock)
        )
        return make_agent(root, model, approver=asked, session=session, clock=clock, **fields)

    services = replace(services, make_agent=made)
    conversation = HeadlessFrontend(services, approver).conversation
    await open_session(conversation, SessionChoice())
    one = OwnedSession(conversation, services.folders)
    try:
        yield one
    finally:
        one.leave()
        await conversation.close()
