"""The link to one MCP server: opened, used and closed in one task of its own, as the SDK demands.

It ends when the server dies, and begins again when one of its tools is called or the person asks
for it: the server's `detail` says meanwhile why it is gone.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, cast

from tui import __version__
from tui.core.errors import ToolError
from tui.tools.mcp.endpoint import Endpoint
from tui.tools.mcp.open_call import OpenCalls

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import (
        CallToolResult,
        LoggingMessageNotificationParams,
    )

    from tui.tools.mcp.oauth import SignInCheck

log = logging.getLogger(__name__)

ServerState: TypeAlias = Literal["off", "starting", "ready", "failed", "needs sign-in"]

START_S: Final = 30.0
"""Seconds a server may take until its tools are listed."""
PROBE_S: Final = 15.0
"""Seconds a process may take for that where it is asked `server/discover` first, for 10 s of which
the SDK waits: many of 2024 and 2025 die of that question, or never say a word again."""
LEAVE_S: Final = 5.0
"""Seconds a server may take to end by itself when it is stopped."""
SETTLED_S: Final = PROBE_S + START_S + LEAVE_S
"""Seconds after which a server that was started is ready, or has failed and is stopped."""
CALL_S: Final = 600.0
"""Seconds a call may take without a word from the server."""
LINE_MAX: Final = 300
NOTE_MAX: Final = 4000
NOTES_MAX: Final = 10_000
"""Characters of a message of a server in its log, and messages."""
_CHANGES: Final = frozenset(
    {
        "ToolListChangedNotification",
        "ResourceListChangedNotification",
        "PromptListChangedNotification",
    }
)
_SIGN_IN: Final = "it needs you to sign in"
Opening: TypeAlias = Literal["auto", "legacy"]
"""How the protocol begins, as the SDK names it: by `server/discover`, which MCP has since
2026-07-28, or by `initialize`."""


class Served(Protocol):
    """The owner of the connection: keeps its state, and what comes over it."""

    @property
    def state(self) -> ServerState: ...
    @property
    def detail(self) -> str: ...
    def set_state(self, state: ServerState, detail: str) -> None: ...
    async def list_offers(self, client: Client) -> None: ...


class ServerLink:
    """The link of one server, which may be opened again after it was closed or has failed."""

    def __init__(self, endpoint: Endpoint, served: Served, open_calls: OpenCalls) -> None:
        self._endpoint, self._served, self._open_calls = endpoint, served, open_calls
        self._client: Client | None = None
        self._check: SignInCheck | None = None
        self._notes = 0
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._leave, self._settled = asyncio.Event(), asyncio.Event()

    @property
    def has_tokens(self) -> bool:
        """True if the server is reached with the tokens of a sign-in."""
        return self._check is not None and self._check.signed and not self._wants_sign_in

    @property
    def _wants_sign_in(self) -> bool:
        """True if the server reported that the person is not signed in. One that got a key of the
        configuration has refused that."""
        return self._check is not None and self._check.refused and not self._endpoint.has_key

    def start(self) -> None:
        """Begin to open it, unless it is open."""
        if self._task is None or self._task.done():
            self._leave, self._settled = asyncio.Event(), asyncio.Event()
            self._served.set_state("starting", "")
            run = self._run(self._leave)
            self._task = asyncio.create_task(run, name=f"mcp {self._endpoint.name}")

    async def settled(self) -> None:
        """Wait until it is open or has failed. Returns at once if it was never opened."""
        if self._served.state == "starting":
            await self._settled.wait()

    async def stop(self) -> None:
        """Close it. Returns when the server's process is gone."""
        self._leave.set()
        if self._task is not None:
            if self._served.state != "starting":
                await asyncio.wait({self._task}, timeout=LEAVE_S)
            self._task.cancel()
            await asyncio.wait({self._task})
            self._task = None
        self._settle("off", "")

    async def client(self) -> Client:
        """The client of the open link; it is opened if it is not. Raises ToolError."""
        if self._leave.is_set() and self._task is not None:
            await asyncio.wait({self._task})  # it is leaving a dead connection
        if self._served.state != "ready":
            self.start()
            await self.settled()
        if self._client is None:
            why = self._served.detail or "it was stopped"
            raise ToolError(
                f"The MCP server {self._endpoint.name} isn't running: {why}.",
                hint="The user can restart it with /mcp.",
            )
        return self._client

    async def begin_anew(self, client: Client) -> Client:
        """Leave a session that the server has lost, unless that is done. Returns the client of the
        new one. Raises ToolError."""
        if client is self._client:
            self._leave.set()
        return await self.client()

    def failure(self, request: str, error: Exception) -> ToolError:
        """A failed request as an error for the model."""
        if _is_gone(error) or self._wants_sign_in:
            self._leave.set()  # its task leaves the dead connection; the next call starts it again
        why = _SIGN_IN if self._wants_sign_in else error_text(error, CALL_S)
        return ToolError(f"{request} of the MCP server {self._endpoint.name} failed: {why}")

    async def _run(self, leave: asyncio.Event) -> None:
        """Open the connection, wait until it is to be closed, close it: all in this one task."""
        try:
            self._check = None
            await asyncio.to_thread(importlib.import_module, "mcp")
            async with AsyncExitStack() as stack:
                client = await self._open(stack)
                self._client = client
                info = client.server_info
                self._settle("ready", f"{info.name} {info.version}" if info else "")
                async with asyncio.TaskGroup() as group:
                    tasks = [
                        group.create_task(self._follow(client)),
                        group.create_task(self._listen(client)),
                    ]
                    await leave.wait()
                    for task in tasks:
                        task.cancel()
                self._client = None
            if self._wants_sign_in:
                self._settle("needs sign-in", _SIGN_IN)
            else:
                self._settle("off", "it died; the next call starts it again")
        except Exception as error:
            if self._wants_sign_in:
                self._settle("needs sign-in", _SIGN_IN)
                return
            log.warning("the MCP server %s failed", self._endpoint.name, exc_info=error)
            self._settle("failed", await self._why(error))
        finally:
            self._client = None

    async def _why(self, error: Exception) -> str:
        """Say why it failed. A process that just ended has perhaps said so before."""
        line = error_line(error)
        if self._endpoint.config.url or not _was_closed(error):
            return line
        said = await self._endpoint.last_words()
        return shortened(f"it ended: {said}") if said else "it ended without a message"

    async def _open(self, stack: AsyncExitStack) -> Client:
        """A client whose offers are listed. A server that is lost by one of the two ways in which
        the protocol begins is tried by the other, and that is remembered."""
        endpoint = self._endpoint
        remembered = await endpoint.begins_with_initialize()
        ways: tuple[Opening, Opening] = ("legacy", "auto") if remembered else ("auto", "legacy")
        try:
            return await self._enter(stack, ways[0])
        except Exception as error:
            if self._wants_sign_in or not _may_be_the_opening(error):
                raise
            log.info("the MCP server %s: %s; again", endpoint.name, error_line(error))
        client = await self._enter(stack, ways[1])
        await endpoint.remember_opening(with_initialize=not remembered)
        return client

    async def _enter(self, stack: AsyncExitStack, way: Opening) -> Client:
        from mcp import Client  # noqa: PLC0415 - 0.6 s
        from mcp_types import Implementation  # noqa: PLC0415 - as above

        from tui.tools.mcp.mending import OpenRequests  # noqa: PLC0415 - as above

        self._check = await self._endpoint.sign_in_check()
        asked = OpenRequests()
        made = Client(
            self._endpoint.open(self._check, asked),
            client_info=Implementation(name="holdfast", title="Holdfast", version=__version__),
            mode=way,
            message_handler=self._hear,
            logging_callback=self._note,
            elicitation_callback=self._open_calls.answer,
            log_level="info",
        )
        probes = way == "auto" and not self._endpoint.config.url
        async with asyncio.timeout(PROBE_S if probes else START_S), AsyncExitStack() as attempt:
            client = await attempt.enter_async_context(made)
            client.session.validate_tool_result = _take_as_it_is
            await self._served.list_offers(client)
            stack.push_async_exit(attempt.pop_all())
        if probes and asked.waits("server/discover"):
            await self._endpoint.remember_opening(with_initialize=True)
        return client

    async def _follow(self, client: Client) -> None:
        """List what the server offers again whenever that has changed."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._served.list_offers(client)
            except Exception as error:  # noqa: BLE001 - the tools that were known stay
                name = self._endpoint.name
                why = error_line(error)
                log.warning("the MCP server %s lists no tools: %s", name, why)

    async def _hear(self, message: object) -> None:
        """Take a message of the server, which may be a notice."""
        if type(message).__name__ in _CHANGES:
            self._changed.set()

    async def _listen(self, client: Client) -> None:
        """Ask for notices: servers of the newer protocol send them only then."""
        from mcp.client.subscriptions import ListenNotSupportedError  # noqa: PLC0415 - the SDK

        try:
            async with client.listen(
                tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
            ) as changes:
                async for _ in changes:
                    self._changed.set()
        except ListenNotSupportedError:
            pass  # it sends notifications, see `_hear`
        except Exception as error:  # noqa: BLE001 - a server that tells of nothing still works
            log.info(
                "the MCP server %s tells of no changes: %s", self._endpoint.name, error_line(error)
            )

    async def _note(self, params: LoggingMessageNotificationParams) -> None:
        """Keep its messages of the protocol in its log, as its output."""
        text = params.data if isinstance(params.data, str) else json.dumps(params.data, default=str)
        sender = params.logger or self._endpoint.name
        self._notes += 1
        if self._notes <= NOTES_MAX:
            line = f"[{params.level}] {sender}: {text:.{NOTE_MAX}}\n"
            await asyncio.to_thread(self._endpoint.write_log, line)

    def _settle(self, state: ServerState, detail: str) -> None:
        self._served.set_state(state, detail)
        self._settled.set()


async def _take_as_it_is(name: str, result: CallToolResult) -> None:
    """Check nothing: `promised_output` says what is odd. The SDK (2.3) would run the regular
    expressions of the server's own output schema here, which can hold the program for ever, and
    throw a result away that does not fit."""


def _is_gone(error: BaseException) -> bool:
    """True if the connection, not the call, is what failed. An answer that the SDK refuses is none
    of its faults."""
    from anyio import BrokenResourceError, ClosedResourceError, EndOfStream  # noqa: PLC0415 - SDK's
    from httpx2 import TransportError  # noqa: PLC0415 - as above

    lost = (OSError, TransportError, BrokenResourceError, ClosedResourceError, EndOfStream)
    return _was_closed(error) or any(
        isinstance(one, lost) and not isinstance(one, TimeoutError) for one in _leaves(error)
    )


def _was_closed(error: BaseException) -> bool:
    """True if the other end closed the connection."""
    from mcp.shared.exceptions import MCPError  # noqa: PLC0415 - it loads the SDK
    from mcp_types import CONNECTION_CLOSED  # noqa: PLC0415 - as above

    return any(
        isinstance(one, MCPError) and one.code == CONNECTION_CLOSED for one in _leaves(error)
    )


def _may_be_the_opening(error: BaseException) -> bool:
    """True unless the server could not even be started."""
    return not any(
        isinstance(one, ToolError | OSError) and not isinstance(one, TimeoutError)
        for one in _leaves(error)
    )


def error_text(error: BaseException, patience_s: float = START_S) -> str:
    """An error as the server words it, whole, with the data that it gave."""
    from mcp.shared.exceptions import MCPError  # noqa: PLC0415 - it loads the SDK

    first = next(iter(_leaves(error)), error)
    if not isinstance(first, MCPError):
        return error_line(error, patience_s)
    data = first.data
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, indent=1)
    more = f"\nIts data:\n{text}" if data is not None and text not in first.message else ""
    return (first.message or type(first).__name__) + more


def error_line(error: BaseException, patience_s: float = START_S) -> str:
    """An error in one line, cut where it is long."""
    first = next(iter(_leaves(error)), error)
    match first:
        case TimeoutError():
            return f"no answer within {patience_s:.0f} s"
        case FileNotFoundError(filename=str(name)):
            return f"{name} not found"
        case _:
            text = " ".join(str(getattr(first, "message", "") or first).split())
            return shortened(text or type(first).__name__)


def shortened(line: str) -> str:
    return line if len(line) <= LINE_MAX else f"{line[:LINE_MAX]}…"


def _leaves(error: BaseException) -> Iterable[BaseException]:
    """The errors inside nested groups."""
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _leaves(inner)
    else:
        yield error
