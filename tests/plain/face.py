"""A terminal port without a terminal: what is typed stands in a script, what is said in a list."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from tests.support.clock import PATIENCE_S
from tests.support.world import World
from tui.app.conversation import Conversation
from tui.app.open_session import open_first
from tui.app.services import SessionChoice
from tui.plain.frontend import PlainFrontend
from tui.plain.input_loop import converse, leave
from tui.plain.terminal import Listener
from tui.plain.views import view

if TYPE_CHECKING:
    from tui.plain.terminal import Terminal


@dataclass
class FakeFace:
    """Stands for a `Terminal`. `prompts` and `answers` are given in their order; without one the
    prompt waits for ever, and a question fails the test. `asked` are the questions that were put.
    """

    prompts: deque[str | None] = field(default_factory=deque[str | None])
    answers: deque[str | None] = field(default_factory=deque[str | None])
    said: list[str] = field(default_factory=list[str])
    asked: list[str] = field(default_factory=list[str])
    began_with: list[str] = field(default_factory=list[str])
    bells: int = 0
    copied: list[str] = field(default_factory=list[str])
    unsent: str = ""
    gone: bool = False
    ended: bool = False
    ended_by: int = 0
    listener: Listener = field(init=False)

    @property
    def text(self) -> str:
        return "\n".join(self.said)

    def say(self, *lines: str) -> None:
        self.said.extend(lines)

    async def prompt(self, text: str = "") -> str | None:
        self.began_with.append(text)
        while not self.prompts:  # noqa: ASYNC110 - a test appends to it
            await asyncio.sleep(0)
        return self.prompts.popleft()

    async def answer(self, question: str, *, hidden: bool = False) -> str | None:
        self.asked.append(question)
        assert self.answers, f"nobody answers {question!r} after:\n{self.text}"
        return self.answers.popleft()

    def listen(self, listener: Listener) -> None:
        self.listener = listener

    def begun(self) -> str:
        return self.unsent

    def copy(self, text: str) -> None:
        self.copied.append(text)

    def bell(self) -> None:
        self.bells += 1


async def until(done: Callable[[], object]) -> None:
    """Let things go on until something is true."""
    async with asyncio.timeout(PATIENCE_S):
        while not done():  # noqa: ASYNC110 - it may be anything
            await asyncio.sleep(0.001)


@asynccontextmanager
async def talking(
    world: World,
    *,
    answers: Iterable[str | None] = (),
    choice: SessionChoice | None = SessionChoice(),  # noqa: B008 - frozen
) -> AsyncGenerator[tuple[Conversation, FakeFace]]:
    """A conversation that has been opened and runs; it ends with the block."""
    face = FakeFace(answers=deque(answers))
    frontend = PlainFrontend(world.services(), cast("Terminal", face), view)
    await open_first(frontend.conversation, choice, fallback=False)
    frontend.ready = True
    face.said = [line for line in face.said if not line.startswith("Session 0199")]
    running = asyncio.create_task(converse(frontend))
    try:
        yield frontend.conversation, face
        if running.done():
            running.result()
    finally:
        face.listener.leave()
        running.cancel()
        await asyncio.wait({running})
        await leave(frontend)
