"""The messages of a server, from a process or an address, and what of them cannot be used.

`open_process` takes the place of the SDK's transport, which reads a line of any length in time with
the square of it, and leaves a call waiting whose answer it cannot read. Here a line has a limit,
halves of characters are replaced, and an answer that cannot be read is an error of the calls that
wait. The answers of both are mended where the SDK would refuse them (see `mending`).
"""

from __future__ import annotations

import asyncio
import json
import logging
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, TextIO

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from httpx2 import AsyncClient, Auth, RequestNotRead, Response, Timeout
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from tui.core.formatting import size
from tui.core.messages import object_of
from tui.keeper.mark import marked
from tui.tools.mcp.mending import OpenRequests
from tui.tools.mcp.tool import sound
from tui.tools.process import end_server

log = logging.getLogger(__name__)

LINE_MAX: Final = 32 * 1024**2
_AT_ONCE: Final = 64 * 1024
"""A longer line is read in a thread."""
_TIMEOUT: Final = Timeout(30.0, read=600.0)
_SILENCE_S: Final = 86_400.0
"""Seconds that a server may send nothing over SSE: between calls it has nothing to say."""

SESSION_LOST: Final = -404
"""Our own code for the error of a request whose session the server does not know."""
_SESSION: Final = "mcp-session-id"
_NO_SESSION: Final = b"no valid session"
"""The words of servers that say it by 400, not 404 as the protocol has it."""

Incoming = MemoryObjectSendStream[SessionMessage | Exception]
Streams = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


@asynccontextmanager
async def open_address(
    url: str,
    headers: Mapping[str, str],
    asked: OpenRequests,
    *,
    sse: bool = False,
    auth: Auth | None = None,
) -> AsyncGenerator[Streams]:
    """Reach a server at an address, by streamable HTTP or the older SSE. Redirects to another
    server are not followed, so that no other one gets the headers."""
    incoming, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    async with AsyncExitStack() as stack:
        if sse:
            opened = sse_client(url, dict(headers), sse_read_timeout=_SILENCE_S, auth=auth)
        else:
            client = AsyncClient(
                headers=dict(headers),
                auth=auth,
                timeout=_TIMEOUT,
                event_hooks={"response": [partial(_note_stranger, asked)]},
            )
            opened = streamable_http_client(
                url, http_client=await stack.enter_async_context(client)
            )
        given, taken = await stack.enter_async_context(opened)
        tasks = await stack.enter_async_context(anyio.create_task_group())

        async def hand_in() -> None:
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                async with incoming:
                    async for one in given:
                        if isinstance(one, SessionMessage):
                            _note_in(asked, one.message)
                            _name_stranger(asked, one.message)
                        await incoming.send(one)

        async def hand_out() -> None:
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                async with outgoing, taken:
                    async for one in outgoing:
                        _note_out(asked, one.message)
                        await taken.send(one)

        tasks.start_soon(hand_in)
        tasks.start_soon(hand_out)
        try:
            yield reading, writing
        finally:
            reading.close()
            writing.close()
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def open_process(
    command: Sequence[str],
    asked: OpenRequests,
    *,
    env: Mapping[str, str],
    cwd: Path,
    errors: TextIO,
) -> AsyncGenerator[Streams]:
    """Start a server; it ends with the block, and all that it started with it. Raises OSError."""
    process = await asyncio.create_subprocess_exec(
        *marked(command, env, cwd), cwd=cwd, env=env, stdin=PIPE, stdout=PIPE, stderr=errors,
        limit=LINE_MAX, start_new_session=True,
    )  # fmt: skip
    incoming, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read, process, incoming, asked)
        tasks.start_soon(_write, process, outgoing, incoming, asked)
        try:
            yield reading, writing
        finally:
            with anyio.CancelScope(shield=True):
                reading.close()
                writing.close()
                await end_server(process)
            tasks.cancel_scope.cancel()


async def _read(process: Process, incoming: Incoming, asked: OpenRequests) -> None:
    """Hand each message on; what it prints besides is not for us."""
    assert process.stdout is not None
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        async with incoming:
            while True:
                try:
                    line = await process.stdout.readline()
                except ValueError:  # it is thrown away to its end, or to that of the next limit
                    await _refuse(incoming, asked, f"its answer is longer than {size(LINE_MAX)}")
                    continue
                if not line.endswith(b"\n"):
                    return  # it has ended, perhaps in the middle of a message
                if len(line) > _AT_ONCE:
                    message = await asyncio.to_thread(_message, line)
                else:
                    message = _message(line)
                if message is not None:
                    _note_in(asked, message)
                    await incoming.send(SessionMessage(message))
                elif line.lstrip().startswith(b"{"):
                    await _refuse(incoming, asked, "its answer isn't a valid message")


async def _write(
    process: Process,
    outgoing: MemoryObjectReceiveStream[SessionMessage],
    incoming: Incoming,
    asked: OpenRequests,
) -> None:
    assert process.stdin is not None
    try:
        async with outgoing:
            async for one in outgoing:
                message = one.message
                _note_out(asked, message)
                try:
                    data = message.model_dump_json(by_alias=True, exclude_unset=True)
                except ValueError as error:
                    await _refuse(incoming, asked, f"the call isn't a valid message: {error}")
                    continue
                process.stdin.write(data.encode() + b"\n")
                await process.stdin.drain()
    except (OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
        await _refuse(incoming, asked, "it no longer reads its input", CONNECTION_CLOSED)


async def _refuse(
    incoming: Incoming, asked: OpenRequests, why: str, code: int = PARSE_ERROR
) -> None:
    """Answer the calls that wait with an error: whose answer it was is not known."""
    log.warning("an MCP server: %s", why)
    for id_ in asked.ids:
        asked.end(id_)
        error = JSONRPCError(jsonrpc="2.0", id=id_, error=ErrorData(code=code, message=why))
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            await incoming.send(SessionMessage(error))


def _message(line: bytes) -> JSONRPCMessage | None:
    """The message in a line; None if there is none."""
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        try:
            value = sound(json.loads(line.decode("utf-8", "replace")))
            message = jsonrpc_message_adapter.validate_python(value, by_name=False)
        except (ValueError, RecursionError) as error:
            log.info("an MCP server printed what is no message: %.300s", error)
            return None
    return message


async def _note_stranger(asked: OpenRequests, response: Response) -> None:
    """Note a request that the server refuses because it does not know the session, as after its
    restart: the SDK makes the same error of that as of others, and it was not carried out."""
    request = response.request
    if _SESSION not in request.headers or response.status_code not in {400, 404}:
        return
    with suppress(ValueError, RequestNotRead):
        id_ = object_of(json.loads(request.content)).get("id")
        if response.status_code == 404 or _NO_SESSION in (await response.aread()).lower():
            asked.strangers.add(id_)


def _name_stranger(asked: OpenRequests, message: JSONRPCMessage) -> None:
    """Give the error of a request that was noted so its own code."""
    if isinstance(message, JSONRPCError) and message.id in asked.strangers:
        asked.strangers.discard(message.id)
        message.error = ErrorData(code=SESSION_LOST, message="it has lost the session")


def _note_out(asked: OpenRequests, message: JSONRPCMessage) -> None:
    if isinstance(message, JSONRPCRequest):
        asked.begin(message.id, message.method, message.params)


def _note_in(asked: OpenRequests, message: JSONRPCMessage) -> None:
    if isinstance(message, JSONRPCResponse | JSONRPCError):
        asked.end(message.id, getattr(message, "result", None))
