"""Local servers: who answers the list of models on loopback, and what is made of odd answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from tui.settings import local_servers
from tui.settings.local_servers import LocalServer, probe_local_servers

Start = Callable[[bytes], Awaitable[int]]


class Loopback:
    """Servers on 127.0.0.1 that answer with given bytes. `asked` holds every request."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self.asked: list[str] = []
        self.hold = asyncio.Event()

    async def start(self, answer: bytes, *, keep_open: bool = False) -> int:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                self.asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
                writer.write(answer)
                await writer.drain()
                if keep_open:
                    await self.hold.wait()
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        self._stack.push_async_callback(self._stop, server)
        return server.sockets[0].getsockname()[1]

    async def _stop(self, server: asyncio.Server) -> None:
        self.hold.set()
        server.close()


@pytest.fixture
async def loopback() -> AsyncIterator[Loopback]:
    async with AsyncExitStack() as stack:
        yield Loopback(stack)


def ok(body: object, *, head: str = "200 OK") -> bytes:
    data = json.dumps(body).encode()
    return (
        f"HTTP/1.1 {head}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n"
    ).encode() + data


def models(*names: object) -> dict[str, object]:
    return {"object": "list", "data": [{"id": name, "object": "model"} for name in names]}


async def free_port() -> int:
    server = await asyncio.start_server(lambda _r, w: w.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return port


async def test_those_that_answer_are_named_in_order(loopback: Loopback) -> None:
    first = await loopback.start(ok(models("qwen3:8b", "llama3.2")))
    second = await loopback.start(ok(models("local-model")))
    silent = await free_port()
    found = await probe_local_servers((("Ollama", first), ("None", silent), ("LM Studio", second)))
    assert found == (
        LocalServer("Ollama", f"http://127.0.0.1:{first}", ("qwen3:8b", "llama3.2")),
        LocalServer("LM Studio", f"http://127.0.0.1:{second}", ("local-model",)),
    )


async def test_only_the_list_of_models_is_asked_for_and_nothing_is_told(loopback: Loopback) -> None:
    await probe_local_servers((("x", await loopback.start(ok(models("a")))),))
    (request,) = loopback.asked
    assert request.startswith("GET /v1/models HTTP/1.1\r\n")
    assert {line.split(":")[0] for line in request.split("\r\n")[1:] if line} == {
        "Host",
        "Accept",
        "Connection",
    }


async def test_a_chunked_answer(loopback: Loopback) -> None:
    data = json.dumps(models("a")).encode()
    chunked = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        + b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (data[:9], data[9:]))
        + b"0\r\n\r\n"
    )
    (found,) = await probe_local_servers((("x", await loopback.start(chunked)),))
    assert found.models == ("a",)


async def test_a_server_that_does_not_hang_up_is_read_all_the_same(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_servers, "_ANSWER_S", 0.05)
    port = await loopback.start(ok(models("a")), keep_open=True)
    (found,) = await probe_local_servers((("x", port),))
    assert found.models == ("a",)


async def test_a_server_that_says_nothing_is_left_out(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_servers, "_ANSWER_S", 0.05)
    port = await loopback.start(b"", keep_open=True)
    assert await probe_local_servers((("x", port),)) == ()


async def test_a_server_that_wants_a_key_says_so(loopback: Loopback) -> None:
    refusal = ok({"error": {"message": "No api key passed in."}}, head="401 Unauthorized")
    (found,) = await probe_local_servers((("LiteLLM", await loopback.start(refusal)),))
    assert found.needs_key
    assert found.models == ()


@pytest.mark.parametrize("body", [{"object": "list", "data": None}, models()])
async def test_a_server_without_models_is_still_named(loopback: Loopback, body: object) -> None:
    (found,) = await probe_local_servers((("Ollama", await loopback.start(ok(body))),))
    assert found.models == ()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\xff\x00garbage",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n<html>hello</html>",
        b"HTTP/1.1 401 Unauthorized\r\n\r\n<html>login</html>",
        b"HTTP/1.1 200 OK\r\nContent-Length: nonsense\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{}",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000,
        b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 500 + b"\r\n{}",
        ok([]),
        ok({}),
        ok({"data": "x"}),
        ok(models("a"), head="404 Not Found"),
        ok(models("a"), head="302 Found\r\nLocation: http://example.com/"),
    ],
)
async def test_anything_else_is_left_out(loopback: Loopback, answer: bytes) -> None:
    assert await probe_local_servers((("x", await loopback.start(answer)),)) == ()
    assert len(loopback.asked) == 1, "no redirect is followed, nothing is asked twice"


async def test_names_of_models_are_bounded_and_clean(loopback: Loopback) -> None:
    odd: list[object] = [
        "\x1b[31mred",
        "a\nb",
        "\u202eevil",
        "x" * 500,
        "",
        3,
        None,
        "good",
        "good",
    ]
    entries: list[object] = [{"id": name} for name in (*odd, *(f"m{n}" for n in range(900)))]
    body: dict[str, object] = {"data": ["x", None, [], *entries]}
    (found,) = await probe_local_servers((("x", await loopback.start(ok(body))),))
    assert found.models[:2] == ("good", "m0")
    assert len(found.models) == 200


async def test_an_endless_answer_is_cut_off(loopback: Loopback) -> None:
    endless = b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 3_000_000
    assert await probe_local_servers((("x", await loopback.start(endless)),)) == ()


def test_the_usual_servers_are_the_four_that_are_promised() -> None:
    assert dict(local_servers.USUAL) == {
        "Ollama": 11434,
        "LM Studio": 1234,
        "llama.cpp": 8080,
        "LiteLLM": 4000,
    }
    assert local_servers.HOST == "127.0.0.1"
