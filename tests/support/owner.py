"""A fake owner of a session: it serves the lines of `tui/app/door/lines.py` on a real Unix socket.

In the test's own loop (`FakeOwner`), or as a process of its own (`owner_process`) that can be
stopped, killed and frozen like a real one.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self, TypeVar

from tui.app.door.lines import (
    MAX_LINE,
    AskedLine,
    Ended,
    FactLine,
    FromOwner,
    GiveAnswer,
    Hello,
    LineError,
    RecordEnd,
    RequestOutcome,
    SendPrompt,
    SessionStatus,
    Settled,
    StopTurn,
    ToOwner,
    Watch,
    line_of,
    to_owner,
)
from tui.permissions.asked import AskedQuestions

_Request = TypeVar("_Request", bound=ToOwner)
Reply = Callable[[ToOwner], RequestOutcome | None]
"""The answer to a request; None for none."""


def sent_or_done(request: ToOwner) -> RequestOutcome | None:
    """Take every request: a prompt is sent, all else is done."""
    match request:
        case SendPrompt(number=number):
            return RequestOutcome(number=number, outcome="sent")
        case GiveAnswer(number=number) | StopTurn(number=number):
            return RequestOutcome(number=number, outcome="done")
        case Watch():
            return None


def live_folder(data: Path) -> Path:
    """The private folder of the sockets; made if it is not there."""
    folder = data / "live"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


class FakeOwner:
    """Serves one session. `requests` are all lines that came, in their order; `last` is the id in
    its `RecordEnd`, and `facts` follow that; `reply` answers requests."""

    def __init__(
        self, data: Path, hello: Hello, status: SessionStatus | None = None, *, socket: str = ""
    ) -> None:
        self.hello = hello
        self.status = status or SessionStatus()
        self.asked: dict[str, AskedLine] = {}
        self.requests: list[ToOwner] = []
        self.last = ""
        self.facts: list[dict[str, Any]] = []
        self.reply: Reply = sent_or_done
        self.silent = False
        """Takes connections and says nothing, as a process that hangs."""
        self.refusal = ""
        """The reason for which it refuses everybody."""
        self.path = live_folder(data) / (socket or f"{hello.session}.sock")
        self._server: asyncio.Server | None = None
        self._peers: dict[asyncio.StreamWriter, bool] = {}
        self._came = asyncio.Event()

    @property
    def peers(self) -> int:
        """The number of those connected now."""
        return len(self._peers)

    async def __aenter__(self) -> Self:
        # A socket's path may have 107 bytes: a temporary folder's is often longer.
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        proc = Path(f"/proc/self/fd/{folder}")
        place = proc / self.path.name if proc.exists() else self.path
        try:
            self._server = await asyncio.start_unix_server(self._serve, place, limit=MAX_LINE)
        finally:
            os.close(folder)
        self.path.chmod(0o600)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.end()

    def tell(self, message: FromOwner) -> None:
        """Send a message to all, what is of the conversation to those that watch it."""
        match message:
            case SessionStatus():
                self.status = message
            case AskedLine(number=number):
                self.asked[number] = message
            case Settled(number=number):
                self.asked.pop(number, None)
            case _:
                pass
        line = line_of(message)
        for writer, watches in self._peers.items():
            if watches or not isinstance(message, FactLine):
                writer.write(line)

    def say(self, line: bytes) -> None:
        """Send a line as it is to all."""
        for writer in self._peers:
            writer.write(line)

    async def end(self, *, with_: Ended | None = None) -> None:
        """Let go of the session: with a last line, or as one that is killed."""
        if with_ is not None:
            self.tell(with_)
        if self._server is not None:
            self._server.close()
            self._server = None
        with suppress(FileNotFoundError):
            self.path.unlink()
        for writer in [*self._peers]:
            writer.close()
        self._peers.clear()
        await asyncio.sleep(0)

    def cut(self) -> None:
        """Cut all that are connected off; they may come again."""
        for writer in [*self._peers]:
            writer.transport.abort()

    async def got(self, kind: type[_Request], count: int = 1) -> _Request:
        """Wait for a request of a kind, the `count`th."""
        while len(requests := [one for one in self.requests if isinstance(one, kind)]) < count:
            self._came.clear()
            await self._came.wait()
        return requests[count - 1]

    async def until_peers(self, count: int) -> None:
        """Wait until so many are connected."""
        while len(self._peers) != count:
            self._came.clear()
            await self._came.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusal:
            refused = RequestOutcome(number="", outcome="refused", text=self.refusal)
            writer.write(line_of(Hello(pid=os.getpid())) + line_of(refused))
            writer.close()
            return
        self._peers[writer] = False
        self._came.set()
        if not self.silent:
            for line in (self.hello, self.status, *self.asked.values()):
                writer.write(line_of(line))
        with suppress(ConnectionError):
            while line := await reader.readline():
                with suppress(LineError):
                    self._take(to_owner(line), writer)
        self._peers.pop(writer, None)
        self._came.set()
        writer.close()

    def _take(self, request: ToOwner, writer: asyncio.StreamWriter) -> None:
        self.requests.append(request)
        self._came.set()
        if isinstance(request, Watch):
            self._peers[writer] = True
            writer.write(line_of(RecordEnd(last=self.last)))
            for fact in self.facts:
                writer.write(line_of(FactLine(fact=fact)))
        elif (answer := self.reply(request)) is not None:
            writer.write(line_of(answer))


# As a process


async def _serve_many(data: Path, ids: Sequence[str], streaming: int, per_second: float) -> None:
    """Serve sessions until standard input ends. The first `streaming` ones tell a new status
    `per_second` times a second; a line `ask ID` on standard input has one ask."""
    loop = asyncio.get_running_loop()
    orders = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    owners = {
        id_: FakeOwner(
            data,
            Hello(session=id_, cwd=str(data), pid=os.getpid(), kind="background", version="1"),
            SessionStatus(state="working" if n < streaming else "idle", title=f"session {id_}"),
        )
        for n, id_ in enumerate(ids)
    }
    for owner in owners.values():
        await owner.__aenter__()
    streams = asyncio.create_task(_stream([*owners.values()][:streaming], per_second))
    print("ready", flush=True)
    while line := (await orders.readline()).decode().split():
        owner = owners[line[1]]
        owner.tell(AskedLine(number=line[2], asked=AskedQuestions((), "")))
    streams.cancel()
    for owner in owners.values():
        await owner.end()


async def _stream(owners: Sequence[FakeOwner], per_second: float) -> None:
    count = 0
    while owners:
        count += 1
        for owner in owners:
            detail = f"answering, {count} words"
            owner.tell(SessionStatus(state="working", detail=detail, cost_usd=count / 1000))
        await asyncio.sleep(1 / per_second)


@contextmanager
def owner_process(
    data: Path, ids: Sequence[str], *, streaming: int = 0, per_second: float = 10
) -> Generator[subprocess.Popen[str]]:
    """Fake owners of sessions in a process of their own, which serves once this is entered. `ask
    ID NUMBER` on its standard input has one ask."""
    order = json.dumps([str(data), list(ids), streaming, per_second])
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.owner", order],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def main() -> None:
    """Be the owner of the sessions that the argument names."""
    data, ids, streaming, per_second = json.loads(sys.argv[1])
    asyncio.run(_serve_many(Path(data), ids, streaming, per_second))


if __name__ == "__main__":
    main()
