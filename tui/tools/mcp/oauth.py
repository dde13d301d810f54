"""Signing in to MCP servers behind an address: the SDK's OAuth, with tokens kept in a vault.

The SDK discovers the authorization server, registers this program, proves the code (PKCE, state)
and refreshes tokens. It forgets when a token expires and where it is refreshed, so both are kept
with the tokens.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Protocol
from urllib.parse import parse_qs, urlsplit

from httpx2 import AsyncClient, Auth, HTTPError, Request, Response, Timeout
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, ValidationError

from tui.core.errors import HoldfastError, ToolError
from tui.core.messages import object_of

log = logging.getLogger(__name__)

SIGN_IN_S: Final = 300.0
"""Seconds that a person has to sign in."""
_LONG_AGO: Final = 1.0
_PATH: Final = "/callback"
_HEAD_MAX: Final = 16_384
_FIELDS_MAX: Final = 100
_REASON_MAX: Final = 1_000
_PAGE: Final = "<!doctype html><meta charset=utf-8><title>Holdfast</title><p>{}</p>"
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})

OpenPage = Callable[[str], Awaitable[None]]
"""Shows the person the address to sign in at."""
Paste = Callable[[], Awaitable[str]]
"""Waits for the address that the browser was sent to, if the person copies it here."""


class TokenVault(Protocol):
    """Keeps secret texts by name. All of it blocks, and may raise a HoldfastError."""

    def get(self, name: str) -> str | None: ...
    def put(self, name: str, text: str) -> None: ...
    def remove(self, name: str) -> None: ...


def vault_name(url: str) -> str:
    """The name under which the tokens for an address are kept: without login and query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].lower()
    return f"mcp {parts.scheme.lower()}://{host}{parts.path.rstrip('/')}"


class NeedsSignIn(Exception):  # noqa: N818 - it is a state, not a fault
    """The server wants the person to sign in."""


class TokenStore:
    """The tokens of one address and what refreshing them takes: the SDK's storage."""

    def __init__(self, url: str, vault: TokenVault) -> None:
        self._name, self._vault = vault_name(url), vault
        self._kept: dict[str, Any] = {}

    async def load(self) -> bool:
        """Read what is kept. Returns whether there are tokens."""
        try:
            text = await asyncio.to_thread(self._vault.get, self._name)
            self._kept = object_of(json.loads(text)) if text else {}
        except (HoldfastError, ValueError, RecursionError) as error:
            log.warning("no tokens for an MCP server: %s", type(error).__name__)
            self._kept = {}
        return bool(self._kept.get("tokens"))

    @property
    def redirect_port(self) -> int:
        """The port of the redirect address that was registered; 0 for none."""
        uris = object_of(self._kept.get("client")).get("redirect_uris") or [""]
        with suppress(ValueError, TypeError, IndexError):
            return urlsplit(str(uris[0])).port or 0
        return 0

    def forget_client(self) -> None:
        """Register again: the redirect address has changed."""
        self._kept.pop("client", None)

    def fill(self, provider: OAuthClientProvider) -> None:
        """Tell the SDK what it does not ask its storage for."""
        context = provider.context
        expires = self._kept.get("expires_at")
        context.token_expiry_time = float(expires) if isinstance(expires, int | float) else None
        with suppress(ValidationError):
            if kept := self._kept.get("metadata"):
                context.oauth_metadata = OAuthMetadata.model_validate(kept)
            if kept := self._kept.get("resource"):
                context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(kept)

    def bind(self, provider: OAuthClientProvider) -> None:
        """Keep what this provider has discovered with the tokens."""
        self._provider = provider

    async def get_tokens(self) -> OAuthToken | None:
        with suppress(ValidationError):
            kept = self._kept.get("tokens")
            return OAuthToken.model_validate(kept) if kept else None
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        context = self._provider.context
        self._kept["tokens"] = tokens.model_dump(mode="json", exclude_none=True)
        self._kept["expires_at"] = (
            None if tokens.expires_in is None else time.time() + tokens.expires_in
        )
        for name, found in (
            ("metadata", context.oauth_metadata),
            ("resource", context.protected_resource_metadata),
        ):
            if found is not None:
                self._kept[name] = found.model_dump(mode="json", exclude_none=True)
        await self._write()

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        with suppress(ValidationError):
            kept = self._kept.get("client")
            return OAuthClientInformationFull.model_validate(kept) if kept else None
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._kept["client"] = client_info.model_dump(mode="json", exclude_none=True)
        await self._write()

    async def _write(self) -> None:
        text = json.dumps(self._kept)
        await asyncio.to_thread(self._vault.put, self._name, text)


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
        """Whether there are tokens to sign with."""
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
        async with asyncio.timeout(SIGN_IN_S), _redirect_receiver(store.redirect_port) as redirect:
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
        redirect_uris=[AnyUrl(f"http://127.0.0.1:{port or 1}{_PATH}")],
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


# The redirect


class RedirectReceiver:
    """Waits on loopback for the address that the browser is sent to after the sign-in."""

    def __init__(self) -> None:
        self.port = 0
        self._state = ""
        self._received: asyncio.Future[AuthorizationCodeResult] = (
            asyncio.get_running_loop().create_future()
        )

    def expect(self, address: str) -> None:
        """Only an answer to this request for a sign-in counts."""
        self._state = _query(address).get("state", "")

    async def result(self, paste: Paste | None) -> AuthorizationCodeResult:
        """What the browser was sent with, or what the person pasted. Raises ToolError."""
        if paste is None:
            return await self._received
        pasted = asyncio.ensure_future(paste())
        try:
            await asyncio.wait({pasted, self._received}, return_when=asyncio.FIRST_COMPLETED)
            if self._received.done():
                return self._received.result()
            return self._parsed(pasted.result().strip())
        finally:
            pasted.cancel()

    def _parsed(self, address: str) -> AuthorizationCodeResult:
        query = _query(address)
        if not self._belongs(query):
            raise ToolError("This address doesn't belong to the sign-in that was begun.")
        if error := query.get("error"):
            why = query.get("error_description", "")
            said = f"{error} {why}".rstrip()[:_REASON_MAX]
            raise ToolError(f"The server refused the sign-in: {said}.")
        if not (code := query.get("code")):
            raise ToolError("The address has no code.")
        return AuthorizationCodeResult(code=code, state=self._state, iss=query.get("iss") or None)

    def _belongs(self, query: Mapping[str, str]) -> bool:
        """True for the answer to the request that `expect` was given."""
        state = query.get("state", "").encode("utf-8", "replace")
        return bool(self._state) and secrets.compare_digest(state, self._state.encode())

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of a browser. One that does not belong here changes nothing."""
        status, said = "400 Bad Request", "This is not the sign-in that Holdfast waits for."
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            method, target, *_ = [*head.partition("\r\n")[0].split(" "), "", ""]
            here = target.partition("?")[0] == _PATH
            if method == "GET" and here and not self._received.done():
                status, said = self._take(target, status, said)
            page = _PAGE.format(said)
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n"
                f"Content-Length: {len(page)}\r\nReferrer-Policy: no-referrer\r\n"
                f"Connection: close\r\n\r\n{page}".encode()
            )
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    def _take(self, target: str, status: str, said: str) -> tuple[str, str]:
        if not self._belongs(_query(target)):
            return status, said
        try:
            self._received.set_result(self._parsed(target))
        except ToolError as error:
            self._received.set_exception(error)
            return "200 OK", "You are not signed in. You can close this page."
        return "200 OK", "You are signed in. You can close this page and return to Holdfast."


@asynccontextmanager
async def _redirect_receiver(port: int) -> AsyncGenerator[RedirectReceiver]:
    """One that listens on the port that was registered, or on another if that is taken."""
    receiver = RedirectReceiver()
    try:
        server = await asyncio.start_server(receiver.answer, "127.0.0.1", port, limit=_HEAD_MAX)
    except OSError:
        server = await asyncio.start_server(receiver.answer, "127.0.0.1", 0, limit=_HEAD_MAX)
    receiver.port = server.sockets[0].getsockname()[1]
    async with server:
        yield receiver


def _query(address: str) -> dict[str, str]:
    """The first value of each field of an address; none, where it is not an address."""
    try:
        fields = parse_qs(urlsplit(address).query, max_num_fields=_FIELDS_MAX)
    except ValueError:
        return {}
    return {name: values[0] for name, values in fields.items()}
