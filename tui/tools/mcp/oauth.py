"""Signing in to MCP servers behind an address: the SDK's OAuth, with tokens kept in a vault.

The SDK discovers the authorization server, registers this program, proves the code (PKCE, state)
and refreshes tokens. A client that the person has registered takes the place of that registration;
its redirect address is `http://localhost:PORT/callback`, as Claude Code has it (2.1.332), so that
one registration serves both.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from httpx2 import AsyncClient, Auth, HTTPError, Request, Response, Timeout
from mcp.client.auth import OAuthClientProvider, OAuthRegistrationError
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from pydantic import AnyUrl

from tui.core.errors import ToolError
from tui.tools.mcp.redirect import REDIRECT_PATH, Paste, RedirectReceiver, redirect_receiver
from tui.tools.mcp.token_store import SignInPlace, TokenStore, vault_name

log = logging.getLogger(__name__)

SIGN_IN_S: Final = 300.0
"""Seconds that a person has to sign in."""
SECRET_VARIABLE: Final = "MCP_CLIENT_SECRET"  # noqa: S105 - a name
"""The variable with the client's secret where the settings have none, as for Claude Code 2.1.332.
It is kept with the tokens."""
_LONG_AGO: Final = 1.0
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})

OpenPage = Callable[[str], Awaitable[None]]
"""Shows the person the address to sign in at."""


class NeedsSignIn(Exception):  # noqa: N818 - it is a state, not a fault
    """The server wants the person to sign in."""


class SignInCheck(Auth):
    """Signs requests with the tokens that are kept, and notes whether the server wants a sign-in.

    Nothing is opened for the person here: without tokens that count, a request fails.
    """

    requires_response_body = True

    def __init__(self, provider: OAuthClientProvider | None) -> None:
        self._provider = provider
        self.refused = False

    @classmethod
    async def of(cls, place: SignInPlace | None) -> SignInCheck:
        """For an address, with its tokens if there are any."""
        if place is None or not await (store := TokenStore(place)).load():
            return cls(None)
        check = cls(None)

        async def refuse(_: str) -> None:
            check.refused = True
            raise NeedsSignIn

        async def never() -> AuthorizationCodeResult:
            raise NeedsSignIn

        check._provider = _provider(place, store, store.redirect_port, refuse, never)
        return check

    @property
    def signed(self) -> bool:
        """True if there are tokens to sign with."""
        return self._provider is not None

    async def async_auth_flow(self, request: Request) -> AsyncGenerator[Request, Response]:
        if self._provider is None:
            response = yield request
            self.refused = self.refused or response.status_code == 401
            return
        context = self._provider.context
        for attempt in range(2):
            flow = self._provider.async_auth_flow(request)
            try:
                outgoing = await anext(flow)
                while True:
                    response = yield outgoing
                    if outgoing is request and response.status_code == 401:
                        if not attempt and context.can_refresh_token():
                            context.token_expiry_time = _LONG_AGO  # the SDK refreshes only then
                            break
                        self.refused = True
                    outgoing = await flow.asend(response)
            except StopAsyncIteration:
                return
            finally:
                await flow.aclose()


async def sign_in(place: SignInPlace, open_page: OpenPage, paste: Paste | None = None) -> None:
    """Let the person sign in to a server; its tokens are in the vault afterwards.

    `paste` gives the redirected address where the browser is on another machine. Raises ToolError.
    """
    parts = urlsplit(place.url)
    if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
        raise ToolError("Signing in needs an https address: tokens would be sent in the clear.")
    if place.client_id and not place.client_secret:
        place = replace(place, client_secret=os.environ.get(SECRET_VARIABLE, ""))
    store = TokenStore(place)
    await store.load()
    try:
        async with asyncio.timeout(SIGN_IN_S), _receiver(place, store) as redirect:
            if redirect.port != store.redirect_port and not place.client_id:
                store.forget_client()

            async def begin(address: str) -> None:
                await _agree(provider, store)
                address = _with_scopes(address, place.scopes)
                redirect.expect(address)
                await open_page(address)

            async def result() -> AuthorizationCodeResult:
                return await redirect.result(paste)

            provider = _provider(place, store, redirect.port, begin, result)
            await _ask(place.url, provider)
    except TimeoutError:
        raise ToolError(f"Nobody signed in within {SIGN_IN_S / 60:.0f} minutes.") from None
    except ToolError:
        raise
    except OAuthRegistrationError as error:
        text = " ".join(str(error).split())
        raise ToolError(
            f"The server doesn't let programs register themselves: {text}",
            hint="Register a client with its operator and give its client_id, see holdfast help "
            "mcp.",
        ) from error
    except Exception as error:  # the SDK's, whose texts are for a person
        log.info("signing in to an MCP server failed: %s", type(error).__name__)
        text = " ".join(str(error).split())[:300] or type(error).__name__
        raise ToolError(f"Signing in failed: {text}") from error
    if not await TokenStore(place).load():
        raise ToolError("The server doesn't ask anybody to sign in.")


async def sign_out(place: SignInPlace) -> None:
    """Forget the tokens for an address. Raises a HoldfastError where they can't be removed."""
    await asyncio.to_thread(place.vault.remove, vault_name(place.url))


def _receiver(
    place: SignInPlace, store: TokenStore
) -> AbstractAsyncContextManager[RedirectReceiver]:
    """Waits at the port that the client is registered with. Any does where none is."""
    return redirect_receiver(store.redirect_port, only=bool(place.callback_port))


async def _agree(provider: OAuthClientProvider, store: TokenStore) -> None:
    """Show a secret in the way that the authorization server takes, which is known by now."""
    context = provider.context
    taken = context.oauth_metadata and context.oauth_metadata.token_endpoint_auth_methods_supported
    client = context.client_info
    if client is not None and client.client_secret and taken:
        ways = [way for way in ("client_secret_basic", "client_secret_post") if way in taken]
        client.token_endpoint_auth_method = ways[0] if ways else "client_secret_post"
        await store.set_client_info(client)


def _with_scopes(address: str, scopes: Sequence[str]) -> str:
    """The address to sign in at, which asks for these; where there are none, for those that the
    server names."""
    if not scopes:
        return address
    parts = urlsplit(address)
    fields = [(name, value) for name, value in parse_qsl(parts.query) if name != "scope"]
    return parts._replace(query=urlencode([*fields, ("scope", " ".join(scopes))])).geturl()


def _provider(
    place: SignInPlace,
    store: TokenStore,
    port: int,
    begin: OpenPage,
    result: Callable[[], Awaitable[AuthorizationCodeResult]],
) -> OAuthClientProvider:
    host = "localhost" if place.client_id else "127.0.0.1"
    metadata = OAuthClientMetadata(
        client_name="Holdfast",
        redirect_uris=[AnyUrl(f"http://{host}:{port or 1}{REDIRECT_PATH}")],
        token_endpoint_auth_method="none",  # noqa: S106 - a program on a person's machine has none
    )
    provider = OAuthClientProvider(place.url, metadata, store, begin, result)
    store.fill(provider)
    store.bind(provider)
    return provider


async def _ask(url: str, provider: OAuthClientProvider) -> None:
    """Send one request that needs the sign-in. Raises ToolError if it is refused afterwards."""
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-06-18",
    }
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    try:
        async with (
            AsyncClient(auth=provider, headers=headers, timeout=Timeout(30.0)) as client,
            client.stream("POST", url, json=ping) as response,
        ):
            if response.status_code in {401, 403}:
                raise ToolError(f"The server refuses the new sign-in ({response.status_code}).")
    except HTTPError as error:
        raise ToolError(f"The server can't be reached: {error}") from error
