"""Signing in to a server: the SDK's client against a strict OAuth server, both on loopback."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from tests.support.clock import PATIENCE_S
from tests.support.oauth_server import OAuthWorld, oauth_world
from tests.tools.mcp.test_servers import ROOT, call
from tui.core.config import McpServer
from tui.core.errors import ToolError
from tui.core.messages import text_of
from tui.core.paths import Folders, folders
from tui.settings.credentials import SecretStore, credentials_file
from tui.tools.mcp import Server, Servers


@pytest.fixture
def home(tmp_path: Path) -> Folders:
    return folders({"HOLDFAST_HOME": str(tmp_path / "home")})


@asynccontextmanager
async def reached(
    home: Folders, world: OAuthWorld, config: McpServer | None = None
) -> AsyncGenerator[Server]:
    vault = SecretStore({"HOLDFAST_HOME": str(home.data)}, home)
    servers = Servers(
        {"door": config or McpServer(url=world.url)}, cwd=ROOT, log_folder=home.log, vault=vault
    )
    servers.start()
    await asyncio.wait_for(servers.settled(), PATIENCE_S)
    try:
        yield servers.all[0]
    finally:
        await asyncio.wait_for(servers.close(), PATIENCE_S)


async def signed_in(server: Server, world: OAuthWorld) -> None:
    await asyncio.wait_for(server.sign_in(world.approve), PATIENCE_S)
    await asyncio.wait_for(server.connection.settled(), PATIENCE_S)


async def test_a_401_is_no_failure_and_signing_in_makes_it_ready(
    home: Folders, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    async with oauth_world() as world:
        async with reached(home, world) as door:
            assert (door.state, door.detail) == ("needs sign-in", "it needs you to sign in")
            assert world.oauth.clients == {}, "nothing is registered before somebody signs in"
            with pytest.raises(ToolError, match="isn't running: it needs you to sign in"):
                await call(door, "echo", text="a")
            await signed_in(door, world)
            assert (door.state, door.detail) == ("ready", "behind a door 1")
            assert text_of((await call(door, "echo", text="a")).content) == "a"
        async with reached(home, world) as door:
            assert door.state == "ready", "the next start uses the same tokens"
        assert world.oauth.grants == ["authorization_code"]
        file = credentials_file(home)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        (name,) = json.loads(file.read_text())["keys"]
        assert name == f"mcp {world.url}"
        for secret in (*world.oauth.access, *world.oauth.refresh):
            assert secret not in caplog.text


async def test_a_sign_in_of_another_program_is_noticed(home: Folders):
    async with oauth_world() as world, reached(home, world) as door, reached(home, world) as other:
        watch = door.watch_tokens()
        assert not watch.signed_in()
        await signed_in(other, world)
        assert watch.signed_in()
        assert not door.watch_tokens().signed_in()  # only what came since counts
        await door.restart()
        await asyncio.wait_for(door.connection.settled(), PATIENCE_S)
        assert door.state == "ready"


async def test_an_expired_token_is_refreshed_after_a_restart_and_in_mid_session(home: Folders):
    async with oauth_world() as world:
        async with reached(home, world) as door:
            await signed_in(door, world)
        vault = SecretStore({"HOLDFAST_HOME": "x"}, home)
        saved = json.loads(vault.get(f"mcp {world.url}") or "")
        vault.put(f"mcp {world.url}", json.dumps({**saved, "expires_at": 1}))
        world.oauth.end_access()
        async with reached(home, world) as door:
            assert door.state == "ready"
            assert world.oauth.grants == ["authorization_code", "refresh_token"]
            world.oauth.end_access()  # sooner than it said
            assert text_of((await call(door, "echo", text="b")).content) == "b"
        assert world.oauth.grants == ["authorization_code", "refresh_token", "refresh_token"]
        assert len(world.oauth.clients) == 1


async def test_tokens_that_the_server_ended_lead_to_a_new_sign_in(home: Folders):
    async with oauth_world() as world:
        async with reached(home, world) as door:
            await signed_in(door, world)
            world.oauth.end_all()
            with pytest.raises(ToolError, match="it needs you to sign in"):
                await call(door, "echo", text="a")
            with pytest.raises(ToolError, match="it needs you to sign in"):
                await call(door, "echo", text="a")
            assert door.state == "needs sign-in"
            await signed_in(door, world)
            assert text_of((await call(door, "echo", text="c")).content) == "c"
        assert len(world.oauth.clients) == 1, "the registration is used again"


async def test_signing_out_forgets_everything(home: Folders):
    async with oauth_world() as world, reached(home, world) as door:
        await signed_in(door, world)
        await asyncio.wait_for(door.sign_out(), PATIENCE_S)
        await asyncio.wait_for(door.connection.settled(), PATIENCE_S)
        assert door.state == "needs sign-in"
        assert json.loads(credentials_file(home).read_text())["keys"] == {}


async def test_the_redirected_address_can_be_pasted(home: Folders):
    async with oauth_world() as world, reached(home, world) as door:
        shown: asyncio.Queue[str] = asyncio.Queue()

        async def show(address: str) -> None:
            await shown.put(address)

        async def paste() -> str:
            return await world.redirected(await shown.get())

        await asyncio.wait_for(door.sign_in(show, paste), PATIENCE_S)
        await asyncio.wait_for(door.connection.settled(), PATIENCE_S)
        assert door.state == "ready"


async def test_a_redirect_with_a_wrong_state_changes_nothing(home: Folders):
    async with oauth_world() as world, reached(home, world) as door:
        answers: list[int] = []

        async def show(address: str) -> None:
            (back,) = parse_qs(urlsplit(address).query)["redirect_uri"]
            async with httpx2.AsyncClient() as browser:
                queries = (
                    "?code=x&state=wrong",
                    "?code=x",
                    "",
                    "?error=e&state=wrong",
                    "?code=x&state=%C3%A9",
                    "?code=x&state=%ED%A0%80",
                    "?code=x" + "&a=b" * 1000,
                )
                asked = [*(f"{back}{query}" for query in queries), back.replace("callback", "no")]
                got = [await browser.get(one) for one in asked]
                answers.extend(one.status_code for one in (*got, await browser.post(back)))
            await world.approve(address)

        await asyncio.wait_for(door.sign_in(show), PATIENCE_S)
        await asyncio.wait_for(door.connection.settled(), PATIENCE_S)
        assert answers == [400] * 9
        assert door.state == "ready"


async def test_a_pasted_address_with_a_wrong_state_is_refused(home: Folders):
    async with oauth_world() as world, reached(home, world) as door:

        async def show(_: str) -> None:
            pass

        for pasted, why in (
            ("http://127.0.0.1:1/callback?code=x&state=wrong", "doesn't belong to the sign-in"),
            ("nonsense", "doesn't belong to the sign-in"),
            ("http://127.0.0.1:1/callback?code=x&state=\u00e9", "doesn't belong to the sign-in"),
            ("http://[127.0.0.1/callback?code=x", "doesn't belong to the sign-in"),
            ("http://127.0.0.1:1/callback?state=\ud800", "doesn't belong to the sign-in"),
        ):

            async def paste(pasted: str = pasted) -> str:
                return pasted

            with pytest.raises(ToolError, match=why):
                await asyncio.wait_for(door.sign_in(show, paste), PATIENCE_S)
        assert world.oauth.access == set()
        assert door.state == "needs sign-in"


async def test_a_person_who_refuses_is_told(home: Folders):
    async with oauth_world() as world, reached(home, world) as door:
        world.oauth.deny = True
        with pytest.raises(ToolError, match="refused the sign-in: access_denied"):
            await asyncio.wait_for(door.sign_in(world.approve), PATIENCE_S)


async def test_a_port_that_is_taken_registers_again(home: Folders):
    async with oauth_world() as world, reached(home, world) as door:
        await signed_in(door, world)
        (client,) = world.oauth.clients.values()
        uri: str = client["redirect_uris"][0]
        port = urlsplit(uri).port
        world.oauth.end_all()
        with socket.create_server(("127.0.0.1", port or 0)):
            await signed_in(door, world)
        assert door.state == "ready"
        assert len(world.oauth.clients) == 2


@pytest.mark.parametrize("kept", ["{", "[]", '{"tokens": 3}', '{"tokens": {"access_token": 1}}'])
async def test_what_is_damaged_in_the_vault_means_signing_in(home: Folders, kept: str):
    async with oauth_world() as world:
        SecretStore({"HOLDFAST_HOME": "x"}, home).put(f"mcp {world.url}", kept)
        async with reached(home, world) as door:
            assert door.state == "needs sign-in"
            await signed_in(door, world)
            assert door.state == "ready"


async def test_addresses_that_would_send_tokens_in_the_clear_are_refused(home: Folders):
    vault = SecretStore({"HOLDFAST_HOME": "x"}, home)
    config = {"far": McpServer(url="http://far.test/mcp"), "cmd": McpServer(command="x")}
    servers = Servers(config, cwd=ROOT, log_folder=home.log, vault=vault)
    cmd, far = servers.all

    async def show(_: str) -> None:
        raise AssertionError("nothing is opened")

    with pytest.raises(ToolError, match="needs an https address"):
        await far.sign_in(show)
    with pytest.raises(ToolError, match="has no address to sign in to"):
        await cmd.sign_in(show)


SECRET = "s3cret of the client"


@pytest.mark.parametrize("way", ["client_secret_basic", "client_secret_post"])
async def test_a_client_that_the_person_registered_signs_in_where_nobody_registers(
    home: Folders, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    async with oauth_world() as world:
        world.oauth.secret, world.oauth.ways = SECRET, (way,)
        world.oauth.clients["mine"] = {"redirect_uris": [f"http://localhost:{port}/callback"]}
        async with reached(home, world) as door:
            with pytest.raises(ToolError, match="doesn't let programs register themselves"):
                await signed_in(door, world)
        config = McpServer(
            url=world.url,
            client_id="mine",
            callback_port=port,
            scopes=("notes:read", "notes:write"),
            client_secret="${DOOR_SECRET:-}",
        )
        assert SECRET not in repr(config)
        monkeypatch.setenv("MCP_CLIENT_SECRET", SECRET)
        async with reached(home, world, config) as door:
            shown: asyncio.Queue[str] = asyncio.Queue()

            async def approve(address: str) -> None:
                shown.put_nowait(address)
                await world.approve(address)

            await asyncio.wait_for(door.sign_in(approve), PATIENCE_S)
            await asyncio.wait_for(door.connection.settled(), PATIENCE_S)
            assert door.state == "ready", door.detail
            asked = parse_qs(urlsplit(shown.get_nowait()).query)
            assert asked["scope"] == ["notes:read notes:write"]
            assert asked["redirect_uri"] == [f"http://localhost:{port}/callback"]
        monkeypatch.delenv("MCP_CLIENT_SECRET")
        world.oauth.end_access()
        async with reached(home, world, config) as door:
            assert door.state == "ready", "the secret is kept with the tokens, to refresh them"
        assert world.oauth.grants == ["authorization_code", "refresh_token"]
        assert list(world.oauth.clients) == ["mine"]


async def test_the_port_of_a_registered_client_is_the_only_one(home: Folders) -> None:
    async with oauth_world() as world:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            config = McpServer(
                url=world.url, client_id="mine", callback_port=taken.getsockname()[1]
            )
            async with reached(home, world, config) as door:
                with pytest.raises(ToolError, match="can't be used"):
                    await signed_in(door, world)
