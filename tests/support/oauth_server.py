"""An MCP server behind OAuth, and the authorization server for it: small, strict, on loopback.

    async with oauth_world() as world:
        …  world.url, world.approve(address)

The authorization server is one of its own: metadata (RFC 8414), dynamic registration (RFC 7591),
authorization code with PKCE (S256 only) and a resource (RFC 8707), and refresh tokens that count
once. Whatever it has not been asked for to the letter, it refuses.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

import httpx2
from mcp.server.mcpserver import MCPServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.support.http_apps import serving


def _refused(error: str, why: str) -> JSONResponse:
    return JSONResponse({"error": error, "error_description": why}, status_code=400)


@dataclass
class AuthorizationServer:
    """`lifetime` is what it says of a token in seconds. `deny` lets the person refuse. Where a
    `secret` is set, nobody registers and the clients have to show it, as `ways` says."""

    issuer: str
    resource: str
    lifetime: int = 3600
    deny: bool = False
    secret: str = ""
    ways: tuple[str, ...] = ("none",)
    clients: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    codes: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    access: set[str] = field(default_factory=set[str])
    refresh: dict[str, str] = field(default_factory=dict[str, str])
    grants: list[str] = field(default_factory=list[str])
    """The kinds of grants that were used, in their order."""

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/.well-known/oauth-authorization-server", self._metadata),
                Route("/register", self._register, methods=["POST"]),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
            ]
        )

    def end_access(self) -> None:
        """No access token counts any more; refreshing works."""
        self.access.clear()

    def end_all(self) -> None:
        """No token at all counts any more."""
        self.access.clear()
        self.refresh.clear()

    async def _metadata(self, _: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "registration_endpoint": f"{self.issuer}/register",
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": list(self.ways),
                "authorization_response_iss_parameter_supported": True,
            }
        )

    async def _register(self, request: Request) -> Response:
        if self.secret:
            return JSONResponse({"error": "not here"}, status_code=403)
        asked: dict[str, Any] = await request.json()
        uris: list[str] = asked["redirect_uris"]
        hosts = {urlsplit(uri).hostname for uri in uris}
        if hosts != {"127.0.0.1"} or asked.get("token_endpoint_auth_method") != "none":
            return _refused("invalid_client_metadata", "a native client on loopback is wanted")
        client = {**asked, "client_id": f"client-{secrets.token_hex(8)}"}
        self.clients[client["client_id"]] = client
        return JSONResponse(client, status_code=201)

    async def _authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        client = self.clients.get(asked.get("client_id", ""))
        if client is None or asked.get("redirect_uri") not in client["redirect_uris"]:
            return _refused("invalid_request", "unknown client or redirect address")
        state = {"state": asked["state"], "iss": self.issuer}
        right = (
            asked.get("response_type") == "code"
            and asked.get("code_challenge_method") == "S256"
            and len(asked.get("code_challenge", "")) == 43
            and asked.get("resource") == self.resource
            and len(asked["state"]) >= 20
        )
        if self.deny or not right:
            answer = {"error": "access_denied" if right else "invalid_request", **state}
        else:
            code = secrets.token_hex(16)
            self.codes[code] = asked
            answer = {"code": code, **state}
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(answer)}", status_code=302)

    def _shown(self, request: Request, asked: dict[str, str]) -> str:
        """The secret, in the only way that it takes."""
        if self.ways == ("client_secret_post",):
            return asked.get("client_secret", "")
        given = request.headers.get("authorization", "").removeprefix("Basic ")
        return unquote(base64.b64decode(given).decode().partition(":")[2])

    async def _token(self, request: Request) -> Response:
        body = (await request.body()).decode()
        asked = {name: values[0] for name, values in parse_qs(body).items()}
        client, grant = asked.get("client_id", ""), asked.get("grant_type", "")
        if self.secret and self._shown(request, asked) != self.secret:
            return _refused("invalid_client", "the secret is wrong")
        if client not in self.clients or asked.get("resource") != self.resource:
            return _refused("invalid_client", "unknown client or resource")
        if grant == "authorization_code":
            begun = self.codes.pop(asked.get("code", ""), None)
            digest = hashlib.sha256(asked.get("code_verifier", "").encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            if (
                begun is None
                or begun["client_id"] != client
                or begun["redirect_uri"] != asked.get("redirect_uri")
                or begun["code_challenge"] != challenge
            ):
                return _refused("invalid_grant", "the code does not fit")
        elif grant != "refresh_token" or self.refresh.pop(asked["refresh_token"], "") != client:
            return _refused("invalid_grant", "the refresh token does not count")
        self.grants.append(grant)
        access, refresh = f"access-{secrets.token_hex(16)}", f"refresh-{secrets.token_hex(16)}"
        self.access.add(access)
        self.refresh[refresh] = client
        tokens = {"access_token": access, "token_type": "bearer", "expires_in": self.lifetime}
        return JSONResponse({**tokens, "refresh_token": refresh})


class _Guarded:
    """Lets through what carries an access token, and says to others where to get one."""

    def __init__(self, app: ASGIApp, server: AuthorizationServer, metadata: str) -> None:
        self._app, self._server, self._metadata = app, server, metadata

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith("/.well-known/"):
            await self._app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(b"authorization", b"").decode()
        if given.removeprefix("Bearer ") in self._server.access:
            await self._app(scope, receive, send)
            return
        where = f'Bearer resource_metadata="{self._metadata}"'
        await Response(status_code=401, headers={"WWW-Authenticate": where})(scope, receive, send)


@dataclass
class OAuthWorld:
    """`url` is the MCP server's address, `oauth` what it trusts."""

    url: str
    oauth: AuthorizationServer

    async def approve(self, address: str) -> None:
        """What a browser does with the address to sign in at."""
        async with httpx2.AsyncClient(follow_redirects=True) as browser:
            await browser.get(address)

    async def redirected(self, address: str) -> str:
        """Where the browser would be sent, for a person who copies that."""
        async with httpx2.AsyncClient() as browser:
            return (await browser.get(address)).headers["location"]


@asynccontextmanager
async def oauth_world() -> AsyncGenerator[OAuthWorld]:
    listening = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    issuer, base = (f"http://127.0.0.1:{one.getsockname()[1]}" for one in listening)
    oauth = AuthorizationServer(issuer, f"{base}/mcp")
    server = MCPServer("behind a door", version="1")

    @server.tool()
    def echo(text: str) -> str:
        """Say it again."""
        return text

    async def resource(_: Request) -> Response:
        return JSONResponse({"resource": oauth.resource, "authorization_servers": [issuer]})

    where = "/.well-known/oauth-protected-resource/mcp"
    app = server.streamable_http_app()
    app.router.routes.insert(0, Route(where, resource))
    guarded = _Guarded(app, oauth, f"{base}{where}")
    async with serving(oauth.app(), listening[0]), serving(guarded, listening[1]):
        yield OAuthWorld(f"{base}/mcp", oauth)
