"""A request to an MCP server that waits for its answer: how long it may, and who answers what the
server asks meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from tui.core.dataclass import dataclass, field
from tui.core.errors import ToolError
from tui.core.questions import UserAnswers, UserQuestion
from tui.tools.base import CallHost

if TYPE_CHECKING:
    from mcp_types import ElicitRequestParams, ElicitResult, ErrorData

log = logging.getLogger(__name__)

ASKS_MAX: Final = 20
"""Forms and pages that a server may put to the person during one request."""


@dataclass(slots=True, eq=False)
class OpenCall:
    """`asked` is what was asked so far, and how that ended."""

    patience_s: float
    limit: asyncio.Timeout
    host: CallHost
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
        if self.limit.expired():
            return UserAnswers(by="default")
        wait = asyncio.ensure_future(self.host.ask(questions))
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


_current: ContextVar[OpenCall | None] = ContextVar("call", default=None)


@dataclass(slots=True)
class OpenCalls:
    """The open calls of one server, in the order in which they began, and what it asks during
    them."""

    server: str
    all: list[OpenCall] = field(default_factory=list[OpenCall])

    @asynccontextmanager
    async def begin(self, patience_s: float, host: CallHost) -> AsyncGenerator[OpenCall]:
        """Surround the wait for an answer; raises TimeoutError where none comes."""
        async with asyncio.timeout(patience_s) as limit:
            call = OpenCall(patience_s, limit, host)
            self.all.append(call)
            token = _current.set(call)
            try:
                yield call
            finally:
                _current.reset(token)
                self.all.remove(call)
                call.withdraw()

    @property
    def asking(self) -> OpenCall | None:
        """The one that a question of the server belongs to. By the older protocol a question names
        none: then it is the last that began."""
        if (current := _current.get()) in self.all:
            return current
        return self.all[-1] if self.all else None

    async def answer(
        self,
        context: object,  # noqa: ARG002 - as the SDK calls it
        params: ElicitRequestParams,
    ) -> ElicitResult | ErrorData:
        """Answer a question of the server: by the person during one of its calls, else not."""
        from mcp_types import ElicitResult  # noqa: PLC0415 - it loads the SDK

        call = self.asking
        if call is None or len(call.asked) >= ASKS_MAX:
            log.info("the MCP server %s asks where nobody is asked", self.server)
            return ElicitResult(action="decline")
        return await self.put(params, call)

    async def put(self, params: ElicitRequestParams, call: OpenCall) -> ElicitResult | ErrorData:
        """Put a form or a page to the person, and keep what became of it."""
        from mcp_types import INVALID_PARAMS, ElicitResult, ErrorData  # noqa: PLC0415 - as above

        from tui.tools.mcp.elicitation import fill_form, open_address  # noqa: PLC0415 - if asked

        entry: dict[str, Any] = {"server": self.server, "message": params.message}
        call.asked.append(entry)
        try:
            if params.mode == "url":
                entry["url"] = params.url
                reply = await open_address(self.server, params.message, params.url, call.ask)
            else:
                reply = await fill_form(
                    self.server, params.message, params.requested_schema, call.ask
                )
        except ToolError as error:
            entry["action"] = "error"
            call.host.emit(f"{self.server} asks what can't be shown: {error.message}\n")
            return ErrorData(code=INVALID_PARAMS, message=error.message)
        entry["action"] = reply.action
        if reply.content:
            entry["answers"] = reply.content
        return ElicitResult(action=reply.action, content=reply.content)
