"""Signing in to MCP servers behind an address: the SDK's OAuth, with tokens kept in a vault.

The SDK discovers the authorization server, registers this program, proves the code (PKCE, state)
and refreshes tokens.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final
from urllib.parse import urlsplit

from httpx2 import AsyncClient, Auth, HTTPError, Request, Response, Timeout
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from pydantic import AnyUrl

from tui.core.errors import ToolError
from tui.tools.mcp.redirect import REDIRECT_PATH, Paste, redirect_receiver
from tui.tools.mcp.token_store import TokenStore, TokenVault, vault_name

log = logging.getLogger(__name__)

SIGN_IN_S: Final = 300.0
"""Seconds that a person has to sign in."""
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
    async def of(cls, url: str, vault: TokenVault | None) -> SignInCheck:
        """For an address, with its tokens if there are any."""
        if vault is None or not await (store := TokenStore(url, vault)).load():
            return cls(None)
        check = cls(None)

        async def refuse(_: str) -> None:
            check.refused = True
            raise NeedsSignIn

        async def never() -> AuthorizationCodeResult:
            raise NeedsSignIn

        check._provider = _provider(url, store, store.redirect_port, refuse, never)
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


async def sign_in(
    url: str, vault: TokenVault, open_page: OpenPage, paste: Paste | None = None
) -> None:
    """Let the person sign in to a server; its tokens are in the vault afterwards.

    `paste` gives the redirected address where the browser is on another machine. Raises ToolError.
    """
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
        raise ToolError("Signing in needs an https address: tokens would be sent in the clear.")
    store = TokenStore(url, vault)
    await store.load()
    try:
        async with asyncio.timeout(SIGN_IN_S), redirect_receiver(store.redirect_port) as redirect:
            if redirect.port != store.redirect_port:
                store.forget_client()

            async def begin(address: str) -> None:
                redirect.expect(address)
                await open_page(address)

            async def result() -> AuthorizationCodeResult:
                return await redirect.result(paste)

            provider = _provider(url, store, redirect.port, begin, result)
            await _ask(url, provider)
    except TimeoutError:
        raise ToolError(f"Nobody signed in within {SIGN_IN_S / 60:.0f} minutes.") from None
    except ToolError:
        raise
    except Exception as error:  # the SDK's, whose texts are for a person
        log.info("signing in to an MCP server failed: %s", type(error).__name__)
        text = " ".join(str(error).split())[:300] or type(error).__name__
        raise ToolError(f"Signing in failed: {text}") from error
    if not await TokenStore(url, vault).load():
        raise ToolError("The server doesn't ask anybody to sign in.")


async def sign_out(url: str, vault: TokenVault) -> None:
    """Forget the tokens for an address. Raises a HoldfastError where they can't be removed."""
    await asyncio.to_thread(vault.remove, vault_name(url))


def _provider(
    url: str,
    store: TokenStore,
    port: int,
    begin: OpenPage,
    result: Callable[[], Awaitable[AuthorizationCodeResult]],
) -> OAuthClientProvider:
    metadata = OAuthClientMetadata(
        client_name="Holdfast",
        redirect_uris=[AnyUrl(f"http://127.0.0.1:{port or 1}{REDIRECT_PATH}")],
        token_endpoint_auth_method="none",  # noqa: S106 - a program on a person's machine has none
    )
    provider = OAuthClientProvider(url, metadata, store, begin, result)
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
