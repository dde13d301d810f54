"""Requests that the SDK signs with a profile: whose token they carry, and what goes wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.provider.conversation import ask, provider_for
from tests.support.profile import TOKEN, write_profile
from tests.support.server import LoopbackServer
from tui.core.errors import CredentialsError, ProviderError

HELLO = {"turns": [{"text": "ok"}] * 2}


@pytest.fixture
def profiles(own_folders: Path) -> Path:
    return own_folders / "anthropic"


@asynccontextmanager
async def token_server(status: int, body: object) -> AsyncGenerator[tuple[str, list[bytes]]]:
    """A server that answers every request with one JSON body, and the requests that it got."""
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        )
        asked.append(head + await reader.readexactly(length))
        said = json.dumps(body).encode()
        writer.write(
            b"HTTP/1.1 %d x\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
            b"connection: close\r\n\r\n%b" % (status, len(said), said)
        )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


async def test_a_request_carries_the_token_of_the_profile(profiles: Path) -> None:
    write_profile(profiles, "work")
    async with LoopbackServer(HELLO) as server:
        provider = provider_for(server, api_key=None, profile="work")
        await ask(provider)
        await provider.aclose()
    headers = server.posts[0].headers
    assert headers["authorization"] == f"Bearer {TOKEN}"
    assert "oauth-2025-04-20" in headers["anthropic-beta"]
    assert "x-api-key" not in headers


async def test_a_token_that_is_over_is_renewed_and_kept(profiles: Path) -> None:
    renewed = {"access_token": "token-2", "refresh_token": "refresh-2", "expires_in": 3600}
    async with token_server(200, renewed) as (url, asked), LoopbackServer(HELLO) as server:
        write_profile(profiles, "work", base_url=url, expires_at=1, client_id="c")
        provider = provider_for(server, api_key=None, profile="work")
        await ask(provider)
        await provider.aclose()
    assert server.posts[0].headers["authorization"] == "Bearer token-2"
    assert b"refresh-1" in asked[0]
    kept = json.loads((profiles / "credentials" / "work.json").read_text())
    assert (kept["access_token"], kept["refresh_token"]) == ("token-2", "refresh-2")


async def test_a_renewal_that_is_refused_says_to_sign_in_again(profiles: Path) -> None:
    async with (
        token_server(400, {"error": "invalid_grant"}) as (url, _),
        LoopbackServer() as server,
    ):
        write_profile(profiles, "work", base_url=url, expires_at=1, client_id="c")
        provider = provider_for(server, api_key=None, profile="work")
        with pytest.raises(ProviderError) as caught:
            await ask(provider)
        await provider.aclose()
    assert caught.value.error_class == "auth"
    assert not caught.value.retryable
    assert "ant auth login" in caught.value.hint
    assert "refresh-1" not in str(caught.value)
    assert server.posts == []


async def test_a_renewal_without_a_network_is_tried_again(profiles: Path) -> None:
    write_profile(profiles, "work", base_url="http://127.0.0.1:1", expires_at=1, client_id="c")
    async with LoopbackServer() as server:
        provider = provider_for(server, api_key=None, profile="work")
        with pytest.raises(ProviderError) as caught:
            await ask(provider)
        await provider.aclose()
    assert (caught.value.error_class, caught.value.retryable) == ("network", True)


async def test_a_profile_that_went_meanwhile_is_said(profiles: Path) -> None:
    async with LoopbackServer() as server:
        provider = provider_for(server, api_key=None, profile="gone")
        with pytest.raises(
            CredentialsError, match="Couldn't sign in: Config file not found"
        ) as why:
            await provider.load()
        write_profile(profiles, "gone").chmod(0o666)
        with pytest.raises(CredentialsError, match="writable by group or others"):
            await provider.load()
        await provider.aclose()
    assert "ant auth login" in why.value.hint
