"""`holdfast acp`: a session in an editor, by the Agent Client Protocol on stdin and stdout."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from tui.app.options.arguments import Options
from tui.core import log
from tui.core.errors import UsageError
from tui.core.messages import is_object
from tui.core.paths import folders
from tui.core.signals import heeded_signals

if TYPE_CHECKING:
    from io import FileIO

MESSAGE_MAX: Final = 64 * 1024 * 1024
"""Maximum bytes of a message that is read."""


def run(options: Options) -> int:
    """Serve an editor until it disconnects. Returns the exit code."""
    if sys.stdin.isatty() or sys.stdout.isatty():
        raise UsageError(
            "holdfast acp is started by an editor, not by hand.",
            hint="See holdfast help editors.",
        )
    log.to_file(folders().log)
    asyncio.run(serve(options, *_own_streams()))
    return 0


def _own_streams() -> tuple[FileIO, FileIO]:
    """Reserve stdin and stdout for the protocol: other readers find nothing, and other output goes
    to stderr."""
    given = os.fdopen(os.dup(0), "rb", buffering=0), os.fdopen(os.dup(1), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return given


async def serve(options: Options, source: FileIO, sink: FileIO) -> None:
    """Answer requests from `source` until it ends; then stop what runs, and close everything."""
    from acp.connection import Connection  # noqa: PLC0415 - it takes a second

    from tui.cli.acp.agent import EditorService  # noqa: PLC0415 - as above

    service = EditorService(options)
    lines = await JsonLines.over(source, sink)
    service.connection = Connection(service, lines, listening=False)
    listening = asyncio.create_task(service.connection.main_loop(), name="editor")

    def stop() -> None:
        listening.cancel()

    with heeded_signals(stop):
        try:
            with suppress(asyncio.CancelledError):
                await listening
        finally:
            await service.leave()
            await service.connection.close()


class JsonLines:
    """Messages as lines of JSON. An invalid one is answered here, so that the reader gets valid
    messages only."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._writing = asyncio.Lock()

    @classmethod
    async def over(cls, source: FileIO, sink: FileIO) -> JsonLines:
        """Connect to two pipes. Raises UsageError for a file that can't be waited for."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=MESSAGE_MAX)
        answers = asyncio.StreamReaderProtocol(asyncio.StreamReader())
        try:
            await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
            transport, _ = await loop.connect_write_pipe(lambda: answers, sink)
        except ValueError as error:
            raise UsageError("holdfast acp talks to an editor over pipes, not files.") from error
        return cls(reader, asyncio.StreamWriter(transport, answers, None, loop))

    async def send(self, message: dict[str, Any]) -> None:
        """Write a message; lost if the editor has gone."""
        line = json.dumps(message, separators=(",", ":"), default=str).encode() + b"\n"
        with suppress(OSError):
            async with self._writing:
                self._writer.write(line)
                await self._writer.drain()

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message, None at the end."""
        while line := await self._line():
            if not line.strip():
                continue
            try:
                message: object = json.loads(line)
            except (ValueError, RecursionError) as error:
                await self._refuse(-32700, f"This isn't JSON: {error}.")
                continue
            if problem := _problem(message):
                id_ = message.get("id") if is_object(message) else None
                sound = isinstance(id_, (int, str)) and is_object(message) and "method" in message
                await self._refuse(-32600, problem, id_ if sound else None)
            elif is_object(message):
                return message
        return None

    async def _line(self) -> bytes:
        """Return the next line, b"" at the end; one that is too long is refused."""
        skipped = False
        while True:
            try:
                line = await self._reader.readuntil(b"\n")
            except asyncio.LimitOverrunError as error:
                await self._reader.readexactly(error.consumed)
                skipped = True
                continue
            except asyncio.IncompleteReadError as error:
                return b"" if skipped else error.partial
            if not skipped:
                return line
            await self._refuse(-32600, f"A message may have {MESSAGE_MAX:,} bytes.")
            skipped = False

    async def _refuse(self, code: int, text: str, id_: int | str | None = None) -> None:
        error = {"code": code, "message": text}
        await self.send({"jsonrpc": "2.0", "id": id_, "error": error})

    async def close(self) -> None:
        with suppress(OSError):
            self._writer.close()
            await self._writer.wait_closed()


def _problem(message: object) -> str:
    """Explain why a value is no message; "" if it is one."""
    if not is_object(message):
        return "A message is one JSON object; batches aren't taken."
    id_, method = message.get("id"), message.get("method")
    if isinstance(id_, bool) or not isinstance(id_, (int, str, type(None))):
        return "id must be a number or a string."
    if "method" in message:
        return "" if isinstance(method, str) else "method must be a string."
    error = message.get("error")
    if "result" not in message and "error" not in message:
        return "A message has a method, a result or an error."
    if error is not None and not (is_object(error) and isinstance(error.get("code"), int)):
        return "error must be an object with a code."
    return ""
