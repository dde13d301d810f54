"""A loopback server that speaks the Messages API, plays a script, and rejects what the API rejects.

    async with LoopbackServer({"turns": [{"text": "Hello."}]}) as server:
        …  server.url, server.requests

or, for programs under test, `python -m tests.support.server --script FILE [--port N] [--log FILE]`,
which prints its URL on the first line and, with --log, every request as a JSON line.

Answers POST /v1/messages (streamed or whole), POST /v1/messages/count_tokens, GET /v1/models,
GET /v1/models/{id}, and /v1/messages/batches, which can't be deleted. The script's format stands in
`tests.support.server_script`; what is decided and charged, in `server_api`, which names the modules
of the rules; the connections are those of `server_http`. It listens on 127.0.0.1 only.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import sys
import time
import tomllib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl

import h11

from tests.support.rejections import REJECTIONS
from tests.support.server_api import MessagesApi, Reply
from tests.support.server_cache import ServerCache
from tests.support.server_errors import Rejection, invalid
from tests.support.server_http import Connection, GoneError, SeenRequest
from tests.support.server_model_rules import betas_of
from tests.support.server_rules import overflow_of, parsed
from tests.support.server_script import Event, Json, Script, encoded, events_of

_BURST_BYTES = 65_536
_LOOK_S = 0.02


class LoopbackServer:
    """See the module. Use it as an async context manager, or `start` and `stop` it."""

    def __init__(self, script: Json | Script | None = None, *, port: int = 0) -> None:
        self.script = script if isinstance(script, Script) else Script.of(script or {})
        self.requests: list[SeenRequest] = []
        self.log: Path | None = None
        self.dripped = asyncio.Semaphore(0)
        self.steps = asyncio.Semaphore(0)
        self.api = MessagesApi(self.script)
        self.now: Callable[[], float] = time.monotonic
        self._port = port
        self._server: asyncio.Server | None = None
        self._arrived = asyncio.Condition()
        self._connections = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def cache(self) -> ServerCache:
        return self.api.cache

    @property
    def posts(self) -> list[SeenRequest]:
        """The requests for an answer, without those for models or counts."""
        return [r for r in self.requests if r.path == "/v1/messages"]

    def step(self) -> None:
        """Let a stepped turn send its next delta. May be called from any thread."""
        assert self._server is not None
        self._server.get_loop().call_soon_threadsafe(self.steps.release)

    async def post(self, number: int) -> SeenRequest:
        """The `number`-th request for an answer (from 1), once it has come."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.posts) >= number)
        return self.posts[number - 1]

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(Connection(reader, writer)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, connection: Connection) -> None:
        number = next(self._connections)
        try:
            with suppress(GoneError, OSError, h11.RemoteProtocolError):
                while (request := await connection.request()) is not None:
                    head, raw = request
                    headers = {k.decode(): v.decode("latin-1") for k, v in head.headers}
                    path, _, query = head.target.decode().partition("?")
                    seen = SeenRequest(head.method.decode(), path, headers, raw, number, query)
                    await self._note(seen)
                    connection.watch(seen)
                    number_of = len(self.requests)
                    await self.answer(connection, seen, number_of).give()
                    if connection.h11.our_state is not h11.DONE:
                        break
                    connection.h11.start_next_cycle()
        finally:
            await connection.close()

    def answer(self, connection: Connection, seen: SeenRequest, number: int) -> Answer:
        """What answers a request."""
        return Answer(self, connection, seen, number)

    async def _note(self, seen: SeenRequest) -> None:
        self.requests.append(seen)
        if self.log is not None:
            line = {"method": seen.method, "path": seen.path, "headers": seen.headers}
            with self.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line | {"body": parsed(seen.raw)[0]}) + "\n")
        async with self._arrived:
            self._arrived.notify_all()


@dataclass(slots=True)
class Answer:
    """The answer to one request."""

    server: LoopbackServer
    connection: Connection
    seen: SeenRequest
    number: int

    async def give(self) -> None:
        path, method, api = self.seen.path, self.seen.method, self.server.api
        betas = betas_of(self.seen.headers)
        if (refusal := api.credentials(self.seen.headers)) is not None:
            await self._error(refusal)
        elif method == "GET" and path == "/v1/models":
            await self._said(api.models(dict(parse_qsl(self.seen.query)), betas))
        elif method == "GET" and path.startswith("/v1/models/"):
            await self._said(api.model(path.removeprefix("/v1/models/"), betas))
        elif method == "POST" and path == "/v1/messages/count_tokens":
            if api.script.count_faults:
                fault = api.script.count_faults.pop(0)
                await self._pause(fault.get("slow_s", 0))
                await self._fault(fault)
            else:
                await self._said(api.count(self.seen.raw, self.seen.headers))
        elif path.startswith(_BATCHES) and api.script.batches:
            await self._batches(path.removeprefix(_BATCHES).strip("/"))
        elif method == "POST" and path == "/v1/messages":
            made = api.answer(self.seen.raw, self.seen.headers, self.server.now())
            await (self._error(made) if isinstance(made, Rejection) else self._message(made))
        else:
            await self._error(Rejection(404, "not_found_error", f"Not found: {path}"))

    async def _batches(self, rest: str) -> None:
        """A request about message batches. `rest` is the path behind theirs."""
        faults, batches = self.server.api.script.batch_faults, self.server.api.batches
        fault = faults.pop(0) if faults else {}
        id_, _, what = rest.partition("/")
        if "status" in fault:
            await self._fault(fault)
        elif self.seen.method == "POST" and not rest:
            made = batches.create(self.seen.raw, self.seen.headers)
            if "lost" in fault:
                self.connection.reset()
                raise GoneError
            await self._said(made)
        elif self.seen.method == "POST" and what == "cancel":
            await self._said(batches.cancel(id_))
        elif self.seen.method != "GET" or what not in {"", "results"}:
            await self._error(Rejection(404, "not_found_error", f"Not found: {rest}"))
        elif what:
            await self._results(batches.results(id_), fault.get("cut_after"))
        elif id_:
            await self._said(batches.describe(id_))
        else:
            await self._said(batches.list(dict(parse_qsl(self.seen.query))))

    async def _results(self, lines: list[bytes] | Rejection, cut_after: int | None) -> None:
        if isinstance(lines, Rejection):
            await self._error(lines)
            return
        await self._head(200, "application/x-jsonl")
        for line in lines[:cut_after]:
            await self._write(line)
        if cut_after is not None:
            self.connection.reset()
            raise GoneError
        await self.connection.send(h11.EndOfMessage())

    async def _said(self, made: Json | Rejection) -> None:
        await (self._error(made) if isinstance(made, Rejection) else self._json(200, made))

    async def _message(self, reply: Reply) -> None:
        turn, fault = reply.turn, reply.fault
        await self._pause(fault.get("slow_s", turn.get("delay_s", 0)))
        while "until" in turn and not Path(turn["until"]).exists():
            await self._pause(_LOOK_S)
        if "status" in fault:
            await self._fault(fault)
        elif "rejected" in fault:
            await self._error(invalid(REJECTIONS[fault["rejected"]]))
        elif "overflow" in fault:
            await self._error(overflow_of(reply.body, fault))
        elif reply.body.get("stream"):
            events = events_of(turn, reply.number, reply.body["model"])
            if pace := turn.get("every_s"):
                await self._paced(events, pace)
            elif turn.get("burst"):
                await self._burst(events, single=turn["burst"] == "chunks")
            elif turn.get("stepped"):
                await self._stepped(events)
            else:
                await self._stream(list(events), fault)
        else:
            await self._json(200, reply.message)

    async def _burst(self, events: Iterable[Event], *, single: bool) -> None:
        """As fast as the client takes it: a large piece goes out as soon as it is full, as one
        chunk of the transfer, or with each `single` event as a chunk of its own."""
        await self._head(200, "text/event-stream; charset=utf-8")
        piece, size = list[bytes](), 0
        for event in events:
            piece.append(encoded(event))
            size += len(piece[-1])
            if size >= _BURST_BYTES:
                await self.connection.send(*_chunks(piece, single))
                piece, size = [], 0
        await self.connection.send(*_chunks(piece, single), h11.EndOfMessage())

    async def _stream(self, events: list[Event], fault: Json) -> None:
        await self._head(200, "text/event-stream; charset=utf-8")
        after = fault.get("cut_after", fault.get("eof_after", fault.get("after", 2)))
        for event in events[: after if fault else None]:
            await self._write(encoded(event))
        await self._strike(fault, events[after:])
        if fault and "eof_after" not in fault:
            for event in events[after:]:
                await self._write(encoded(event))
        await self.connection.send(h11.EndOfMessage())

    async def _strike(self, fault: Json, rest: list[Event]) -> None:
        """A fault in mid-stream. GoneError where nothing may follow."""
        if "cut_after" in fault:
            self.connection.reset()
            raise GoneError
        if "bad_json" in fault:
            await self._write(b'event: content_block_delta\ndata: {"type": "content_blo\n\n')
        elif "raw" in fault:
            await self._write(fault["raw"].encode())
        elif "error_event" in fault:
            await self._write(encoded({"type": "error", "error": fault["error_event"]}))
        elif "stall_s" in fault:
            await self._stall(fault)
        elif "drip_s" in fault:
            while True:
                await self._write(b"d")
                self.server.dripped.release()
                await self._pause(fault["drip_s"])
        elif "open" in fault:
            await self._write(b"".join(map(encoded, rest)))
            await self.seen.gone.wait()
            raise GoneError

    async def _paced(self, events: Iterable[Event], seconds: float) -> None:
        """One event every so many seconds, by the clock: a late one does not delay the rest."""
        await self._head(200, "text/event-stream; charset=utf-8")
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number, event in enumerate(events):
            await self._pause(max(0.0, began + number * seconds - loop.time()))
            await self._write(encoded(event))
        await self.connection.send(h11.EndOfMessage())

    async def _stepped(self, events: Iterable[Event]) -> None:
        """One delta each time somebody calls `step`."""
        await self._head(200, "text/event-stream; charset=utf-8")
        for event in events:
            if event["type"] == "content_block_delta":
                await self.server.steps.acquire()
            await self._write(encoded(event))
        await self.connection.send(h11.EndOfMessage())

    async def _stall(self, fault: Json) -> None:
        left: float = fault["stall_s"]
        beat: float = fault.get("ping_every_s", left)
        while left > 0:
            await self._pause(min(beat, left))
            left -= beat
            if "ping_every_s" in fault:
                comment = fault.get("comments")
                await self._write(b": still here\n\n" if comment else encoded({"type": "ping"}))

    async def _fault(self, fault: Json) -> None:
        status = fault["status"]
        headers = {str(k): str(v) for k, v in fault.get("headers", {}).items()}
        if "retry_after" in fault:
            headers["retry-after"] = str(fault["retry_after"])
        if "html" in fault:
            page: str = fault["html"]
            page = page if "<" in page else f"<html><head><title>{page}</title></head></html>"
            await self._whole(status, "text/html", page.encode(), headers)
        elif isinstance(body := fault.get("body"), str):
            kind = fault.get("content_type", "text/plain")
            await self._whole(status, kind, body.encode(), headers)
        elif body is not None:
            await self._json(status, body, headers)
        else:
            kind = fault.get("type", _TYPES.get(status, "api_error"))
            text, code = fault.get("message", "Error"), fault.get("error_code", "")
            await self._error(Rejection(status, kind, text, code), headers)

    async def _error(self, refusal: Rejection, headers: dict[str, str] | None = None) -> None:
        error: Json = {"type": refusal.type, "message": refusal.message}
        if refusal.code:
            error["details"] = {"error_code": refusal.code}
        body: Json = {"type": "error", "error": error, "request_id": self._request_id}
        await self._json(refusal.status, body, headers)

    async def _json(self, status: int, body: object, headers: dict[str, str] | None = None) -> None:
        await self._whole(status, "application/json", json.dumps(body).encode(), headers or {})

    async def _whole(self, status: int, kind: str, body: bytes, headers: dict[str, str]) -> None:
        extra = {"content-length": str(len(body))} | headers
        await self._head(status, kind, extra.items())
        await self.connection.send(h11.Data(body), h11.EndOfMessage())

    async def _head(self, status: int, kind: str, extra: Iterable[tuple[str, str]] = ()) -> None:
        headers = [("content-type", kind), ("request-id", self._request_id), *extra]
        await self.connection.send(h11.Response(status_code=status, headers=headers))

    async def _write(self, data: bytes) -> None:
        if self.seen.gone.is_set():
            raise GoneError
        await self.connection.send(h11.Data(data))

    async def _pause(self, seconds: float) -> None:
        """Wait, or end at once when the client leaves."""
        if seconds <= 0:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.seen.gone.wait()
            raise GoneError

    @property
    def _request_id(self) -> str:
        return f"req_{self.number:04}"


_BATCHES = "/v1/messages/batches"
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def load_script(path: Path) -> Script:
    """A script from a .json or .toml file."""
    text = path.read_text(encoding="utf-8")
    value: dict[str, Any] = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    return Script.of(value)


async def _main(arguments: argparse.Namespace) -> None:
    server = LoopbackServer(load_script(arguments.script), port=arguments.port)
    server.log = arguments.log
    await server.start()
    print(server.url, flush=True)
    await asyncio.Event().wait()


def _chunks(events: list[bytes], single: bool) -> list[h11.Data]:
    return [h11.Data(event) for event in events] if single else [h11.Data(b"".join(events))]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path)
    with suppress(KeyboardInterrupt):
        asyncio.run(_main(parser.parse_args()))
    sys.exit(0)
