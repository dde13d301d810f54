"""Finds servers on this machine that speak the Messages API, on the usual ports.

Only 127.0.0.1 is asked, and only for its list of models.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from tui.core.dataclass import dataclass

HOST = "127.0.0.1"
USUAL = (("Ollama", 11434), ("LM Studio", 1234), ("llama.cpp", 8080), ("LiteLLM", 4000))

_CONNECT_S = 0.3
_ANSWER_S = 1.0
_MAX_BYTES = 1_000_000
_MAX_MODELS = 200
_MAX_NAME = 120


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server that answered. `needs_key`: it lists its models only to those who have a key."""

    name: str
    base_url: str
    models: tuple[str, ...]
    needs_key: bool = False


async def probe_local_servers(
    ports: tuple[tuple[str, int], ...] = USUAL,
) -> tuple[LocalServer, ...]:
    """The local servers that answer, in the order of `ports`. Takes at most about 1.3 s.

    Never raises: what does not answer, or answers something else, is left out.
    """
    servers = await asyncio.gather(*(_probe(name, port) for name, port in ports))
    return tuple(server for server in servers if server)


async def _probe(name: str, port: int) -> LocalServer | None:
    try:
        answer = await _ask(port)
    except (OSError, TimeoutError):
        return None
    status, body = _parse(answer)
    url = f"http://{HOST}:{port}"
    if status in {401, 403} and isinstance(body, dict):
        return LocalServer(name, url, (), needs_key=True)
    models = _models(body)
    return LocalServer(name, url, models) if status == 200 and models is not None else None


async def _ask(port: int) -> bytes:
    """The raw answer to GET /v1/models; what came in time if the server does not close."""
    async with asyncio.timeout(_CONNECT_S):
        reader, writer = await asyncio.open_connection(HOST, port)
    answer = bytearray()
    try:
        async with asyncio.timeout(_ANSWER_S):
            writer.write(
                f"GET /v1/models HTTP/1.1\r\nHost: {HOST}:{port}\r\n"
                "Accept: application/json\r\nConnection: close\r\n\r\n".encode()
            )
            while len(answer) < _MAX_BYTES and (piece := await reader.read(65_536)):
                answer += piece
    except TimeoutError:
        pass
    finally:
        writer.transport.abort()
    return bytes(answer)


def _parse(answer: bytes) -> tuple[int, object]:
    """Status and JSON body; (0, None) if it is not HTTP with JSON."""
    import json  # noqa: PLC0415 - as the next ones, only when servers are looked for
    from http.client import HTTPException, HTTPResponse  # noqa: PLC0415
    from io import BytesIO  # noqa: PLC0415

    def makefile(_mode: str) -> BytesIO:
        return BytesIO(answer)

    response = HTTPResponse(cast("Any", SimpleNamespace(makefile=makefile)))
    try:
        response.begin()
        return response.status, json.loads(response.read(_MAX_BYTES))
    except (HTTPException, OSError, ValueError, RecursionError):
        return 0, None


def _models(body: object) -> tuple[str, ...] | None:
    """The model names of a list of models; None where the body is no such list."""
    if not isinstance(body, dict):
        return None
    listing = cast("dict[str, object]", body)
    entries = listing.get("data")
    if entries is None and listing.get("object") == "list":
        entries = []  # how Ollama says that it has none
    if not isinstance(entries, list):
        return None
    names: list[str] = []
    for entry in cast("list[object]", entries):
        name: object = cast("dict[str, object]", entry).get("id") if isinstance(entry, dict) else 0
        if isinstance(name, str) and name.isprintable() and 0 < len(name) <= _MAX_NAME:
            names.append(name)
    return tuple(dict.fromkeys(names))[:_MAX_MODELS]
