"""A request to an MCP server that waits for its answer: how long it may, and who answers what the
server asks meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from tui.core.questions import AskPerson, UserAnswers, UserQuestion

ASKS_MAX: Final = 20
"""Forms and pages that a server may put to the person during one request."""


@dataclass(slots=True, eq=False)
class OpenCall:
    """`tell` takes words for the person. `asked` is what was asked so far, and how that ended."""

    patience_s: float
    limit: asyncio.Timeout
    tell: Callable[[str], None]
    ask_person: AskPerson | None
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    _waits: set[asyncio.Future[UserAnswers]] = field(
        default_factory=set[asyncio.Future[UserAnswers]]
    )

    def heard(self) -> None:
        """The server gave a sign of life: its time begins again."""
        if not self._waits:
            with suppress(RuntimeError):  # the call has ended meanwhile
                self.limit.reschedule(asyncio.get_running_loop().time() + self.patience_s)

    async def ask(self, questions: Sequence[UserQuestion]) -> UserAnswers:
        """Ask the person. Their time isn't the server's, and what is asked ends with the call."""
        if self.ask_person is None or self.limit.expired():
            return UserAnswers(by="default")
        wait = asyncio.ensure_future(self.ask_person(questions))
        self._waits.add(wait)
        self.limit.reschedule(None)
        try:
            await asyncio.wait({wait})
        finally:
            wait.cancel()
            self._waits.discard(wait)
            if not self.limit.expired():
                self.heard()
        return UserAnswers() if wait.cancelled() else wait.result()

    def withdraw(self) -> None:
        for wait in self._waits:
            wait.cancel()


@dataclass(slots=True)
class OpenCalls:
    """Those of one server, in the order in which they began."""

    all: list[OpenCall] = field(default_factory=list[OpenCall])

    @asynccontextmanager
    async def begin(
        self, patience_s: float, tell: Callable[[str], None], ask: AskPerson | None
    ) -> AsyncGenerator[OpenCall]:
        """While a request waits for its answer; raises TimeoutError where none comes."""
        async with asyncio.timeout(patience_s) as limit:
            call = OpenCall(patience_s, limit, tell, ask)
            self.all.append(call)
            try:
                with _is_current(call):
                    yield call
            finally:
                self.all.remove(call)
                call.withdraw()

    @property
    def asking(self) -> OpenCall | None:
        """The one that a question of the server belongs to. By the older protocol a question names
        none: then it is the last that began."""
        if (current := _current.get()) in self.all:
            return current
        return self.all[-1] if self.all else None


_current: ContextVar[OpenCall | None] = ContextVar("call", default=None)


@contextmanager
def _is_current(call: OpenCall) -> Generator[None]:
    token = _current.set(call)
    try:
        yield
    finally:
        _current.reset(token)
