"""Recorded servers behind our real client, on a clock that moves only as far as the next event."""

from __future__ import annotations

import asyncio
import heapq
import json
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.support.clock import FakeClock
from tests.tools.lsp.seen.record import digest
from tui.core.messages import object_of
from tui.tools.lsp import client

T = TypeVar("T")
_ROUNDS = 40
"""Turns of the loop after which nothing is left to do at one time."""


class Timeline(FakeClock):
    """Sleeps, and what a server sends, in their order. Nothing waits in truth."""

    def __init__(self) -> None:
        super().__init__()
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._count = 0

    def at(self, seconds: float, do: Callable[[], object]) -> None:
        self._count += 1
        heapq.heappush(self._events, (seconds, self._count, do))

    async def sleep(self, seconds: float) -> None:
        done = asyncio.Event()
        self.at(self.elapsed + seconds, done.set)
        await done.wait()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something, and let the time pass that it takes."""
        task = asyncio.create_task(work)
        while not await self._is_done(task):
            self.elapsed, _, do = heapq.heappop(self._events)
            do()
        return task.result()

    async def _is_done(self, task: asyncio.Task[Any]) -> bool:
        for _ in range(_ROUNDS):
            await asyncio.sleep(0)
        return task.done()


class RecordedServer:
    """One server as it was recorded: it says what it said after the same text, as late as then.

    It is its own process, as the client sees one.
    """

    pid = 2**31 - 1  # which no process has: it is never signalled
    returncode: int | None = None

    def __init__(self, recording: Path, root: Path, clock: Timeline) -> None:
        self._clock, self._root = clock, root
        rows = [json.loads(line) for line in recording.read_text().splitlines()]
        self._rows: list[dict[str, Any]] = rows
        self._at = 0
        self._answers: dict[str, tuple[float, dict[str, Any]]] = {}
        self._texts: dict[str, int] = {}
        self._buffer = b""
        self._ended = asyncio.Event()
        self.stdin = self
        self.transport = self
        self.stdout = asyncio.StreamReader()
        self.stderr = asyncio.StreamReader()

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        self.end()

    def end(self, code: int = 0) -> None:
        if self.returncode is None:
            self.returncode = code
            self.stdout.feed_eof()
            self.stderr.feed_eof()
            self._ended.set()

    async def wait(self) -> int:
        await self._ended.wait()
        return self.returncode or 0

    def write(self, data: bytes) -> None:
        """Take what the client sends."""
        self._buffer += data
        while b"\r\n\r\n" in self._buffer:
            head, _, rest = self._buffer.partition(b"\r\n\r\n")
            (length,) = [
                int(line.partition(b":")[2])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length")
            ]
            if len(rest) < length:
                return
            self._buffer = rest[length:]
            self._take(json.loads(rest[:length]))

    def _take(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), object_of(message.get("params"))
        if method == "initialize":
            self._play(0, message["id"])
        elif method in {"textDocument/didOpen", "textDocument/didChange"}:
            document = params["textDocument"]
            text = document.get("text") or params["contentChanges"][-1]["text"]
            uri = self._short(document["uri"])
            self._texts[uri] = self._texts.get(uri, 0) + 1
            self._play(self._find(uri, digest(text)), None)
        elif method == "textDocument/diagnostic":
            delay, answer = self._answers.get(self._short(params["textDocument"]["uri"]), _REFUSED)
            self._send(delay, {**answer, "id": message["id"]})
        elif method == "shutdown":
            self._send(0, {"id": message["id"], "result": None})
        elif method == "exit":
            self.end()

    def _find(self, uri: str, text: str) -> int:
        """The next place of the recording where this text was shown."""
        for at in range(self._at, len(self._rows)):
            row = self._rows[at].get("client", {})
            if row.get("text") == text and row["uri"] == uri:
                return at
        raise AssertionError(f"{uri} never had this text: record it again")

    def _play(self, at: int, initialize: int | str | None) -> None:
        """Say what was said from there to the next text."""
        self._at = at + 1
        began = self._rows[at]["t"]
        asked: dict[object, tuple[float, str]] = {}
        for row in self._rows[at + 1 :]:
            sent, said = row.get("client"), row.get("server")
            if sent and "text" in sent:
                break
            if sent and sent.get("method") == "textDocument/diagnostic":
                asked[sent["id"]] = row["t"], sent["uri"]
            elif said and "method" not in said and said["id"] in asked:
                when, uri = asked[said["id"]]
                answer = row["t"] - when, said
                self._clock.at(
                    self._clock.elapsed + when - began,
                    lambda uri=uri, answer=answer: self._answers.update({uri: answer}),
                )
                self._answers.setdefault(uri, answer)
                if when - began < 0.1:
                    self._answers[uri] = answer
            elif said and "method" not in said and initialize is not None:
                self._send(row["t"] - began, {**said, "id": initialize})
                initialize = None
            elif said and "method" in said:
                self._send(row["t"] - began, said)

    def _send(self, delay: float, message: dict[str, Any]) -> None:
        text = json.dumps({"jsonrpc": "2.0", **message}).replace("ROOT", str(self._root))
        data = text.encode()
        frame = b"Content-Length: %d\r\n\r\n%b" % (len(data), data)
        uri = str(message.get("params", {}).get("uri"))
        number = self._texts.get(uri)
        self._clock.at(self._clock.elapsed + delay, lambda: self._feed(frame, uri, number))

    def _feed(self, frame: bytes, uri: str, number: int | None) -> None:
        """Say something, unless it is about a text that was replaced meanwhile."""
        if self.returncode is None and self._texts.get(uri) == number:
            self.stdout.feed_data(frame)

    def _short(self, uri: str) -> str:
        return uri.replace(str(self._root), "ROOT")


_REFUSED: tuple[float, dict[str, Any]] = (0, {"error": {"code": -32601, "message": "unknown"}})


@contextmanager
def played(
    recording: Path, root: Path, clock: Timeline, patch: pytest.MonkeyPatch
) -> Generator[None]:
    """Start the recorded server where a language server would be started."""

    async def start(*_words: str, **_options: object) -> RecordedServer:
        return RecordedServer(recording, root, clock)

    async def end(process: RecordedServer, **_options: object) -> None:
        process.end()

    async def inline(work: Callable[..., T], *given: Any) -> T:
        return work(*given)

    with patch.context() as patched:
        patched.setattr(client, "start_process", start)
        patched.setattr(client, "end_server", end)
        patched.setattr(asyncio, "to_thread", inline)
        yield


async def at_most(seconds: float, clock: Timeline, work: Awaitable[object]) -> None:
    """Wait for something that goes on, for a time."""
    timer = asyncio.create_task(clock.sleep(seconds))
    await asyncio.wait({timer, asyncio.ensure_future(work)}, return_when=asyncio.FIRST_COMPLETED)
    timer.cancel()
